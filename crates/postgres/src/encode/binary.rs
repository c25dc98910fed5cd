//! Values in binary, as PostgreSQL's receive functions take them.

use bytes::{BufMut, BytesMut};

use crate::encode::json::write_json;
use crate::encode::numeric::{write_i128, write_i256};
use crate::encode::text::index;
use crate::encode::times::NANOS_PER_MICRO;
use crate::encode::values::Values;
use crate::encode::{Format, write_value};

/// Days and microseconds from 1970-01-01 to 2000-01-01, from which PostgreSQL counts.
pub(crate) const EPOCH_DAYS: i32 = 10_957;
pub(crate) const EPOCH_MICROS: i64 = 946_684_800_000_000;

impl Values {
    /// Appends the bytes of a value that is not null.
    pub(crate) fn write_binary(&self, row: usize, out: &mut BytesMut) {
        match self {
            Self::Null => {}
            Self::Bool(array) => out.put_u8(array.value(row).into()),
            Self::Int2(array) => out.put_i16(array.value(row)),
            Self::Int4(array) => out.put_i32(array.value(row)),
            Self::Int8(array) => out.put_i64(array.value(row)),
            Self::Oid(array) => out.put_u32(u32::try_from(array.value(row)).unwrap_or_default()),
            Self::Float4(array) => out.put_f32(array.value(row)),
            Self::Float8(array) => out.put_f64(array.value(row)),
            Self::Numeric(array) => write_i128(out, array.value(row), array.scale()),
            Self::WideNumeric(array) => write_i256(out, array.value(row), array.scale()),

            // These are the same in both formats.
            Self::Text(_) => self.write_text(row, out),
            Self::Bytes(array) => out.put_slice(array.value(row)),
            Self::Json(array) => write_json(array.as_ref(), row, out),

            Self::Date(array) => out.put_i32(array.value(row).saturating_sub(EPOCH_DAYS)),
            Self::Time(array) => out.put_i64(array.value(row)),
            Self::Timestamp(array, _) => out.put_i64(array.value(row).saturating_sub(EPOCH_MICROS)),
            Self::Interval(array) => {
                let value = array.value(row);
                out.put_i64(value.nanoseconds / NANOS_PER_MICRO);
                out.put_i32(value.days);
                out.put_i32(value.months);
            }

            Self::List(array, items, base) => {
                let ends = array.value_offsets();
                let (start, end) = (index(ends, row), index(ends, row + 1));
                let has_null = (start..end).any(|place| items.is_null(place));

                // Dimensions, whether there are nulls, the type of items; then length and first index of the dimension.
                out.put_i32(i32::from(end > start));
                out.put_i32(has_null.into());
                out.put_u32(base.one().oid());
                if end > start {
                    out.put_i32(i32::try_from(end - start).unwrap_or(i32::MAX));
                    out.put_i32(1);
                }
                for place in start..end {
                    write_value(items, place, Format::Binary, out);
                }
            }
        }
    }
}
