//! Values of parameters as drivers send them, in text or in binary.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListArray, new_empty_array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, IntervalMonthDayNano, IntervalUnit, TimeUnit};
use bytes::Bytes;
use tidetable_sql::ScalarValue;

use crate::encode::{EPOCH_DAYS, EPOCH_MICROS, Format, read_numeric};
use crate::error::{Refusal, code};
use crate::types::{Base, PgType};
use crate::wire::Body;

/// Digits of a decimal at most.
const MOST_DIGITS: u8 = 38;
/// Decimal places of a decimal whose value is not known yet.
const PLACES: i8 = 10;
const NANOS_PER_MICRO: i64 = 1_000;

/// The type of Arrow with which a query is planned for parameters of a type.
pub(crate) fn planned_type(kind: PgType) -> DataType {
    let one = match kind.base {
        Base::Bool => DataType::Boolean,
        Base::Int2 | Base::Int4 | Base::Int8 | Base::Oid | Base::Regproc => DataType::Int64,
        Base::Float4 => DataType::Float32,
        Base::Float8 => DataType::Float64,
        Base::Numeric => DataType::Decimal128(MOST_DIGITS, PLACES),
        Base::Bytea => DataType::Binary,
        Base::Date => DataType::Date32,
        Base::Time => DataType::Time64(TimeUnit::Microsecond),
        Base::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, None),
        Base::TimestampTz => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Base::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
        _ => DataType::Utf8,
    };
    if kind.is_array { DataType::List(Arc::new(Field::new_list_field(one, true))) } else { one }
}

/// The value of parameter `number` (from 1), which has type `kind`.
///
/// # Errors
/// If the bytes are no value of the type.
pub(crate) fn value(
    number: usize,
    kind: PgType,
    format: Format,
    bytes: Option<&Bytes>,
) -> Result<ScalarValue, Refusal> {
    let planned = planned_type(kind);
    let Some(bytes) = bytes else {
        return ScalarValue::try_from(&planned).map_err(|error| Refusal::internal(error.to_string()));
    };

    let read = match (format, kind.is_array) {
        (Format::Text, false) => text(bytes).and_then(|text| of_text(kind.base, text)),
        (Format::Text, true) => text(bytes).and_then(|text| array_of_text(kind.base, text)),
        (Format::Binary, false) => of_binary(kind.base, bytes),
        (Format::Binary, true) => array_of_binary(kind.base, bytes),
    };
    read.ok_or_else(|| {
        let (code, shown) = match format {
            Format::Text => (code::TEXT, String::from_utf8_lossy(bytes.get(..bytes.len().min(80)).unwrap_or_default())),
            Format::Binary => (code::BINARY, "the bytes of the parameter".into()),
        };
        let name = kind.base.entry().sql;
        Refusal::new(code, format!("invalid value for parameter ${number}: {shown:?} is not of type {name}"))
    })
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

fn of_text(base: Base, text: &str) -> Option<ScalarValue> {
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
        Base::Date | Base::Time | Base::Timestamp | Base::TimestampTz | Base::Interval => {
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
fn decimal(text: &str) -> Option<ScalarValue> {
    if text.contains(['e', 'E']) {
        return Some(ScalarValue::Float64(Some(text.parse().ok()?)));
    }
    let (whole, places) = text.split_once('.').unwrap_or((text, ""));
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

fn of_binary(base: Base, bytes: &Bytes) -> Option<ScalarValue> {
    let mut body = Body(bytes.clone());
    let value = match base {
        Base::Bool => ScalarValue::Boolean(Some(body.byte().ok()? != 0)),
        Base::Int2 => ScalarValue::Int64(Some(body.short().ok()?.into())),
        Base::Int4 => ScalarValue::Int64(Some(body.integer().ok()?.into())),
        Base::Oid | Base::Regproc => ScalarValue::Int64(Some(body.integer().ok()?.cast_unsigned().into())),
        Base::Int8 => ScalarValue::Int64(Some(long(&mut body)?)),
        Base::Float4 => ScalarValue::Float32(Some(f32::from_bits(body.integer().ok()?.cast_unsigned()))),
        Base::Float8 => ScalarValue::Float64(Some(f64::from_bits(long(&mut body)?.cast_unsigned()))),
        Base::Date => ScalarValue::Date32(Some(body.integer().ok()?.checked_add(EPOCH_DAYS)?)),
        Base::Time => ScalarValue::Time64Microsecond(Some(long(&mut body)?)),
        Base::Timestamp => ScalarValue::TimestampMicrosecond(Some(long(&mut body)?.checked_add(EPOCH_MICROS)?), None),
        Base::TimestampTz => {
            let micros = long(&mut body)?.checked_add(EPOCH_MICROS)?;
            ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into()))
        }
        Base::Interval => {
            let nanos = long(&mut body)?.checked_mul(NANOS_PER_MICRO)?;
            let (days, months) = (body.integer().ok()?, body.integer().ok()?);
            ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(months, days, nanos)))
        }
        Base::Numeric => return decimal(&read_numeric(bytes)?),
        Base::Bytea => return Some(ScalarValue::Binary(Some(bytes.to_vec()))),
        Base::Uuid => return uuid(bytes).map(|text| ScalarValue::Utf8(Some(text))),
        Base::Jsonb => return text(bytes.get(1..)?).map(|text| ScalarValue::Utf8(Some(text.to_owned()))),
        _ => return text(bytes).map(|text| ScalarValue::Utf8(Some(text.to_owned()))),
    };
    body.is_empty().then_some(value)
}

fn long(body: &mut Body) -> Option<i64> {
    let bytes = body.bytes(size_of::<i64>()).ok()?;
    Some(i64::from_be_bytes(bytes.as_ref().try_into().ok()?))
}

fn uuid(bytes: &[u8]) -> Option<String> {
    let digits = hex::encode(bytes);
    let part = |range: std::ops::Range<usize>| digits.get(range);
    (digits.len() == 32).then_some(())?;
    Some([part(0..8)?, part(8..12)?, part(12..16)?, part(16..20)?, part(20..32)?].join("-"))
}

/// An array of one dimension, as `{a,"b c",NULL}`.
fn array_of_text(base: Base, text: &str) -> Option<ScalarValue> {
    let inside = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let mut items = Vec::new();
    let mut letters = inside.chars().peekable();
    while letters.peek().is_some() {
        let (mut item, mut is_quoted) = (String::new(), false);
        let mut is_inside = false;
        for letter in letters.by_ref() {
            match letter {
                '{' | '}' if !is_inside => return None,
                '"' => (is_inside, is_quoted) = (!is_inside, true),
                ',' if !is_inside => break,
                letter => item.push(letter),
            }
        }
        let is_null = !is_quoted && item.trim().eq_ignore_ascii_case("null");
        items.push(if is_null { None } else { Some(of_text(base, if is_quoted { &item } else { item.trim() })?) });
    }
    list(base, items)
}

fn array_of_binary(base: Base, bytes: &Bytes) -> Option<ScalarValue> {
    let mut body = Body(bytes.clone());
    let (dimensions, _, item_type) = (body.integer().ok()?, body.integer().ok()?, body.integer().ok()?.cast_unsigned());
    let base = PgType::of_oid(item_type).map_or(base, |kind| kind.base);
    if dimensions == 0 {
        return list(base, Vec::new());
    }
    let (count, _) = (usize::try_from(body.integer().ok()?).ok()?, body.integer().ok()?);
    if dimensions != 1 || count > bytes.len() {
        return None;
    }
    let items = (0..count).map(|_| match body.value().ok()? {
        Some(bytes) => of_binary(base, &bytes).map(Some),
        None => Some(None),
    });
    list(base, items.collect::<Option<Vec<_>>>()?)
}

fn list(base: Base, items: Vec<Option<ScalarValue>>) -> Option<ScalarValue> {
    let planned = planned_type(base.one());
    let values: Vec<ScalarValue> = items
        .into_iter()
        .map(|item| match item {
            Some(item) => item.cast_to(&planned).ok(),
            None => ScalarValue::try_from(&planned).ok(),
        })
        .collect::<Option<_>>()?;

    let count = values.len();
    let items: ArrayRef =
        if values.is_empty() { new_empty_array(&planned) } else { ScalarValue::iter_to_array(values).ok()? };
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let array = ListArray::try_new(field, OffsetBuffer::from_lengths([count]), items, None).ok()?;
    Some(ScalarValue::List(Arc::new(array)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(base: Base, text: &str) -> Result<ScalarValue, Refusal> {
        value(1, base.one(), Format::Text, Some(&Bytes::copy_from_slice(text.as_bytes())))
    }

    #[test]
    fn texts_are_read() {
        assert_eq!(read(Base::Int4, " 7 "), Ok(ScalarValue::Int64(Some(7))));
        assert_eq!(read(Base::Bool, "t"), Ok(ScalarValue::Boolean(Some(true))));
        assert_eq!(read(Base::Numeric, "-1.50"), Ok(ScalarValue::Decimal128(Some(-150), 3, 2)));
        assert_eq!(read(Base::Numeric, "0.001"), Ok(ScalarValue::Decimal128(Some(1), 3, 3)));
        assert_eq!(read(Base::Bytea, "\\x00ff"), Ok(ScalarValue::Binary(Some(vec![0, 255]))));
        assert_eq!(read(Base::Bytea, "a\\000\\\\"), Ok(ScalarValue::Binary(Some(vec![b'a', 0, b'\\']))));
        assert_eq!(read(Base::Date, "1970-01-02"), Ok(ScalarValue::Date32(Some(1))));
        let moment = |micros| Ok(ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into())));
        for text in
            ["1970-01-01 00:00:01+00", "1970-01-01T00:00:01Z", "1970-01-01 01:00:01+01:00", "1970-01-01 00:00:01"]
        {
            assert_eq!(read(Base::TimestampTz, text), moment(1_000_000), "{text}");
        }
        for (base, wrong) in [
            (Base::Int8, "x"),
            (Base::Bool, "maybe"),
            (Base::TimestampTz, "soon"),
            (Base::Bytea, "\\x0"),
            (Base::Numeric, "1.2.3"),
        ] {
            let refusal = read(base, wrong).unwrap_err();
            assert_eq!(refusal.code, "22P02");
            assert!(refusal.message.contains("$1"), "{}", refusal.message);
        }
    }

    #[test]
    fn arrays_are_read() {
        let of = |text: &str| array_of_text(Base::Text, text).map(|list| list.to_string());
        assert_eq!(of("{a,\"b,c\",NULL}").unwrap(), "[a, b,c, ]");
        assert_eq!(of("{}").unwrap(), "[]");
        assert_eq!(of("{{a}}"), None);
        let bytes =
            Bytes::from_static(b"\0\0\0\x01\0\0\0\0\0\0\0\x17\0\0\0\x02\0\0\0\x01\0\0\0\x04\0\0\0\x05\xff\xff\xff\xff");
        assert_eq!(array_of_binary(Base::Int4, &bytes).unwrap().to_string(), "[5, ]");
    }

    #[test]
    fn binary_values_are_read() {
        let read = |base: Base, bytes: &'static [u8]| of_binary(base, &Bytes::from_static(bytes));
        assert_eq!(read(Base::Int2, b"\0\x07"), Some(ScalarValue::Int64(Some(7))));
        assert_eq!(read(Base::Int2, b"\0\x07\0"), None);
        let start = ScalarValue::TimestampMicrosecond(Some(EPOCH_MICROS), Some("UTC".into()));
        assert_eq!(read(Base::TimestampTz, &[0; 8]), Some(start));
        assert_eq!(read(Base::Uuid, &[0x11; 16]).unwrap().to_string(), "11111111-1111-1111-1111-111111111111");
    }

    proptest! {
        #[test]
        fn any_bytes_are_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..40), oid in 0..4_000_u32, is_text in any::<bool>()) {
            if let Some(kind) = PgType::of_oid(oid) {
                let format = if is_text { Format::Text } else { Format::Binary };
                let _ = value(1, kind, format, Some(&Bytes::from(bytes)));
            }
        }
    }
}
