//! Names of columns that hold a part of a time: a day, an hour, a minute, a second.

use crate::scaffold::calendar::year_part::MONTH_NAMES;

/// Names of days of a month, or of the year where they are beyond 31.
pub(crate) const DAY_NAMES: [&str; 10] = ["day", "dy", "dd", "mday", "tag", "jour", "día", "dia", "giorno", "dag"];
/// Names of days of the year.
pub(crate) const DAYS_OF_YEAR: [&str; 7] =
    ["doy", "jday", "yday", "dayofyear", "day_of_year", "julian_day", "julianday"];
/// Names of hours, minutes and seconds.
pub(crate) const HOUR_NAMES: [&str; 8] = ["hour", "hr", "hh", "stunde", "heure", "hora", "ora", "uur"];
pub(crate) const MINUTE_NAMES: [&str; 4] = ["minute", "min", "mi", "mm"];
pub(crate) const SECOND_NAMES: [&str; 3] = ["second", "sec", "ss"];

/// Whether a column of this name holds a month or a part of one, so that zeros in front of its numbers make them no codes.
pub(crate) fn is_named_time_part(name: &str) -> bool {
    let name = name.trim().to_lowercase();
    let lists = [&MONTH_NAMES[..], &DAY_NAMES, &DAYS_OF_YEAR, &HOUR_NAMES, &MINUTE_NAMES, &SECOND_NAMES];
    lists.iter().any(|names| names.contains(&name.as_str()))
}

/// Whether a column has no name in its file, and is called by its place.
pub(crate) fn is_unnamed(name: &str) -> bool {
    name.strip_prefix("column_").is_some_and(|place| place.bytes().all(|byte| byte.is_ascii_digit()))
}
