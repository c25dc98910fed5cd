//! Period of a part: a day or month of the job's time zone, an hour of UTC, or all times.

use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, NaiveDateTime, NaiveTime, Timelike};
use chrono_tz::Tz;
use tidetable_layout::time::HOUR;

use crate::calendar::day::{day_bounds, day_of, days_touched};
use crate::calendar::per::Per;

/// The label of the only part of an export with `per = "query"`.
pub const ALL: &str = "all";

/// The time that a part covers. Periods of one kind do not overlap, and sort by time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Period {
    /// Its start as its name shows it: local time, but UTC for an hour.
    pub start: NaiveDateTime,
    /// What it covers: a day, an hour, a month, or everything.
    pub per: Per,
}

impl Period {
    /// The only period of an export that is not divided by time.
    pub fn all() -> Self {
        Self { start: NaiveDateTime::default(), per: Per::Query }
    }

    /// A day of a job's time zone, by its date there.
    pub fn day(day: NaiveDate) -> Self {
        Self { start: day.and_time(NaiveTime::MIN), per: Per::Day }
    }

    /// Parses a label; `None` if it is not one of this kind.
    pub fn of_label(per: Per, label: &str) -> Option<Self> {
        let start = match per {
            Per::Day => label.parse::<NaiveDate>().ok()?.and_time(NaiveTime::MIN),
            Per::Month => format!("{label}-01").parse::<NaiveDate>().ok()?.and_time(NaiveTime::MIN),
            Per::Hour => {
                NaiveDateTime::parse_from_str(&format!("{}:00", label.strip_suffix('Z')?), "%Y-%m-%dT%H:%M").ok()?
            }
            Per::Query => return (label == ALL).then(Self::all),
        };
        let period = Self { start, per };
        (period.label() == label).then_some(period)
    }

    /// The periods of this kind that overlap a day of `tz`.
    pub fn of_day(per: Per, tz: Tz, day: NaiveDate) -> Vec<Self> {
        match per {
            Per::Day => vec![Self::day(day)],
            Per::Month => {
                day.with_day(1).map(|first| Self { start: first.and_time(NaiveTime::MIN), per }).into_iter().collect()
            }
            Per::Query => vec![Self::all()],
            Per::Hour => Self::touched(per, tz, day_bounds(tz, day)).into_iter().collect(),
        }
    }

    /// The periods of this kind that overlap `range`, microseconds since the epoch.
    pub fn touched(per: Per, tz: Tz, range: Range<i64>) -> BTreeSet<Self> {
        match per {
            Per::Hour => {
                let hours = range.start.div_euclid(HOUR)..=(range.end - 1).div_euclid(HOUR);
                let starts = hours.filter_map(|hour| DateTime::from_timestamp_micros(hour * HOUR));
                starts.map(|start| Self { start: start.naive_utc(), per }).collect()
            }
            _ => days_touched(tz, range).flat_map(|day| Self::of_day(per, tz, day)).collect(),
        }
    }

    /// Its name in lists and messages: `2018-01-31`, `2018-01`, `2018-01-31T07Z`, `all`.
    pub fn label(&self) -> String {
        match self.per {
            Per::Day => self.start.format("%Y-%m-%d").to_string(),
            Per::Month => self.start.format("%Y-%m").to_string(),
            Per::Hour => self.start.format("%Y-%m-%dT%HZ").to_string(),
            Per::Query => ALL.to_owned(),
        }
    }

    /// Start and end in microseconds since the epoch; the end belongs to the next period.
    pub fn bounds(&self, tz: Tz) -> Range<i64> {
        let day = self.start.date();
        match self.per {
            Per::Day => day_bounds(tz, day),
            Per::Month => {
                let next = day.checked_add_months(Months::new(1)).unwrap_or(NaiveDate::MAX);
                day_bounds(tz, day).start..day_bounds(tz, next).start
            }
            Per::Hour => {
                let start = self.start.with_minute(0).unwrap_or(self.start).and_utc().timestamp_micros();
                start..start.saturating_add(HOUR)
            }
            Per::Query => i64::MIN..i64::MAX,
        }
    }

    /// The first and the last day of `tz` that it overlaps.
    pub fn days(&self, tz: Tz) -> (NaiveDate, NaiveDate) {
        let day = self.start.date();
        match self.per {
            Per::Day => (day, day),
            Per::Month => {
                let last = day.checked_add_months(Months::new(1)).and_then(|next| next.checked_sub_days(Days::new(1)));
                (day, last.unwrap_or(day))
            }
            Per::Hour => {
                let bounds = self.bounds(tz);
                (day_of(tz, bounds.start).unwrap_or(day), day_of(tz, bounds.end - 1).unwrap_or(day))
            }
            Per::Query => (NaiveDate::MIN, NaiveDate::MAX),
        }
    }

    /// Whether it overlaps one of `days` of `tz`, of which both ends are included.
    pub fn overlaps(&self, tz: Tz, days: &RangeInclusive<NaiveDate>) -> bool {
        let (first, last) = self.days(tz);
        *days.start() <= last && first <= *days.end()
    }
}

#[cfg(test)]
mod tests {
    use chrono_tz::{America, Asia, Europe};

    use super::*;

    fn labels(per: Per, tz: Tz, day: &str) -> Vec<String> {
        Period::of_day(per, tz, day.parse().unwrap()).iter().map(Period::label).collect()
    }

    #[test]
    fn labels_read_back() {
        for (per, label) in
            [(Per::Day, "2024-02-29"), (Per::Month, "2024-12"), (Per::Hour, "2024-12-31T23Z"), (Per::Query, "all")]
        {
            assert_eq!(Period::of_label(per, label).unwrap().label(), label);
        }
        for (per, label) in [
            (Per::Day, "2024-02-30"),
            (Per::Month, "2024-13"),
            (Per::Hour, "2024-12-31T24Z"),
            (Per::Hour, "2024-12-31T23"),
            (Per::Query, "2024"),
        ] {
            assert_eq!(Period::of_label(per, label), None, "{label}");
        }
    }

    #[test]
    fn a_day_has_as_many_hours_as_its_zone_says() {
        assert_eq!(labels(Per::Hour, Europe::Paris, "2026-03-29").len(), 23);
        assert_eq!(labels(Per::Hour, Europe::Paris, "2026-10-25").len(), 25);
        // 30 minutes off UTC: the hours at both ends are shared with the neighbouring days.
        assert_eq!(labels(Per::Hour, Asia::Kolkata, "2026-10-25").len(), 25);
        assert_eq!(labels(Per::Month, America::Sao_Paulo, "2024-02-29"), ["2024-02"]);
    }

    #[test]
    fn months_partition_time() {
        let mut month = Period::of_label(Per::Month, "2009-12").unwrap();
        for _ in 0..120 {
            let bounds = month.bounds(America::Sao_Paulo);
            let next = Period::touched(Per::Month, America::Sao_Paulo, bounds.end..bounds.end + 1).pop_first().unwrap();
            assert_eq!(next.bounds(America::Sao_Paulo).start, bounds.end);
            assert_eq!(month.days(America::Sao_Paulo).1.succ_opt().unwrap(), next.start.date());
            month = next;
        }
        assert_eq!(month.label(), "2019-12");
    }
}
