//! Calendar arithmetic on integers: proleptic Gregorian, UTC. Days count from the epoch, 1970-01-01.
//!
//! `civil_from_days` and `days_from_civil` are those of Howard Hinnant's "chrono-Compatible Low-Level Date Algorithms".

/// The microseconds of a second, the unit of all times here.
pub const SECOND: i64 = 1_000_000;
/// The microseconds of a minute.
pub const MINUTE: i64 = 60 * SECOND;
/// The microseconds of an hour.
pub const HOUR: i64 = 60 * MINUTE;
/// The microseconds of a day of UTC, which has no leap seconds.
pub const DAY: i64 = 24 * HOUR;

/// 0000-01-01 in microseconds since the epoch: the earliest instant that a template can format.
pub(crate) const MIN_TIME: i64 = -62_167_219_200_000_000;
/// The last microsecond of the year 9999: the latest instant that a template can format.
pub(crate) const MAX_TIME: i64 = 253_402_300_799_999_999;

/// Days of an era, the 400 years after which the calendar repeats.
const DAYS_PER_ERA: i64 = 146_097;
/// Days from 0000-03-01, the start of an era, to the epoch. In years that begin in March the leap day is the last.
const ERA_TO_EPOCH: i64 = 719_468;

/// Year, month (1..=12) and day of the month (1..=31) of a day since the epoch.
pub fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let shifted = days + ERA_TO_EPOCH;
    let era = shifted.div_euclid(DAYS_PER_ERA);
    let day_of_era = shifted.rem_euclid(DAYS_PER_ERA);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month as u32, day as u32)
}

/// Day since the epoch of a date. A `day` past the end of the month counts on into the next: April 31 is May 1.
pub fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    era * DAYS_PER_ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - ERA_TO_EPOCH
}

/// ISO 8601 year and week (1..=53) of a day since the epoch.
pub fn iso_week(days: i64) -> (i64, u32) {
    // A week belongs to the year of its Thursday.
    let thursday = days - (days + 3).rem_euclid(7) + 3;
    let (year, _, _) = civil_from_days(thursday);
    (year, ((thursday - days_from_civil(year, 1, 1)) / 7 + 1) as u32)
}

/// Monday of an ISO week, as a day since the epoch.
pub(crate) fn days_of_iso_week(year: i64, week: u32) -> i64 {
    // January 4 is always in week 1.
    let january_4 = days_from_civil(year, 1, 4);
    january_4 - (january_4 + 3).rem_euclid(7) + 7 * (i64::from(week) - 1)
}

/// The calendar fields of an instant in UTC.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Civil {
    /// The day, counted from the epoch.
    pub(crate) days: i64,
    pub(crate) year: i64,
    pub(crate) month: u32,
    pub(crate) day: u32,
    /// The microseconds since midnight.
    pub(crate) micros: i64,
}

/// Splits instants into calendar fields. Caches the date of the preceding instant, because records are ordered by time
/// and most are of the same day as the one before.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Calendar {
    days: i64,
    date: (i64, u32, u32),
}

impl Default for Calendar {
    fn default() -> Self {
        Self { days: 0, date: (1970, 1, 1) }
    }
}

impl Calendar {
    /// The calendar fields of an instant in microseconds since the epoch.
    pub(crate) fn at(&mut self, time_us: i64) -> Civil {
        let days = time_us.div_euclid(DAY);
        if days != self.days {
            self.days = days;
            self.date = civil_from_days(days);
        }
        let (year, month, day) = self.date;
        Civil { days, year, month, day, micros: time_us.rem_euclid(DAY) }
    }
}

#[cfg(test)]
mod tests {
    use chrono::{Datelike, NaiveDate, TimeDelta};

    use super::*;

    #[test]
    fn dates_agree_with_chrono_over_800_years() {
        let epoch = NaiveDate::from_ymd_opt(1970, 1, 1).unwrap();
        for days in (-200_000..100_000).step_by(7).chain(18_000..19_500) {
            let date = epoch + TimeDelta::days(days);
            assert_eq!(civil_from_days(days), (i64::from(date.year()), date.month(), date.day()));
            assert_eq!(days_from_civil(i64::from(date.year()), date.month(), date.day()), days);
            let week = date.iso_week();
            assert_eq!(iso_week(days), (i64::from(week.year()), week.week()));
            let monday = days - i64::from(date.weekday().num_days_from_monday());
            assert_eq!(days_of_iso_week(i64::from(week.year()), week.week()), monday);
        }
    }
}
