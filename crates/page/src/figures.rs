//! Numbers, bytes, dollars and times as text.

use chrono::DateTime;

use crate::view::{Figure, Unit};

/// Bytes from which a table shows units instead of the exact number.
const EXACT: u64 = 10_000_000;
/// A minute in microseconds.
const MINUTE: i64 = 60_000_000;
const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];

/// Groups the digits of a number: `13,925`.
pub(crate) fn grouped(number: u64) -> String {
    grouped_digits(&number.to_string())
}

fn grouped_digits(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with so many decimals, grouped: `1,234.50`.
pub(crate) fn decimals(number: f64, decimals: usize) -> String {
    let text = format!("{number:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    match whole.strip_prefix('-') {
        Some(digits) => format!("-{}{rest}", grouped_digits(digits)),
        None => format!("{}{rest}", grouped_digits(whole)),
    }
}

/// A measure with as many decimals as it has, three at most.
pub(crate) fn measure(number: f64) -> String {
    let text = decimals(number, 3);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Bytes in the largest unit that leaves a whole: `662 KiB`, `1.27 GiB`.
pub(crate) fn bytes(number: u64) -> String {
    let (mut value, mut unit) = (number as f64, None);
    for name in UNITS {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, Some(name));
    }
    match unit {
        None => format!("{number} B"),
        Some(unit) if value < 9.995 => format!("{value:.2} {unit}"),
        Some(unit) if value < 99.95 => format!("{value:.1} {unit}"),
        Some(unit) => format!("{} {unit}", decimals(value, 0)),
    }
}

/// Bytes to the byte while that is readable, with units above.
pub(crate) fn exact_bytes(number: u64) -> String {
    if number < EXACT { grouped(number) } else { bytes(number) }
}

/// US dollars with two decimals: `$474.50`.
pub(crate) fn dollars(number: f64) -> String {
    format!("${}", decimals(number, 2))
}

/// A range as one number where both ends read the same.
pub(crate) fn range(least: String, most: String) -> String {
    if least == most { least } else { format!("{least} – {most}") }
}

/// A figure of a table; nothing measured is a dash.
pub(crate) fn figure(figure: &Figure, unit: Unit) -> String {
    let number = match figure {
        Figure::None => return "–".to_owned(),
        Figure::Text(text) => return visible(text),
        Figure::Whole(number) => *number as f64,
        Figure::Real(number) => *number,
    };
    match (unit, figure) {
        (Unit::Bytes, Figure::Whole(number)) => exact_bytes(*number),
        (Unit::Bytes, _) => exact_bytes(number.round() as u64),
        (Unit::Share, _) => decimals(number, 3),
        (Unit::Ratio, _) => decimals(number, 2),
        (Unit::Dollars, _) => dollars(number),
        (Unit::Count | Unit::Text, Figure::Whole(number)) => grouped(*number),
        (Unit::Count | Unit::Text, _) => measure(number),
    }
}

/// The number of a figure that is one.
pub(crate) fn number(figure: &Figure) -> Option<f64> {
    match figure {
        Figure::Whole(number) => Some(*number as f64),
        Figure::Real(number) => Some(*number),
        Figure::None | Figure::Text(_) => None,
    }
}

/// A time in UTC: `2018-01-05 04:15`, with seconds where it has some.
pub(crate) fn time(micros: i64) -> String {
    let Some(time) = DateTime::from_timestamp_micros(micros) else { return micros.to_string() };
    let format = match (micros.rem_euclid(60_000_000), micros.rem_euclid(1_000_000)) {
        (0, _) => "%Y-%m-%d %H:%M",
        (_, 0) => "%Y-%m-%d %H:%M:%S",
        _ => "%Y-%m-%d %H:%M:%S%.6f",
    };
    time.format(format).to_string()
}

/// Text in which control characters can be seen: HTML would drop or replace them.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            c if c.is_control() => shown.extend(c.escape_default()),
            c => shown.push(c),
        }
    }
    shown
}

/// A length of time in its largest whole unit: `15 min`.
pub(crate) fn length(micros: i64) -> String {
    let units = [(MINUTE * 60 * 24, "d"), (MINUTE * 60, "h"), (MINUTE, "min"), (MINUTE / 60, "s")];
    let whole = units.iter().find(|(unit, _)| micros % unit == 0);
    whole.map_or(format!("{micros} µs"), |(unit, name)| format!("{} {name}", micros / unit))
}

/// How long something took, in its two largest units: `0.25 s`, `48 s`, `2 h 30 min`.
pub(crate) fn duration(seconds: f64) -> String {
    if seconds < 10.0 {
        return format!("{seconds:.2} s");
    }
    let whole = seconds.round() as u64;
    let units = [(86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")];
    let first = units.iter().position(|(unit, _)| whole >= *unit).unwrap_or(units.len() - 1);
    let mut rest = whole;
    let mut parts = Vec::new();
    for (unit, name) in units.iter().skip(first).take(2) {
        if rest >= *unit {
            parts.push(format!("{} {name}", rest / unit));
        }
        rest %= unit;
    }
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        assert_eq!([0.0, 0.254, 9.99, 48.4].map(duration), ["0.00 s", "0.25 s", "9.99 s", "48 s"]);
        assert_eq!([59.6, 125.0, 9_000.0, 7_199.0].map(duration), ["1 min", "2 min 5 s", "2 h 30 min", "1 h 59 min"]);
        assert_eq!([86_400.0, 90_061.0].map(duration), ["1 d", "1 d 1 h"]);
    }

    #[test]
    fn lengths_have_whole_units() {
        assert_eq!([15 * MINUTE, 60 * MINUTE, 48 * 60 * MINUTE].map(length), ["15 min", "1 h", "2 d"]);
        assert_eq!((length(90_000_000), length(1)), ("90 s".to_owned(), "1 µs".to_owned()));
    }

    #[test]
    fn numbers_are_grouped() {
        assert_eq!([0, 999, 1_000, 678_351, 1_000_000].map(grouped), ["0", "999", "1,000", "678,351", "1,000,000"]);
        assert_eq!(decimals(-1234.567, 2), "-1,234.57");
        assert_eq!((measure(12.0), measure(0.25)), ("12".to_owned(), "0.25".to_owned()));
    }

    #[test]
    fn bytes_have_three_digits() {
        assert_eq!([0, 1023, 1024, 10_239].map(bytes), ["0 B", "1023 B", "1.00 KiB", "10.0 KiB"]);
        assert_eq!([678_351, 1_363_148_800].map(bytes), ["662 KiB", "1.27 GiB"]);
        assert_eq!((exact_bytes(9_999_999), exact_bytes(10_000_000)), ("9,999,999".to_owned(), "9.54 MiB".to_owned()));
    }

    #[test]
    fn control_characters_are_seen() {
        assert_eq!(visible("a\0b\u{9b}#é"), "a\\u{0}b\\u{9b}#é");
    }
}
