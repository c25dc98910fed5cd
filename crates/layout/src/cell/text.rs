//! Values of a column as text, as in cells with encoding `text`.

use arrow::array::Array;
use arrow::datatypes::DataType;

use crate::scalar::{ColumnView, ScalarRef};
use crate::time::calendar::Calendar;

/// Floats of this magnitude or more are written with an exponent.
const LARGE: f64 = 1e16;

/// Writes the values of a column as text: integers, floats and decimals in digits, times as RFC 3339, dates as ISO 8601.
#[derive(Debug)]
pub struct ColumnText<'a> {
    view: ColumnView<'a>,
    calendar: Calendar,
    /// Whether times have no zone, and so are written without `Z`.
    is_local: bool,
}

impl<'a> ColumnText<'a> {
    /// The texts of `array`. `None` for types that no source column has, and for times in a zone other than UTC.
    pub fn new(array: &'a dyn Array) -> Option<Self> {
        let is_local = match array.data_type() {
            DataType::Timestamp(_, zone) if zone.as_deref().is_some_and(|zone| zone != "UTC") => return None,
            DataType::Timestamp(_, zone) => zone.is_none(),
            DataType::Decimal128(_, scale) if *scale < 0 => return None,
            _ => false,
        };
        let view = ColumnView::new(array);
        let is_known = !matches!(view, ColumnView::Other);
        is_known.then(|| Self { view, calendar: Calendar::default(), is_local })
    }

    /// Appends the text of a row; nothing for null.
    pub fn write(&mut self, row: usize, out: &mut Vec<u8>) {
        let Some(value) = self.view.get(row) else { return };
        let start = out.len();
        value.write_text(&mut self.calendar, out);
        match value {
            ScalarRef::Time(_) if self.is_local => drop(out.pop()),
            // Cells have `1e+16`, as Rust's newer formatters write it; results have `1e16`, as Arrow's do.
            ScalarRef::Float(value) if value.abs() >= LARGE => {
                if let Some(plus) = out.iter().skip(start).position(|byte| *byte == b'+') {
                    out.remove(start + plus);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float64Array, Int64Array, StringArray,
        TimestampMicrosecondArray, UInt64Array,
    };
    use arrow::util::display::{ArrayFormatter, FormatOptions};

    use super::*;

    #[test]
    fn texts_are_those_of_arrow() {
        let mut state = 1_u64;
        let random: Vec<u64> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state ^ (state >> 29)
        })
        .take(3_000)
        .collect();
        // Times of the years 1 to 9999, at whole seconds, milliseconds and microseconds.
        let times: Vec<Option<i64>> = (0..)
            .zip(&random)
            .map(|(at, bits)| {
                let micros = -62_135_596_800_000_000 + (bits % 315_537_897_600_000_000).cast_signed();
                let unit = [1, 1_000, 1_000_000][at % 3];
                (at % 11 > 0).then_some(micros / unit * unit)
            })
            .collect();
        let decimals: Vec<i128> =
            (0..).zip(&random).map(|(at, bits)| i128::from(bits.cast_signed()) >> (at % 63)).collect();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::from(random.clone())),
            Arc::new(Int64Array::from_iter_values(random.iter().map(|bits| bits.cast_signed()))),
            Arc::new(Float64Array::from_iter_values(random.iter().map(|bits| f64::from_bits(*bits)))),
            Arc::new(Float64Array::from_iter_values(random.iter().map(|bits| (bits % 1_000_000) as f64 / 100.0))),
            Arc::new(Float64Array::from(vec![0.0, -0.0, 1e15, 1e16, 1e-5, 1e-6, f64::NAN, f64::INFINITY, f64::MIN])),
            Arc::new(TimestampMicrosecondArray::from(times.clone()).with_timezone("UTC")),
            Arc::new(TimestampMicrosecondArray::from(times)),
            Arc::new(Date32Array::from_iter_values(random.iter().map(|bits| (bits % 3_652_059) as i32 - 719_162))),
            Arc::new(Decimal128Array::from(decimals.clone()).with_precision_and_scale(38, 7).unwrap()),
            Arc::new(Decimal128Array::from(decimals).with_precision_and_scale(38, 0).unwrap()),
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
            Arc::new(StringArray::from(vec![Some("a"), None, Some("")])),
        ];
        let options = FormatOptions::new();
        for column in columns {
            let arrow = ArrayFormatter::try_new(column.as_ref(), &options).unwrap();
            let mut text = ColumnText::new(column.as_ref()).unwrap();
            for row in 0..column.len() {
                let mut out = Vec::new();
                text.write(row, &mut out);
                assert_eq!(String::from_utf8(out).unwrap(), arrow.value(row).to_string(), "{}", column.data_type());
            }
        }
    }

    #[test]
    fn other_zones_and_types_have_none() {
        let paris = TimestampMicrosecondArray::from(vec![0]).with_timezone("Europe/Paris");
        assert!(ColumnText::new(&paris).is_none());
        assert!(ColumnText::new(&arrow::array::Int8Array::from(vec![1])).is_none());
    }
}
