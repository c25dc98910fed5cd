//! Calendar arithmetic on integers: proleptic Gregorian, UTC.

/// Microseconds per second.
pub const SECOND: i64 = 1_000_000;
/// Microseconds per minute.
pub const MINUTE: i64 = 60 * SECOND;
/// Microseconds per hour.
pub const HOUR: i64 = 60 * MINUTE;
/// Microseconds per day.
pub const DAY: i64 = 24 * HOUR;

/// 0000-01-01 in microseconds: the earliest time that templates print.
pub(crate) const FIRST_TIME: i64 = -62_167_219_200_000_000;
/// The last microsecond of 9999.
pub(crate) const LAST_TIME: i64 = 253_402_300_799_999_999;

/// Days of the 400 years after which the calendar repeats.
const DAYS_OF_ERA: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01. Years counted from March put the leap day last.
const EPOCH_SHIFT: i64 = 719_468;

/// Year, month (1..=12) and day (1..=31) of a day since the epoch.
pub fn civil_of_days(days: i64) -> (i64, u32, u32) {
    let shifted = days + EPOCH_SHIFT;
    let era = shifted.div_euclid(DAYS_OF_ERA);
    let of_era = shifted.rem_euclid(DAYS_OF_ERA);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month as u32, day as u32)
}

/// Day since the epoch of a date; days past the end of the month carry over.
pub fn days_of_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let from_march = (i64::from(month) + 9) % 12;
    let of_year = (153 * from_march + 2) / 5 + i64::from(day) - 1;
    era * DAYS_OF_ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - EPOCH_SHIFT
}

/// ISO 8601 year and week (1..=53) of a day since the epoch.
pub fn iso_week(days: i64) -> (i64, u32) {
    // A week belongs to the year of its Thursday.
    let thursday = days - (days + 3).rem_euclid(7) + 3;
    let (year, _, _) = civil_of_days(thursday);
    (year, ((thursday - days_of_civil(year, 1, 1)) / 7 + 1) as u32)
}

/// Monday of an ISO week, as a day since the epoch.
pub(crate) fn days_of_iso_week(year: i64, week: u32) -> i64 {
    let fourth = days_of_civil(year, 1, 4);
    fourth - (fourth + 3).rem_euclid(7) + 7 * (i64::from(week) - 1)
}

/// The calendar fields of a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Civil {
    pub(crate) days: i64,
    pub(crate) year: i64,
    pub(crate) month: u32,
    pub(crate) day: u32,
    /// Microseconds of the day.
    pub(crate) micros: i64,
}

/// Splits times into calendar fields. Caches the last day, because telemetry is ordered by time.
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
    pub(crate) fn at(&mut self, time_us: i64) -> Civil {
        let days = time_us.div_euclid(DAY);
        if days != self.days {
            self.days = days;
            self.date = civil_of_days(days);
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
            assert_eq!(civil_of_days(days), (i64::from(date.year()), date.month(), date.day()));
            assert_eq!(days_of_civil(i64::from(date.year()), date.month(), date.day()), days);
            let week = date.iso_week();
            assert_eq!(iso_week(days), (i64::from(week.year()), week.week()));
            let monday = days - i64::from(date.weekday().num_days_from_monday());
            assert_eq!(days_of_iso_week(i64::from(week.year()), week.week()), monday);
        }
    }
}
