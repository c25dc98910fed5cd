//! When jobs run: the moments of a schedule, and those that were missed.
//!
//! A local time that a clock change skips is taken as much later as the clocks go forward. Of a local time that comes
//! twice the first is meant; a schedule that goes round (`*/5 * * * *`, `30 * * * *`) takes both.

use chrono::{DateTime, Datelike, Days, LocalResult, NaiveDateTime, NaiveTime, Offset, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use crate::job::{CatchUp, Cron, Job};

/// Days that are looked through for the next moment: 29 February may be eight years away.
const FAR: u64 = 366 * 9;
/// Moments that are listed, at most: a week of minutes.
const MOST: usize = 7 * 24 * 60;

impl Job {
    /// Its schedule, if it has one.
    pub fn cron(&self) -> Option<Cron> {
        self.schedule.as_deref().and_then(Cron::parse)
    }
}

/// The moments of `cron` in `zone` after `after` and up to `to`, both microseconds since the epoch; the first
/// 10,080 of them.
pub fn moments(cron: &Cron, zone: Tz, after: i64, to: i64) -> Vec<i64> {
    let mut found = Vec::new();
    let Some(start) = DateTime::from_timestamp_micros(after) else { return found };
    // A clock change may move a moment over midnight.
    let Some(first) = start.with_timezone(&zone).date_naive().checked_sub_days(Days::new(1)) else { return found };
    for date in first.iter_days().take(usize::try_from(FAR).unwrap_or(0)) {
        let weekday = date.weekday().num_days_from_sunday();
        let Some(begin) = date.and_hms_opt(0, 0, 0) else { break };
        // No zone is further from UTC than a day.
        if begin.and_utc().timestamp_micros().saturating_sub(86_400_000_000) > to || found.len() >= MOST {
            break;
        }
        if !cron.takes_day(date.month(), date.day(), weekday) {
            continue;
        }
        let mut of_day: Vec<i64> = cron
            .hours()
            .flat_map(|hour| cron.minutes().filter_map(move |minute| NaiveTime::from_hms_opt(hour, minute, 0)))
            .flat_map(|time| instants(date.and_time(time), zone, cron.goes_round()))
            .filter(|moment| (after + 1..=to).contains(moment))
            .collect();
        found.append(&mut of_day);
    }
    found.sort_unstable();
    found.dedup();
    found.truncate(MOST);
    found
}

/// The scheduled moments since the run of logical time `last` that `catch_up` makes up for at `now`: none from before
/// the last `window` microseconds. The newest may be `now` itself. A job that never ran has missed nothing.
pub fn missed(cron: &Cron, zone: Tz, catch_up: CatchUp, window: i64, last: Option<i64>, now: i64) -> Vec<i64> {
    let Some(last) = last.filter(|_| catch_up != CatchUp::None) else { return Vec::new() };
    let all = moments(cron, zone, last.max(now.saturating_sub(window)), now);
    match catch_up {
        CatchUp::Latest => all.last().copied().into_iter().collect(),
        _ => all,
    }
}

/// Whether `now`, microseconds since the epoch, lies in a minute of the schedule.
pub fn is_due(cron: &Cron, zone: Tz, now: i64) -> bool {
    let minute = now - now.rem_euclid(60_000_000);
    !moments(cron, zone, minute - 1, minute).is_empty()
}

/// The moments that a local time means.
fn instants(local: NaiveDateTime, zone: Tz, both: bool) -> Vec<i64> {
    match zone.from_local_datetime(&local) {
        LocalResult::Single(moment) => vec![moment.timestamp_micros()],
        LocalResult::Ambiguous(first, second) if both => vec![first.timestamp_micros(), second.timestamp_micros()],
        LocalResult::Ambiguous(first, _) => vec![first.timestamp_micros()],
        LocalResult::None => {
            // By the clock as it went before the change.
            let before = zone.offset_from_utc_datetime(&(local - TimeDelta::days(2))).fix().local_minus_utc();
            vec![(local.and_utc() - TimeDelta::seconds(i64::from(before))).timestamp_micros()]
        }
    }
}

/// The minutes of an hour in which a clock of `other` shows when the schedule means a moment in `zone`: clocks of
/// different zones differ by half hours too, and not always by as much. Looks a year ahead of `now`.
pub fn minutes_elsewhere(cron: &Cron, zone: Tz, other: Tz, now: i64) -> Vec<u32> {
    let start = DateTime::from_timestamp_micros(now).unwrap_or(DateTime::<Utc>::UNIX_EPOCH);
    let offset =
        |zone: Tz, at: NaiveDateTime| i64::from(zone.offset_from_utc_datetime(&at).fix().local_minus_utc()) / 60;
    let mut shifts: Vec<i64> = (0..366)
        .map(|day| (start + TimeDelta::days(day)).naive_utc())
        .map(|at| (offset(other, at) - offset(zone, at)).rem_euclid(60))
        .collect();
    shifts.sort_unstable();
    shifts.dedup();
    let mut minutes: Vec<u32> = shifts
        .iter()
        .flat_map(|shift| cron.minutes().filter_map(move |minute| u32::try_from((i64::from(minute) + shift) % 60).ok()))
        .collect();
    minutes.sort_unstable();
    minutes.dedup();
    minutes
}

#[cfg(test)]
#[path = "schedule/tests.rs"]
mod tests;
