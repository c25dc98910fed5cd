//! Counts, sizes, days and times as text.

use std::ops::RangeInclusive;

use arrow::array::{Array, AsArray};
use arrow::datatypes::TimestampMicrosecondType;
use chrono::{DateTime, NaiveDate, SecondsFormat, TimeZone};
use chrono_tz::Tz;

/// `1 row`, `7,200 rows`.
pub fn count(number: u64, noun: &str) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    let plural = if number == 1 { "" } else { "s" };
    format!("{text} {noun}{plural}")
}

/// Most names of [`listed`].
const LISTED: usize = 8;

/// The first names, and the number of the others.
pub fn listed(names: &[String]) -> String {
    let shown = names.iter().take(LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Bytes with a unit: `1.4 KiB`.
pub fn bytes(number: u64) -> String {
    indicatif::HumanBytes(number).to_string()
}

/// A length of time in its largest whole unit: `15 min`.
pub fn length(seconds: i64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "min")];
    let whole = units.into_iter().find(|(unit, _)| seconds != 0 && seconds % unit == 0);
    whole.map_or_else(|| format!("{seconds} s"), |(unit, name)| format!("{} {name}", seconds / unit))
}

/// A UTC day, given in days since the epoch.
pub fn day(days: i32) -> Option<String> {
    NaiveDate::from_epoch_days(days).map(|day| day.to_string())
}

/// First and last microsecond of the years 0 to 9999, which dates are written of.
const CALENDAR: RangeInclusive<i64> = -62_167_219_200_000_000..=253_402_300_799_999_999;

/// The number of a time in microseconds that is no date of the years 0 to 9999: timestamps of cells may be numbers, such as
/// versions.
pub(crate) fn number_of_time(array: &dyn Array, row: usize) -> Option<i64> {
    let micros = array.as_primitive_opt::<TimestampMicrosecondType>()?.value(row);
    (!CALENDAR.contains(&micros)).then_some(micros)
}

/// A time in RFC 3339, given in microseconds since the epoch; `None` beyond the years 0 to 9999.
pub fn time(micros: i64) -> Option<String> {
    let time = DateTime::from_timestamp_micros(micros).filter(|_| CALENDAR.contains(&micros));
    time.map(|time| time.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}

/// A time in RFC 3339 without its fraction of a second, for tables that a person reads.
pub fn time_to_second(micros: i64) -> Option<String> {
    time(micros - micros.rem_euclid(1_000_000))
}

/// A time in a zone, with the offset.
pub fn local_time(zone: Tz, micros: i64) -> Option<String> {
    let time = zone.timestamp_micros(micros).single();
    time.map(|time| time.to_rfc3339_opts(SecondsFormat::Secs, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_beyond_the_calendar_are_numbers() {
        let last = 253_402_300_799_999_999;
        assert_eq!(time(last).as_deref(), Some("9999-12-31T23:59:59.999999Z"));
        assert_eq!((time(last + 1), time(i64::MAX)), (None, None));
        let times = arrow::array::TimestampMicrosecondArray::from(vec![last, last + 1, i64::MAX]);
        let numbers: Vec<Option<i64>> = (0..3).map(|row| number_of_time(&times, row)).collect();
        assert_eq!(numbers, [None, Some(last + 1), Some(i64::MAX)]);
    }

    #[test]
    fn counts_have_commas() {
        assert_eq!(count(1, "row"), "1 row");
        assert_eq!(count(999, "row"), "999 rows");
        assert_eq!(count(7200, "row"), "7,200 rows");
        assert_eq!(count(19_200_000, "cell"), "19,200,000 cells");
    }
}
