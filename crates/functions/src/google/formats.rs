//! Dates, times and other values as text, and back.

use chrono::format::{Item, Parsed, StrftimeItems, parse};
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeZone};

use crate::google::function::Takes::{Any, Date, Text, Time};
use crate::google::function::{Definition, Gives};
use crate::google::parts::{instant_of, local, named_zone};
use crate::google::value::Value;

pub(crate) const FUNCTIONS: &[Definition] = &[
    Definition::new("format_timestamp", &[Text, Time, Text], Gives::Text, format_timestamp).with_arguments(2, 3),
    Definition::new("parse_timestamp", &[Text, Text, Text], Gives::Time, parse_timestamp).with_arguments(2, 3),
    Definition::new("format_date", &[Text, Date], Gives::Text, format_date),
    Definition::new("parse_date", &[Text, Text], Gives::Date, parse_date),
    // `STRING(value)`, and `CAST(value AS STRING)`.
    Definition::new("string", &[Any, Text], Gives::Text, string).with_arguments(1, 2),
];

type Row<'a> = Result<Value<'a>, String>;

/// A format of GoogleSQL in the elements of chrono. `fraction` is the microseconds to format; parsing has none.
fn elements(format: &str, fraction: Option<u32>) -> String {
    let (mut out, mut rest) = (String::with_capacity(format.len()), format);
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let known = ["%Ez", "%E4Y", "%E*S", "%Q", "%Z", "%h"];
        let found = known.into_iter().find(|element| rest.starts_with(element));
        let digits = seconds(rest);
        let plain = 1 + rest.chars().nth(1).map_or(0, char::len_utf8);
        match (found, digits, fraction) {
            (Some("%E*S"), _, Some(micros)) => {
                out.push_str("%S");
                let digits = format!("{micros:06}");
                let digits = digits.trim_end_matches('0');
                if !digits.is_empty() {
                    out.push('.');
                    out.push_str(digits);
                }
            }
            (Some("%E*S"), _, None) => out.push_str("%S%.f"),
            (Some("%Ez"), ..) => out.push_str("%:z"),
            (Some("%E4Y"), ..) => out.push_str("%Y"),
            (Some("%Q"), ..) => out.push_str("%q"),
            (Some("%h"), ..) => out.push_str("%b"),
            (None, Some((0, _)), _) => out.push_str("%S"),
            (None, Some((places, _)), Some(micros)) => {
                out.push_str("%S.");
                let digits = format!("{micros:06}000");
                out.push_str(digits.get(..places).unwrap_or(&digits));
            }
            (None, Some(_), None) => out.push_str("%S%.f"),
            (other, ..) => out.push_str(other.or(rest.get(..plain)).unwrap_or("%")),
        }
        let length = match (found, digits) {
            (Some(element), _) => element.len(),
            (None, Some((_, length))) => length,
            (None, None) => plain,
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// The places of `%E3S`, digits of a second, at the start of a format, and the length of that element.
fn seconds(format: &str) -> Option<(usize, usize)> {
    let [b'%', b'E', digit, b'S', ..] = format.as_bytes() else { return None };
    digit.is_ascii_digit().then(|| (usize::from(digit - b'0'), 4))
}

/// The items of a format.
fn items(format: &str) -> Result<Vec<Item<'_>>, String> {
    let items: Vec<Item<'_>> = StrftimeItems::new(format).collect();
    match items.contains(&Item::Error) {
        true => Err(format!("'{format}' has an element that is not one of a date or a time")),
        false => Ok(items),
    }
}

fn format_timestamp<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [format, time, rest @ ..] = args else { return Ok(Value::Null) };
    let zone = named_zone(rest.first().map(Value::as_text))?;
    let utc = local(time.as_time(), named_zone(None)?)?.and_utc();
    let format = elements(format.as_text(), Some(utc.timestamp_subsec_micros()));
    let zoned = zone.from_utc_datetime(&utc.naive_utc());
    Ok(Value::text(zoned.format_with_items(items(&format)?.iter()).to_string()))
}

fn format_date<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [format, days] = args else { return Ok(Value::Null) };
    let date = NaiveDate::from_epoch_days(days.as_date()).ok_or_else(|| "the date is out of range".to_owned())?;
    let format = elements(format.as_text(), Some(0));
    let time = date.and_time(NaiveTime::MIN).and_utc();
    Ok(Value::text(time.format_with_items(items(&format)?.iter()).to_string()))
}

/// Reads `text` by `format`; what the format lacks is of the first moment of 1970.
fn parsed(format: &str, text: &str) -> Result<(NaiveDateTime, Option<i32>), String> {
    let wrong = || format!("'{text}' does not match the format '{format}'");
    let read = elements(format, None);
    let mut fields = Parsed::new();
    parse(&mut fields, text, items(&read)?.iter()).map_err(|_| wrong())?;
    if let Some(seconds) = fields.timestamp() {
        let time = DateTime::from_timestamp(seconds, fields.nanosecond().unwrap_or(0));
        return Ok((time.ok_or_else(wrong)?.naive_utc(), Some(0)));
    }

    let has_year = fields.year().is_some() || fields.year_mod_100().is_some() || fields.isoyear().is_some();
    if !has_year {
        fields.set_year(1970).map_err(|_| wrong())?;
    }
    let has_day = fields.ordinal().is_some()
        || fields.isoweek().is_some()
        || fields.week_from_sun().is_some()
        || fields.week_from_mon().is_some();
    if !has_day && fields.month().is_none() {
        fields.set_month(1).map_err(|_| wrong())?;
    }
    if !has_day && fields.day().is_none() {
        fields.set_day(1).map_err(|_| wrong())?;
    }
    if fields.hour_mod_12().is_none() {
        fields.set_hour(0).map_err(|_| wrong())?;
    } else if fields.hour_div_12().is_none() {
        fields.set_ampm(false).map_err(|_| wrong())?;
    }
    if fields.minute().is_none() {
        fields.set_minute(0).map_err(|_| wrong())?;
    }
    let offset = fields.offset();
    let date = fields.to_naive_date().map_err(|_| wrong())?;
    let time = fields.to_naive_time().map_err(|_| wrong())?;
    Ok((date.and_time(time), offset))
}

fn parse_timestamp<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [format, text, rest @ ..] = args else { return Ok(Value::Null) };
    let zone = named_zone(rest.first().map(Value::as_text))?;
    let (time, offset) = parsed(format.as_text(), text.as_text())?;
    Ok(Value::Time(match offset {
        Some(seconds) => time.and_utc().timestamp_micros() - i64::from(seconds) * 1_000_000,
        None => instant_of(time, zone)?,
    }))
}

fn parse_date<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [format, text] = args else { return Ok(Value::Null) };
    let (time, _) = parsed(format.as_text(), text.as_text())?;
    Ok(Value::Date(time.date().to_epoch_days()))
}

fn string<'a>(args: &[Value<'a>]) -> Row<'a> {
    let [value, rest @ ..] = args else { return Ok(Value::Null) };
    written(value, rest.first().map(Value::as_text)).map(Value::text)
}

/// A value as `CAST(value AS STRING)` writes it.
///
/// # Errors
/// If it is bytes that are not UTF-8.
pub(crate) fn written(value: &Value<'_>, zone: Option<&str>) -> Result<String, String> {
    Ok(match value {
        Value::Null => "NULL".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => float(*value),
        Value::Text(text) => text.to_string(),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => {
                let shown = bytes.get(..32).unwrap_or(bytes).escape_ascii();
                return Err(format!(
                    "b'{shown}' is not UTF-8: SAFE_CAST gives NULL, SAFE_CONVERT_BYTES_TO_STRING replaces bytes"
                ));
            }
        },
        Value::Date(days) => {
            let date = NaiveDate::from_epoch_days(*days).ok_or_else(|| "the date is out of range".to_owned())?;
            date.format("%Y-%m-%d").to_string()
        }
        Value::Time(micros) => {
            let zone = named_zone(zone)?;
            let time = local(*micros, zone)?;
            let offset = (time.and_utc().timestamp_micros() - micros).div_euclid(1_000_000);
            let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
            let fraction = match time.and_utc().timestamp_subsec_micros() {
                0 => String::new(),
                micros if micros % 1_000 == 0 => format!(".{:03}", micros / 1_000),
                micros => format!(".{micros:06}"),
            };
            let zone = match minutes % 60 {
                0 => format!("{sign}{:02}", minutes / 60),
                rest => format!("{sign}{:02}:{rest:02}", minutes / 60),
            };
            format!("{}{fraction}{zone}", time.format("%Y-%m-%d %H:%M:%S"))
        }
        Value::List(items) => {
            let items: Result<Vec<String>, String> = items.iter().map(|item| written(item, zone)).collect();
            format!("[{}]", items?.join(", "))
        }
    })
}

/// A float in as few digits as give it back; whole numbers have no point.
pub(crate) fn float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf".to_owned() } else { "-inf".to_owned() };
    }
    let exponent = if value == 0.0 { 0.0 } else { value.abs().log10().floor() };
    if !(-5.0..17.0).contains(&exponent) {
        let text = format!("{value:e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, power) = power.strip_prefix('-').map_or(('+', power), |power| ('-', power));
        return format!("{digits}e{sign}{power:0>2}");
    }
    value.to_string()
}
