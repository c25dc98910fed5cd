//! Shapes of texts: what a list of keys' parts, qualifiers or values looks like. Pure functions.

use chrono::{DateTime, NaiveDate, NaiveDateTime};
use tidetable_layout::FieldType;

/// Epoch milliseconds of 1990 and 2100: numbers between are taken for times.
const TIMES: std::ops::Range<i64> = 631_152_000_000..4_102_444_800_000;

/// strftime formats of fixed width, by their number of bytes.
const FORMATS: [(&str, usize); 9] = [
    ("%Y%m%d%H%M%S", 14),
    ("%Y%m%d%H%M", 12),
    ("%Y%m%d%H", 10),
    ("%Y%m%d", 8),
    ("%Y-%m-%d", 10),
    ("%Y%m", 6),
    ("%H%M%S", 6),
    ("%H%M", 4),
    ("%H", 2),
];

/// What the texts of a place have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Shape {
    /// A time in a form of templates, such as `%Y%m%d` or `ms-reversed`.
    Time(String),
    /// Integers, zero-padded to a width if there is one.
    Integer(Option<usize>),
    /// Padded with spaces to a width.
    Padded(usize),
    /// The same text everywhere.
    Constant(String),
    /// Text without any of these.
    Text,
}

/// Whether `text` has the form, which printed `time` if that is given, microseconds since the epoch.
pub(super) fn is_time(form: &str, text: &str, time: Option<i64>) -> bool {
    let width = match form {
        "s" => 10,
        "ms" => 13,
        "us" => 16,
        "ms-reversed" => 19,
        format => return is_formatted(format, text, time),
    };
    let number = text.parse::<i64>().ok().filter(|number| *number >= 0 && text.len() == width);
    let millis = number.map(|number| match form {
        "s" => number.saturating_mul(1000),
        "us" => number / 1000,
        "ms-reversed" => i64::MAX - number,
        _ => number,
    });
    let Some(millis) = millis.filter(|millis| TIMES.contains(millis)) else { return false };
    let unit = if form == "s" { 1000 } else { 1 };
    time.is_none_or(|time| time.div_euclid(1000) / unit == millis / unit)
}

fn is_formatted(format: &str, text: &str, time: Option<i64>) -> bool {
    let fits = FORMATS.iter().any(|(known, width)| *known == format && *width == text.len());
    let parsed = match format {
        "%Y%m%d" | "%Y-%m-%d" => NaiveDate::parse_from_str(text, format).is_ok(),
        "%Y%m" => NaiveDate::parse_from_str(&format!("{text}01"), "%Y%m%d").is_ok(),
        "%Y%m%d%H" => NaiveDateTime::parse_from_str(&format!("{text}00"), "%Y%m%d%H%M").is_ok(),
        "%H" => text.parse::<u8>().is_ok_and(|hour| hour < 24),
        "%H%M" => chrono::NaiveTime::parse_from_str(text, format).is_ok(),
        "%H%M%S" => chrono::NaiveTime::parse_from_str(text, format).is_ok(),
        _ => NaiveDateTime::parse_from_str(text, format).is_ok(),
    };
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit() || (byte == b'-' && format.contains('-')));
    let printed = time.map(|time| DateTime::from_timestamp_micros(time).map(|time| time.format(format).to_string()));
    let is_of_time = printed.is_none_or(|printed| printed.as_deref() == Some(text));
    let is_recent = !format.starts_with("%Y") || text.get(..4).is_some_and(|year| ("1970".."2100").contains(&year));
    fits && parsed && is_digits && is_recent && is_of_time
}

/// The form of times that all of `texts` have; each with the time that it goes with, if there is one.
pub(super) fn time_form(texts: &[(&str, Option<i64>)]) -> Option<String> {
    if texts.is_empty() {
        return None;
    }
    let mut forms = ["ms-reversed", "us", "ms", "s"].into_iter().chain(FORMATS.map(|(format, _)| format));
    let form = forms.find(|form| texts.iter().all(|(text, time)| is_time(form, text, *time)));
    form.map(str::to_owned)
}

/// The shape of texts that are not times.
pub(super) fn shape(texts: &[&str]) -> Shape {
    let Some(first) = texts.first() else { return Shape::Text };
    if texts.len() > 1 && texts.iter().all(|text| text == first) {
        return Shape::Constant((*first).to_owned());
    }
    let width = first.len();
    let is_fixed = texts.iter().all(|text| text.len() == width);

    let are_numbers = texts.iter().all(|text| text.len() < 20 && is_digits(text));
    if are_numbers && texts.iter().all(|text| text.len() == 1 || !text.starts_with('0')) {
        return Shape::Integer(None);
    }
    if are_numbers && is_fixed && width <= 19 {
        return Shape::Integer(Some(width));
    }
    if is_fixed && texts.iter().any(|text| text.ends_with(' ')) {
        return Shape::Padded(width);
    }
    Shape::Text
}

/// The type of values that are text.
pub(super) fn value_type(texts: &[&str]) -> FieldType {
    let Some(first) = texts.first() else { return FieldType::Text };
    if texts.iter().all(|text| text.parse::<i64>().is_ok_and(|number| number.to_string() == **text)) {
        return FieldType::Int64;
    }

    // All with as many digits after the point, one of them a zero at the end: floats are not written so.
    let ends_by_zero = texts.iter().any(|text| text.ends_with('0'));
    if let Some(scale) = scale_of(first).filter(|_| ends_by_zero)
        && texts.iter().all(|text| scale_of(text) == Some(scale))
    {
        return FieldType::Decimal { precision: 38, scale: u8::try_from(scale).unwrap_or(0) };
    }

    if texts.iter().all(|text| text.parse::<f64>().is_ok()) {
        return FieldType::Float64;
    }
    let are_bools = texts.iter().all(|text| matches!(*text, "true" | "false"));
    if are_bools { FieldType::Bool } else { FieldType::Text }
}

/// The digits after the point of a decimal number of fewer than 30 characters, with digits on both sides of the point.
fn scale_of(text: &str) -> Option<usize> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.')?;
    (is_digits(whole) && is_digits(fraction) && digits.len() < 30).then_some(fraction.len())
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 1_515_110_400_000_000;

    #[test]
    fn times_in_keys() {
        let form = |texts: &[&str]| time_form(&texts.iter().map(|text| (*text, None)).collect::<Vec<_>>());
        assert_eq!(form(&["20180105", "20181231"]).as_deref(), Some("%Y%m%d"));
        assert_eq!(form(&["20181301"]), None);
        assert_eq!(form(&["1426535612045"]).as_deref(), Some("ms"));
        assert_eq!(form(&["9223370611523958122"]).as_deref(), Some("ms-reversed"));
        assert_eq!(form(&["1515110400"]).as_deref(), Some("s"));
        assert_eq!(form(&["0300", "2359"]).as_deref(), Some("%H%M"));
        assert_eq!(form(&["2460"]), None);
        assert_eq!(time_form(&[("20180105", Some(DAY))]).as_deref(), Some("%Y%m%d"));
        assert_eq!(time_form(&[("20180105", Some(DAY + 86_400_000_000))]), None);
    }

    #[test]
    fn other_parts() {
        assert_eq!(shape(&["0000000042", "0000000007"]), Shape::Integer(Some(10)));
        assert_eq!(shape(&["42", "7"]), Shape::Integer(None));
        assert_eq!(shape(&["AB  ", "ABCD"]), Shape::Padded(4));
        assert_eq!(shape(&["x", "x"]), Shape::Constant("x".to_owned()));
        assert_eq!(shape(&["x", "y"]), Shape::Text);
    }

    #[test]
    fn values() {
        assert_eq!(value_type(&["1", "-7"]), FieldType::Int64);
        assert_eq!(value_type(&["28.90", "0.05"]), FieldType::Decimal { precision: 38, scale: 2 });
        assert_eq!(value_type(&["28.9", "0.05"]), FieldType::Float64);
        assert_eq!(value_type(&["007"]), FieldType::Float64);
        assert_eq!(value_type(&["true"]), FieldType::Bool);
        assert_eq!(value_type(&["a", "1"]), FieldType::Text);
    }
}
