//! Integers that are named like times but are counters, such as `uptime_ms`.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Date32Type, TimestampMicrosecondType};
use tidetable_layout::FieldType;
use tidetable_layout::time::DAY;

use crate::spec::{ColumnSpec, SourceSpec};

/// Days that the times of one row lie apart only if one of them is no time.
const FAR: i64 = 10 * 365 * DAY;

/// Declares epoch times as integers that lie decades from the times of another column; whether there are any.
pub(super) fn revert(spec: &mut SourceSpec, batches: &[RecordBatch]) -> bool {
    let ranges: Vec<Option<(i64, i64)>> = (0..spec.columns.len()).map(|at| range(batches, at)).collect();

    // What is written as a time is one; of numbers the likeliest is the one whose name says the least.
    let times = spec.columns.iter().zip(&ranges).filter(|(_, range)| range.is_some());
    let written = times.clone().find(|(column, _)| !is_epoch(column));
    let numbers = times.filter(|(column, _)| is_epoch(column)).min_by_key(|(column, _)| column.name.len());
    let Some((anchor, Some((first, last)))) = written.or(numbers).map(|(column, range)| (column.name.clone(), *range))
    else {
        return false;
    };

    let mut any = false;
    for (column, range) in spec.columns.iter_mut().zip(&ranges) {
        let Some((low, high)) = *range else { continue };
        if is_epoch(column) && column.name != anchor && (high < first - FAR || low > last + FAR) {
            *column = ColumnSpec::new(&column.name, FieldType::Int64);
            any = true;
        }
    }
    any
}

/// Whether the times of a column are numbers that count from the epoch.
fn is_epoch(column: &ColumnSpec) -> bool {
    column.kind == FieldType::Timestamp && matches!(column.format.as_deref(), Some("s" | "ms" | "us" | "ns"))
}

/// The first and last time of a column, in microseconds since the epoch.
fn range(batches: &[RecordBatch], at: usize) -> Option<(i64, i64)> {
    let ranges = batches.iter().filter_map(|batch| {
        let array = batch.columns().get(at)?;
        if let Some(times) = array.as_primitive_opt::<TimestampMicrosecondType>() {
            return Some((arrow::compute::min(times)?, arrow::compute::max(times)?));
        }
        let days = array.as_primitive_opt::<Date32Type>()?;
        Some((i64::from(arrow::compute::min(days)?) * DAY, i64::from(arrow::compute::max(days)?) * DAY))
    });
    ranges.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
}
