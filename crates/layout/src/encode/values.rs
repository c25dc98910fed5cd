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

/// The values of a timestamp column; events with a null are rejected.
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

/// Adds to each of `tails` the number that `segment` prints for the event's time, times `shift`. An empty list is filled.
pub(super) fn add_times(
    segment: &FieldSegment,
    times: &[i64],
    shift: u64,
    tails: &mut Vec<u64>,
    calendar: &mut Calendar,
    rejects: &mut Rejects,
) {
    let mut numbers = TimeNumbers { segment, step: segment.even_step(), shift, start: 0, length: 0, number: 0 };
    if tails.is_empty() {
        tails.extend(times.iter().enumerate().map(|(event, time)| numbers.of(event, *time, calendar, rejects)));
    } else {
        for ((event, time), tail) in times.iter().enumerate().zip(tails.iter_mut()) {
            *tail = tail.wrapping_add(numbers.of(event, *time, calendar, rejects));
        }
    }
}

/// The numbers that a segment prints for times. Telemetry is ordered by time: thousands of consecutive events share an instant, more
/// share a day, so the last number is cached.
struct TimeNumbers<'a> {
    segment: &'a FieldSegment,
    /// In microseconds: the number can change only at multiples of this.
    step: i64,
    shift: u64,
    /// The cached number is that of the times from `start` on, as many microseconds as `length`.
    start: i64,
    length: u64,
    number: u64,
}

impl TimeNumbers<'_> {
    #[inline]
    fn of(&mut self, event: usize, time: i64, calendar: &mut Calendar, rejects: &mut Rejects) -> u64 {
        if time.wrapping_sub(self.start).cast_unsigned() >= self.length {
            match self.segment.number(ScalarRef::Time(time), calendar) {
                Ok(found) => {
                    self.start = time - time.rem_euclid(self.step);
                    self.length = self.step.cast_unsigned();
                    self.number = found.wrapping_mul(self.shift);
                }
                Err(reason) => {
                    self.length = 0;
                    self.number = 0;
                    rejects.push(event, Some(self.segment.field), reason);
                }
            }
        }
        self.number
    }
}

/// The values of a column that a template prints: text or bytes, null where a field is null.
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

/// A sketch of each single value; null for null. Sketches of whole columns are made by merging these.
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
