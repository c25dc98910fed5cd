//! Dates of the proleptic Gregorian calendar as days since the epoch, in integer arithmetic.

/// Microseconds in a day.
pub(crate) const DAY: i64 = 86_400_000_000;
/// Days in 400 years.
const ERA: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH: i64 = 719_468;

/// A date.
pub(crate) struct Date {
    pub(crate) year: i64,
    /// 1 to 12.
    pub(crate) month: i64,
    /// 1 to 31.
    pub(crate) day: i64,
}

impl Date {
    /// The date of a day since the epoch. Years begin in March here, so that the leap day is the last of its year.
    pub(crate) fn of(day: i64) -> Self {
        let (era, of_era) = ((day + EPOCH).div_euclid(ERA), (day + EPOCH).rem_euclid(ERA));
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // Five months from March have 153 days.
        let shifted = (5 * of_year + 2) / 153;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        Self { year, month, day: of_year - (153 * shifted + 2) / 5 + 1 }
    }
}

/// Days since the epoch of a date.
pub(crate) fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, shifted) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * shifted + 2) / 5 + day - 1;
    era * ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year - EPOCH
}

/// The Monday of the week of a day; the epoch was a Thursday.
pub(crate) fn monday(day: i64) -> i64 {
    day - (day + 3).rem_euclid(7)
}

/// ISO 8601 year and week of a day: a week belongs to the year of its Thursday.
pub(crate) fn iso_week(day: i64) -> (i64, i64) {
    let thursday = monday(day) + 3;
    let year = Date::of(thursday).year;
    (year, (thursday - days(year, 1, 1)) / 7 + 1)
}
