//! Values of times, templates and sketches.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryBuilder, StringBuilder};
use arrow::datatypes::TimestampMicrosecondType;

use crate::encode::rejects::Rejects;
use crate::error::RejectReason;
use crate::hll::Distinct;
use crate::scalar::{ColumnView, ScalarRef, column_views};
use crate::schema::ValueType;
use crate::template::print::write_segments;
use crate::template::segment::{FieldSegment, Segment};
use crate::time::calendar::Calendar;

/// The values of a timestamp column; rejects events with a null.
pub(super) fn times(columns: &[ArrayRef], field: usize, rejects: &mut Rejects) -> Vec<i64> {
    let Some(array) = columns.get(field).and_then(|array| array.as_primitive_opt::<TimestampMicrosecondType>()) else {
        return Vec::new();
    };
    if array.null_count() > 0 {
        for event in (0..array.len()).filter(|event| array.is_null(*event)) {
            rejects.push(event, Some(field), RejectReason::Null);
        }
    }
    array.values().to_vec()
}

pub(super) fn add_times(
    segment: &FieldSegment,
    times: &[i64],
    shift: u64,
    tails: &mut Vec<u64>,
    calendar: &mut Calendar,
    rejects: &mut Rejects,
) {
    // Telemetry is ordered by time: thousands of consecutive events share an instant, more share a day.
    let step = segment.even_step();
    let (mut start, mut length) = (0i64, 0u64);
    let mut number = 0u64;
    let mut of = |event: usize, time: i64| {
        if time.wrapping_sub(start).cast_unsigned() >= length {
            match segment.number(ScalarRef::Time(time), calendar) {
                Ok(found) => {
                    start = time - time.rem_euclid(step);
                    length = step.cast_unsigned();
                    number = found.wrapping_mul(shift);
                }
                Err(reason) => {
                    length = 0;
                    number = 0;
                    rejects.push(event, Some(segment.field), reason);
                }
            }
        }
        number
    };
    if tails.is_empty() {
        tails.extend(times.iter().enumerate().map(|(event, time)| of(event, *time)));
    } else {
        for ((event, time), tail) in times.iter().enumerate().zip(tails.iter_mut()) {
            *tail = tail.wrapping_add(of(event, *time));
        }
    }
}

pub(super) fn template_values(
    segments: &[Segment],
    kind: ValueType,
    columns: &[ArrayRef],
    events: usize,
    calendar: &mut Calendar,
    rejects: &mut Rejects,
) -> ArrayRef {
    let views = column_views(columns);
    let mut scratch = Vec::new();
    let mut text = StringBuilder::new();
    let mut bytes = BinaryBuilder::new();
    for event in 0..events {
        scratch.clear();
        let written = write_segments_plain(segments, |field| views.get(field)?.get(event), calendar, &mut scratch);
        let present = match written {
            Ok(()) => true,
            Err((_, RejectReason::Null)) => false,
            Err((field, reason)) => {
                rejects.push(event, Some(field), reason);
                false
            }
        };
        match (kind, present) {
            (ValueType::Bytes, true) => bytes.append_value(&scratch),
            (ValueType::Bytes, false) => bytes.append_null(),
            (_, true) => text.append_value(String::from_utf8_lossy(&scratch)),
            (_, false) => text.append_null(),
        }
    }
    if kind == ValueType::Bytes { Arc::new(bytes.finish()) } else { Arc::new(text.finish()) }
}

/// Prints segments without delimiter checks: values are never split again.
fn write_segments_plain<'a>(
    segments: &[Segment],
    get: impl Fn(usize) -> Option<ScalarRef<'a>>,
    calendar: &mut Calendar,
    out: &mut Vec<u8>,
) -> Result<(), (usize, RejectReason)> {
    segments.iter().try_for_each(|segment| write_segments(std::slice::from_ref(segment), &get, calendar, out))
}

/// A sketch of each single value; null for null.
pub(super) fn sketches(values: &dyn Array) -> ArrayRef {
    let view = ColumnView::new(values);
    let mut out = BinaryBuilder::with_capacity(values.len(), values.len() * 24);
    let mut bytes = Vec::new();
    for index in 0..values.len() {
        let distinct = match view.get(index) {
            Some(ScalarRef::UInt(value)) => Distinct::Integer(value),
            Some(ScalarRef::Int(value)) => Distinct::Integer(value.cast_unsigned()),
            Some(ScalarRef::Text(text)) => Distinct::Bytes(text.as_bytes()),
            _ => {
                out.append_null();
                continue;
            }
        };
        bytes.clear();
        distinct.write_sketch(&mut bytes);
        out.append_value(&bytes);
    }
    Arc::new(out.finish())
}
