//! Values in binary, as PostgreSQL's send functions write them.

use std::ops::Range;

use arrow::datatypes::IntervalMonthDayNano;
use bytes::Bytes;
use tidetable_sql::ScalarValue;

use crate::encode::{EPOCH_DAYS, EPOCH_MICROS, MICROS_PER_DAY, NANOS_PER_MICRO, read_numeric};
use crate::parameters::text::{decimal, utf8};
use crate::types::Base;
use crate::wire::Body;

/// Microseconds of a day.
const DAY: Range<i64> = 0..MICROS_PER_DAY;

/// The value of a type that bytes are; `None` if they are none.
pub(super) fn value(base: Base, bytes: &Bytes) -> Option<ScalarValue> {
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
        Base::Time => ScalarValue::Time64Microsecond(Some(long(&mut body).filter(|micros| DAY.contains(micros))?)),
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
        Base::Jsonb => return utf8(bytes.get(1..)?).map(|text| ScalarValue::Utf8(Some(text.to_owned()))),
        _ => return utf8(bytes).map(|text| ScalarValue::Utf8(Some(text.to_owned()))),
    };
    body.is_empty().then_some(value)
}

fn long(body: &mut Body) -> Option<i64> {
    let bytes = body.bytes(size_of::<i64>()).ok()?;
    Some(i64::from_be_bytes(bytes.as_ref().try_into().ok()?))
}

fn uuid(bytes: &[u8]) -> Option<String> {
    let digits = hex::encode(bytes);
    let part = |range: Range<usize>| digits.get(range);
    (digits.len() == 32).then_some(())?;
    Some([part(0..8)?, part(8..12)?, part(12..16)?, part(16..20)?, part(20..32)?].join("-"))
}
