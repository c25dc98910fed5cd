//! Values in text, as PostgreSQL's input functions take them.

use tidetable_sql::ScalarValue;

use crate::parameters::intervals::interval;
use crate::parameters::planned::{MOST_DIGITS, planned_type};
use crate::types::Base;

/// The text that bytes are, without zero bytes, which no text of PostgreSQL has.
pub(super) fn utf8(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// The value of a type that a text is; `None` if it is none.
pub(super) fn value(base: Base, text: &str) -> Option<ScalarValue> {
    let trimmed = text.trim();
    Some(match base {
        Base::Bool => ScalarValue::Boolean(Some(boolean(trimmed)?)),
        Base::Int2 | Base::Int4 | Base::Int8 | Base::Oid | Base::Regproc => {
            ScalarValue::Int64(Some(trimmed.parse().ok()?))
        }
        Base::Float4 => ScalarValue::Float32(Some(float(trimmed)?)),
        Base::Float8 => ScalarValue::Float64(Some(float(trimmed)?)),
        Base::Numeric => decimal(trimmed)?,
        Base::Bytea => ScalarValue::Binary(Some(bytea(text)?)),
        Base::Interval => ScalarValue::IntervalMonthDayNano(Some(interval(trimmed)?)),
        Base::Date | Base::Time | Base::Timestamp | Base::TimestampTz => {
            let value = ScalarValue::Utf8(Some(trimmed.to_owned()));
            value.cast_to(&planned_type(base.one())).ok().filter(|value| !value.is_null())?
        }
        _ => ScalarValue::Utf8(Some(text.to_owned())),
    })
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "t" | "true" | "y" | "yes" | "on" | "1" => Some(true),
        "f" | "false" | "n" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

fn float<T: std::str::FromStr>(text: &str) -> Option<T> {
    let text = text.to_ascii_lowercase().replace("infinity", "inf");
    text.parse().ok()
}

/// A decimal in as many digits as it is written with.
pub(super) fn decimal(text: &str) -> Option<ScalarValue> {
    if text.contains(['e', 'E']) {
        return Some(ScalarValue::Float64(Some(text.parse().ok()?)));
    }
    let (whole, places) = text.split_once('.').unwrap_or((text, ""));
    if !places.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits: i128 = format!("{whole}{places}").parse().ok()?;
    let scale = i8::try_from(places.len()).ok()?;
    let count = u8::try_from(digits.unsigned_abs().to_string().len()).ok()?;
    let precision = count.max(scale.unsigned_abs()).max(1);
    (precision <= MOST_DIGITS).then_some(ScalarValue::Decimal128(Some(digits), precision, scale))
}

fn bytea(text: &str) -> Option<Vec<u8>> {
    if let Some(digits) = text.strip_prefix("\\x") {
        return hex::decode(digits).ok();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = match (first, after) {
            (b'\\', [b'\\', after @ ..]) => {
                bytes.push(b'\\');
                after
            }
            (b'\\', [a, b, c, after @ ..]) => {
                let digits = std::str::from_utf8(&[*a, *b, *c]).ok().map(str::to_owned)?;
                bytes.push(u8::from_str_radix(&digits, 8).ok()?);
                after
            }
            (b'\\', _) => return None,
            (byte, after) => {
                bytes.push(*byte);
                after
            }
        };
    }
    Some(bytes)
}
