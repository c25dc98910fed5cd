//! Gaps between days, and the age of the newest day.

use std::collections::BTreeSet;
use std::ops::Range;

use chrono::{Days, Months, TimeDelta};
use chrono_tz::Tz;
use tidetable_layout::time::DAY;

use tidetable_job::{Per, Period};

/// Parses the label of a period of any kind.
pub(crate) fn period_of(label: &str) -> Option<Period> {
    [Per::Day, Per::Month, Per::Hour, Per::Query].into_iter().find_map(|per| Period::of_label(per, label))
}

/// The periods of `there` that begin at most a day after `clock`; all, if none does. One reading with a wrong date would hide for
/// years that nothing else comes.
pub(crate) fn begun(tz: Tz, there: BTreeSet<Period>, clock: i64) -> BTreeSet<Period> {
    let latest = clock.saturating_add(DAY);
    let (begun, ahead): (BTreeSet<Period>, BTreeSet<Period>) =
        there.into_iter().partition(|period| period.bounds(tz).start <= latest);
    if begun.is_empty() { ahead } else { begun }
}

/// Periods between the first and the last of `there` that are neither in it nor in `empty`.
pub(crate) fn gaps(tz: Tz, there: &BTreeSet<Period>, empty: &BTreeSet<Period>) -> Vec<Period> {
    let (Some(first), Some(last)) = (there.first(), there.last()) else { return Vec::new() };
    let between = std::iter::successors(after(first), after).take_while(|period| period < last);
    between
        .filter(|period| {
            // A date that the zone skipped is not missing.
            !there.contains(period) && !empty.contains(period) && !period.bounds(tz).is_empty()
        })
        .collect()
}

/// The next period of the same kind.
fn after(period: &Period) -> Option<Period> {
    let start = match period.per {
        Per::Day => period.start.checked_add_days(Days::new(1)),
        Per::Month => period.start.checked_add_months(Months::new(1)),
        Per::Hour => period.start.checked_add_signed(TimeDelta::hours(1)),
        Per::Query => None,
    }?;
    Some(Period { start, per: period.per })
}

/// Whether the age at `now` exceeds `limit`. The age counts from the end of a day; without any day it is exceeded.
pub(crate) fn is_overdue(now: i64, limit: i64, until: Option<i64>) -> bool {
    until.is_none_or(|until| age(now, until) > limit)
}

/// Microseconds from `until` to `now`, 0 if it is in the future.
pub(crate) fn age(now: i64, until: i64) -> i64 {
    now.saturating_sub(until).max(0)
}

/// The UTC days (since the epoch) that overlap `time`.
pub(crate) fn utc_days(time: &Range<i64>) -> Range<i64> {
    if time.is_empty() {
        return 0..0;
    }
    time.start.div_euclid(DAY)..(time.end - 1).div_euclid(DAY) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(tz: Tz, given: &[&str]) -> Vec<String> {
        let there = given.iter().map(|label| period_of(label).unwrap()).collect();
        gaps(tz, &there, &BTreeSet::new()).iter().map(Period::label).collect()
    }

    #[test]
    fn months_and_hours_have_gaps_too() {
        assert_eq!(missing(Tz::UTC, &["2019-11", "2020-02"]), ["2019-12", "2020-01"]);
        assert_eq!(missing(Tz::UTC, &["2020-02-29T23Z", "2020-03-01T01Z"]), ["2020-03-01T00Z"]);
        assert_eq!(missing(Tz::UTC, &["all"]), [""; 0]);
        let days = |days: &[&str]| days.iter().map(|day| period_of(day).unwrap()).collect::<BTreeSet<_>>();
        let found = gaps(Tz::UTC, &days(&["2020-01-01", "2020-01-04"]), &days(&["2020-01-02"]));
        assert_eq!(found, [period_of("2020-01-03").unwrap()]);
    }

    #[test]
    fn gaps_cross_ends_of_months_and_leap_days() {
        assert_eq!(missing(Tz::UTC, &["2020-02-27", "2020-03-02"]), ["2020-02-28", "2020-02-29", "2020-03-01"]);
        assert_eq!(missing(Tz::UTC, &["2019-02-28", "2019-03-01"]), [""; 0]);
        assert_eq!(missing(Tz::UTC, &["2019-12-30", "2020-01-01"]), ["2019-12-31"]);
        assert_eq!(missing(Tz::UTC, &["2020-01-01"]), [""; 0]);
        assert_eq!(missing(Tz::UTC, &[]), [""; 0]);
        // Samoa had no 30 December 2011.
        assert_eq!(missing(Tz::Pacific__Apia, &["2011-12-28", "2011-12-31"]), ["2011-12-29"]);
    }

    #[test]
    fn a_day_is_as_old_as_its_end_is_past() {
        let end = 10 * DAY;
        let hour = DAY / 24;
        assert!(!is_overdue(end + 26 * hour, 26 * hour, Some(end)));
        assert!(is_overdue(end + 26 * hour + 1, 26 * hour, Some(end)));
        assert!(!is_overdue(end - hour, 0, Some(end)), "a day that is not over is fresh");
        assert!(is_overdue(end, 26 * hour, None), "what never was is stale");
        assert_eq!((age(end, end + 1), age(i64::MAX, i64::MIN)), (0, i64::MAX));
    }

    #[test]
    fn days_of_a_zone_lie_in_two_utc_days() {
        let bounds = |tz, day: &str| utc_days(&period_of(day).unwrap().bounds(tz));
        assert_eq!(bounds(Tz::UTC, "1970-01-02"), 1..2);
        assert_eq!(bounds(Tz::Europe__Paris, "1970-01-02"), 0..2);
        assert_eq!(bounds(Tz::America__New_York, "1970-01-02"), 1..3);
        assert_eq!(utc_days(&(5..5)), 0..0);
    }
}
