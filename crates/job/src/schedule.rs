//! Schedule evaluation: the scheduled times of a job, the missed ones, and those to run now. Pure functions;
//! [`done_until`] reads the run records for them.
//!
//! A local time that a clock change skips moves forward by the length of the gap. Of a local time that occurs
//! twice the first is meant; a periodic schedule (`*/5 * * * *`, `30 * * * *`) takes both.

pub(crate) mod done;

use chrono::{DateTime, Datelike, Days, LocalResult, NaiveDateTime, NaiveTime, Offset, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use crate::file::{CatchUp, Cron, Job};
pub use done::done_until;
use tidetable_layout::time::{DAY, MINUTE};

/// Days searched for the next scheduled time: 29 February may be eight years away.
const FAR: u64 = 366 * 9;
/// Maximum number of times that are listed: a week of minutes.
const MAX_TIMES: usize = 7 * 24 * 60;

impl Job {
    /// The parsed schedule; `None` if the job has none.
    pub fn cron(&self) -> Option<Cron> {
        self.schedule.as_deref().and_then(Cron::parse)
    }
}

/// The times of `cron` in `zone` after `after` and up to `to`, both microseconds since the epoch; the first
/// 10,080 of them.
pub fn scheduled_times(cron: &Cron, zone: Tz, after: i64, to: i64) -> Vec<i64> {
    let mut found = Vec::new();
    let Some(start) = DateTime::from_timestamp_micros(after) else { return found };
    // A clock change may move a time over midnight.
    let Some(first) = start.with_timezone(&zone).date_naive().checked_sub_days(Days::new(1)) else { return found };
    for date in first.iter_days().take(usize::try_from(FAR).unwrap_or(0)) {
        let weekday = date.weekday().num_days_from_sunday();
        let Some(begin) = date.and_hms_opt(0, 0, 0) else { break };
        // No offset from UTC exceeds a day.
        if begin.and_utc().timestamp_micros().saturating_sub(DAY) > to || found.len() >= MAX_TIMES {
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
    found.truncate(MAX_TIMES);
    found
}

/// The scheduled times since the run of logical time `last`, at most `window` microseconds ago. The newest
/// may be `now`. A job that never ran has missed nothing.
pub fn missed(cron: &Cron, zone: Tz, window: i64, last: Option<i64>, now: i64) -> Vec<i64> {
    last.map(|last| scheduled_times(cron, zone, last.max(now.saturating_sub(window)), now)).unwrap_or_default()
}

/// The scheduled times for which a job is to run at `now`, in order: the missed ones that `catch_up` selects, and the
/// current minute if it is due. `last` and `window` as for [`missed`]; the run of `last` is not
/// repeated.
pub fn to_run(cron: &Cron, zone: Tz, catch_up: CatchUp, window: i64, last: Option<i64>, now: i64) -> Vec<i64> {
    let minute = minute_of(now);
    let since = match (catch_up, last) {
        (CatchUp::All | CatchUp::Latest, Some(last)) => last.max(now.saturating_sub(window)),
        (_, last) => last.unwrap_or(i64::MIN).max(minute - 1),
    };
    match catch_up {
        CatchUp::All => scheduled_times(cron, zone, since, now),
        CatchUp::Latest | CatchUp::None => latest(cron, zone, since, now).into_iter().collect(),
    }
}

/// The last time of `cron` after `after` and up to `to`.
fn latest(cron: &Cron, zone: Tz, after: i64, to: i64) -> Option<i64> {
    let mut end = to;
    while end > after {
        // A day at a time: a longer range may hold too many times to list.
        let start = after.max(end.saturating_sub(DAY));
        if let Some(last) = scheduled_times(cron, zone, start, end).last() {
            return Some(*last);
        }
        end = start;
    }
    None
}

/// Whether `now`, microseconds since the epoch, lies in a scheduled minute.
pub fn is_due(cron: &Cron, zone: Tz, now: i64) -> bool {
    let minute = minute_of(now);
    !scheduled_times(cron, zone, minute - 1, minute).is_empty()
}

/// The start of the minute of `now`, both in microseconds since the epoch: schedules know no seconds.
pub fn minute_of(now: i64) -> i64 {
    now - now.rem_euclid(MINUTE)
}

/// The instants that a local time denotes.
fn instants(local: NaiveDateTime, zone: Tz, both: bool) -> Vec<i64> {
    match zone.from_local_datetime(&local) {
        LocalResult::Single(moment) => vec![moment.timestamp_micros()],
        LocalResult::Ambiguous(first, second) if both => vec![first.timestamp_micros(), second.timestamp_micros()],
        LocalResult::Ambiguous(first, _) => vec![first.timestamp_micros()],
        LocalResult::None => {
            // With the offset before the change.
            let before = zone.offset_from_utc_datetime(&(local - TimeDelta::days(2))).fix().local_minus_utc();
            vec![(local.and_utc() - TimeDelta::seconds(i64::from(before))).timestamp_micros()]
        }
    }
}

/// The minutes of the hour at which clocks in `other` show a scheduled time of `zone`: offsets of zones differ by half
/// hours too, and change over the year. Looks a year ahead of `now`.
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
