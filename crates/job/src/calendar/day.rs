//! Days of a job's time zone.
//!
//! Days partition time: the end of one is the start of the next, even where clocks change at
//! midnight or a date is skipped.

use std::ops::Range;

use chrono::{DateTime, MappedLocalTime, NaiveDate, NaiveTime, TimeDelta, TimeZone};
use chrono_tz::Tz;
use tidetable_layout::time::{DAY, SECOND};

/// The instants of `day` in the time zone `tz`, in microseconds since the epoch: 23 or 25 hours where
/// clocks change, and none for a date that the zone skipped.
pub fn day_bounds(tz: Tz, day: NaiveDate) -> Range<i64> {
    let start = day_start(tz, day);
    let end = day.succ_opt().map_or(i64::MAX, |next| day_start(tz, next));
    start..end.max(start)
}

/// The day that the instant `micros` (microseconds since the epoch) belongs to; `None` outside the
/// calendar's range.
pub fn day_of(tz: Tz, micros: i64) -> Option<NaiveDate> {
    let local = local_date(tz, micros)?;
    // Where clocks go back over midnight, the first minutes of a date come before its start.
    if micros < day_start(tz, local) { local.pred_opt() } else { Some(local) }
}

/// The days of `tz` that overlap `range` (microseconds since the epoch), in order. Empty for
/// an empty range or one outside the calendar.
pub fn days_touched(tz: Tz, range: Range<i64>) -> impl Iterator<Item = NaiveDate> {
    let ends = if range.is_empty() { None } else { day_of(tz, range.start).zip(day_of(tz, range.end - 1)) };
    ends.into_iter()
        .flat_map(|(first, last)| first.iter_days().take_while(move |day| *day <= last))
        .filter(move |day| !day_bounds(tz, *day).is_empty())
}

/// A UTC day, given in days since the epoch.
pub fn utc_day(day: i32) -> Range<i64> {
    let start = i64::from(day) * DAY;
    // The last day that microseconds reach is not a whole one.
    start..start.saturating_add(DAY)
}

fn local_date(tz: Tz, micros: i64) -> Option<NaiveDate> {
    DateTime::from_timestamp_micros(micros).map(|utc| utc.with_timezone(&tz).date_naive())
}

/// The first instant from which the local date stays at `day` or later.
fn day_start(tz: Tz, day: NaiveDate) -> i64 {
    let midnight = day.and_time(NaiveTime::MIN);
    match tz.from_local_datetime(&midnight) {
        MappedLocalTime::Single(start) => start.timestamp_micros(),
        MappedLocalTime::Ambiguous(first, second) => {
            let before_second = second.timestamp_micros() - 1;
            let fell_back_a_day = local_date(tz, before_second).is_some_and(|date| date < day);
            if fell_back_a_day { second.timestamp_micros() } else { first.timestamp_micros() }
        }
        // Midnight lies in a gap: the day starts when the gap ends.
        MappedLocalTime::None => end_of_gap(tz, day, midnight.and_utc().timestamp()),
    }
}

/// The first second whose local date is not before `day`, in microseconds since the epoch. Its midnight is about `around`,
/// in seconds since the epoch: no zone is 26 hours from UTC.
fn end_of_gap(tz: Tz, day: NaiveDate, around: i64) -> i64 {
    let span = TimeDelta::hours(26).num_seconds();
    let (mut before, mut after) = (around - span, around + span);
    while before + 1 < after {
        let middle = before + (after - before) / 2;
        match local_date(tz, middle * SECOND) {
            Some(date) if date < day => before = middle,
            _ => after = middle,
        }
    }
    after * SECOND
}

/// The days of a time zone that overlap a UTC day (days since the epoch).
pub fn local_days(timezone: Tz, day: i32) -> impl Iterator<Item = NaiveDate> {
    days_touched(timezone, utc_day(day))
}

#[cfg(test)]
mod tests {
    use chrono_tz::{America, Europe, Pacific};

    use tidetable_layout::time::HOUR;

    use super::*;

    fn date(text: &str) -> NaiveDate {
        text.parse().unwrap()
    }

    fn micros(text: &str) -> i64 {
        DateTime::parse_from_rfc3339(text).unwrap().timestamp_micros()
    }

    fn hours(tz: Tz, day: &str) -> i64 {
        let bounds = day_bounds(tz, date(day));
        assert_eq!((bounds.end - bounds.start) % HOUR, 0);
        (bounds.end - bounds.start) / HOUR
    }

    #[test]
    fn the_last_day_of_microseconds_is_outside_the_calendar() {
        let last = i64::MAX.div_euclid(DAY) as i32;
        assert_eq!(utc_day(last).end, i64::MAX);
        assert_eq!(local_days(Tz::UTC, last).next(), None);
    }

    #[test]
    fn days_of_23_and_25_hours() {
        assert_eq!(hours(Tz::UTC, "2026-03-29"), 24);
        assert_eq!(hours(Europe::Paris, "2026-03-28"), 24);
        assert_eq!(hours(Europe::Paris, "2026-03-29"), 23);
        assert_eq!(hours(Europe::Paris, "2026-10-25"), 25);
        assert_eq!(
            day_bounds(Europe::Paris, date("2026-03-29")),
            micros("2026-03-28T23:00:00Z")..micros("2026-03-29T22:00:00Z")
        );
    }

    #[test]
    fn midnight_in_a_gap() {
        // On 2018-11-04 the clocks of São Paulo went from 00:00 to 01:00.
        let day = date("2018-11-04");
        assert_eq!(hours(America::Sao_Paulo, "2018-11-04"), 23);
        assert_eq!(day_bounds(America::Sao_Paulo, day).start, micros("2018-11-04T03:00:00Z"));
        assert_eq!(day_of(America::Sao_Paulo, micros("2018-11-04T03:00:00Z")), Some(day));
        assert_eq!(day_of(America::Sao_Paulo, micros("2018-11-04T02:59:59Z")), day.pred_opt());
    }

    #[test]
    fn clocks_that_go_back_at_midnight() {
        // On 2018-02-18 at 00:00 back to 23:00 of the 17th, which has 25 hours.
        assert_eq!(hours(America::Sao_Paulo, "2018-02-17"), 25);
        assert_eq!(hours(America::Sao_Paulo, "2018-02-18"), 24);
        assert_eq!(day_bounds(America::Sao_Paulo, date("2018-02-18")).start, micros("2018-02-18T03:00:00Z"));
        // Havana repeats 00:00 to 01:00 inside the same date: the first pass belongs to it.
        assert_eq!(hours(America::Havana, "2026-11-01"), 25);
        // St. John's went from 00:01 back to 23:01: that minute stays with the day before.
        assert_eq!(hours(America::St_Johns, "2010-11-06"), 25);
        assert_eq!(day_of(America::St_Johns, micros("2010-11-07T02:30:30Z")), Some(date("2010-11-06")));
    }

    #[test]
    fn a_skipped_date_is_empty() {
        assert!(day_bounds(Pacific::Apia, date("2011-12-30")).is_empty());
        let range = micros("2011-12-29T12:00:00Z")..micros("2012-01-01T00:00:00Z");
        let days: Vec<_> = days_touched(Pacific::Apia, range).collect();
        assert_eq!(days, [date("2011-12-29"), date("2011-12-31"), date("2012-01-01")]);
    }

    #[test]
    fn days_partition_time() {
        for tz in [Tz::UTC, Europe::Paris, America::Sao_Paulo, America::St_Johns, America::Havana, Pacific::Apia] {
            let mut day = date("2009-12-31");
            while day < date("2019-02-01") {
                let bounds = day_bounds(tz, day);
                let next = day.succ_opt().unwrap();
                assert_eq!(bounds.end, day_bounds(tz, next).start, "{tz} {day}");
                if !bounds.is_empty() {
                    assert_eq!(day_of(tz, bounds.start), Some(day), "{tz} {day}");
                    assert_eq!(day_of(tz, bounds.end - 1), Some(day), "{tz} {day}");
                }
                day = next;
            }
        }
    }

    #[test]
    fn touched_days_cross_the_leap_day() {
        let range = micros("2024-02-28T23:30:00Z")..micros("2024-02-29T23:00:00Z");
        let paris: Vec<_> = days_touched(Europe::Paris, range.clone()).collect();
        assert_eq!(paris, [date("2024-02-29")]);
        let utc: Vec<_> = days_touched(Tz::UTC, range.start..range.end + 1).collect();
        assert_eq!(utc, [date("2024-02-28"), date("2024-02-29")]);
        assert_eq!(days_touched(Tz::UTC, 5..5).count(), 0);
        assert_eq!(days_touched(Tz::UTC, i64::MIN..i64::MAX).count(), 0);
    }
}
