//! Dates, times and intervals as text, in the style `ISO`.

use std::fmt::Write;

use arrow::datatypes::IntervalMonthDayNano;
use bytes::BytesMut;
use tidetable_layout::time::civil_from_days;

const MICROS_PER_SECOND: i64 = 1_000_000;
pub(crate) const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;
pub(crate) const NANOS_PER_MICRO: i64 = 1_000;

/// Appends the day of so many days since 1970-01-01.
pub(crate) fn date(out: &mut BytesMut, days: i64) {
    let era = date_of_era(out, days);
    put(out, format_args!("{era}"));
}

/// Appends a day, and returns what follows it and its time: ` BC` for years before the first.
fn date_of_era(out: &mut BytesMut, days: i64) -> &'static str {
    let (year, month, day) = civil_from_days(days);
    let (year, era) = if year > 0 { (year, "") } else { (1 - year, " BC") };
    put(out, format_args!("{year:04}-{month:02}-{day:02}"));
    era
}

/// Appends a time of day, microseconds.
pub(crate) fn time(out: &mut BytesMut, micros: i64) {
    let (seconds, rest) = (micros.div_euclid(MICROS_PER_SECOND), micros.rem_euclid(MICROS_PER_SECOND));
    put(out, format_args!("{:02}:{:02}:{:02}", seconds / 3_600, seconds / 60 % 60, seconds % 60));
    fraction(out, rest);
}

/// Appends a time, microseconds since 1970-01-01. With `is_moment` it has an offset, which is that of UTC.
pub(crate) fn timestamp(out: &mut BytesMut, micros: i64, is_moment: bool) {
    let era = date_of_era(out, micros.div_euclid(MICROS_PER_DAY));
    put(out, format_args!(" "));
    time(out, micros.rem_euclid(MICROS_PER_DAY));
    put(out, format_args!("{}{era}", if is_moment { "+00" } else { "" }));
}

/// Appends an interval, in the style `postgres`.
pub(crate) fn interval(out: &mut BytesMut, value: IntervalMonthDayNano) {
    let (years, months) = (value.months / 12, value.months % 12);
    let mut is_first = true;
    for (count, unit) in [(years, "year"), (months, "mon"), (value.days, "day")] {
        if count != 0 {
            let (space, plural) = (if is_first { "" } else { " " }, if count == 1 { "" } else { "s" });
            put(out, format_args!("{space}{count} {unit}{plural}"));
            is_first = false;
        }
    }

    let micros = value.nanoseconds / NANOS_PER_MICRO;
    if micros != 0 || is_first {
        let (space, sign) = (if is_first { "" } else { " " }, if micros < 0 { "-" } else { "" });
        put(out, format_args!("{space}{sign}"));
        time(out, micros.saturating_abs());
    }
}

/// Appends microseconds of a second without zeros at the end.
fn fraction(out: &mut BytesMut, micros: i64) {
    if micros != 0 {
        let digits = format!("{micros:06}");
        put(out, format_args!(".{}", digits.trim_end_matches('0')));
    }
}

fn put(out: &mut BytesMut, text: std::fmt::Arguments<'_>) {
    // A buffer in memory takes all.
    let _ = out.write_fmt(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::text::tests::shown;

    #[test]
    fn times_are_in_the_style_iso() {
        assert_eq!(shown(|out| timestamp(out, 0, true)), "1970-01-01 00:00:00+00");
        assert_eq!(shown(|out| timestamp(out, -1, false)), "1969-12-31 23:59:59.999999");
        assert_eq!(shown(|out| timestamp(out, 1_500_000, false)), "1970-01-01 00:00:01.5");
        assert_eq!(shown(|out| timestamp(out, -62_135_596_800_000_001, true)), "0001-12-31 23:59:59.999999+00 BC");
        assert_eq!(shown(|out| date(out, 19_723)), "2024-01-01");
        assert_eq!(shown(|out| date(out, -719_528)), "0001-01-01 BC");
        assert_eq!(shown(|out| time(out, 3_661_000_001)), "01:01:01.000001");
    }

    #[test]
    fn intervals_name_their_parts() {
        let of = |months, days, nanos| shown(|out| interval(out, IntervalMonthDayNano::new(months, days, nanos)));
        assert_eq!(of(14, 3, 0), "1 year 2 mons 3 days");
        assert_eq!(of(0, 0, 0), "00:00:00");
        assert_eq!(of(0, 1, -1_500_000_000), "1 day -00:00:01.5");
        assert_eq!(of(-1, 0, 3_600_000_000_000), "-1 mons 01:00:00");
    }
}
