//! What the values of columns with types say: times among text and numbers, and numbers that may stand for missing ones.

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::compute::{cast, max, min};
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use chrono_tz::Tz;
use tidetable_layout::FieldType;

use crate::sample::candidate::values;
use crate::sample::column::{OddValues, SampleColumn, settle, texts};
use crate::sample::numbers::missing::{FarNumbers, far_numbers, is_of_nines};
use crate::sample::numbers::unit::plain_numbers;
use crate::sample::odd::SampledRow;
use crate::sample::pass::Pass;
use crate::sample::times;
use crate::spec::{ColumnSpec, CsvOptions, SourceSpec};
use crate::value::notation::Notation;

/// Numbers as Arrow writes them.
const PLAIN: Notation = Notation { point: b'.', thousands: None, unicode_minus: false };

/// Infers times among text and numbers, and says what else the values show.
pub(in crate::sample) fn refine(spec: &mut SourceSpec, pass: &Pass, zone: Option<Tz>) -> Vec<SampleColumn> {
    let csv = CsvOptions::default();
    let mut columns = Vec::with_capacity(spec.columns.len());
    for (at, column) in spec.columns.iter_mut().enumerate() {
        columns.push(match column.kind {
            FieldType::Text => {
                let texts = texts(&pass.batches, at);
                match times::of_text(&column.name, &texts, &csv, zone) {
                    Some(found) => settle(column, found),
                    None => {
                        let there = values(&texts).filter(|value| !value.is_empty());
                        SampleColumn { text_numbers: plain_numbers(there), ..SampleColumn::default() }
                    }
                }
            }
            FieldType::Int64 | FieldType::UInt64 => of_integers(column, pass, at),
            FieldType::Float64 | FieldType::Decimal { .. } => of_fractions(column, pass, at),
            _ => SampleColumn::default(),
        });
    }
    columns
}

/// Epoch times among integers; a few may be of another unit.
fn of_integers(column: &mut ColumnSpec, pass: &Pass, at: usize) -> SampleColumn {
    let parts = integers(&pass.batches, at);
    let far = far_of(&pass.batches, at);
    let mut numbers = parts.iter().flat_map(|part| part.iter().flatten()).peekable();
    if numbers.peek().is_some() && numbers.all(times::is_hour_in_digits) {
        return SampleColumn::default();
    }
    let ranges: Vec<(i64, i64)> = parts.iter().filter_map(|part| Some((min(part)?, max(part)?))).collect();
    if let Some(found) = times::of_integers(&column.name, &ranges) {
        return SampleColumn { far, ..settle(column, found) };
    }

    let stray = stray_epochs(column, &parts, pass);
    if stray.is_some() {
        return SampleColumn { stray, ..SampleColumn::default() };
    }
    SampleColumn { far, ..SampleColumn::default() }
}

/// Declares integers of which all but a few count from the epoch as times in their unit, and says which do not; `None` if
/// they are no such times.
fn stray_epochs(column: &mut ColumnSpec, parts: &[Int64Array], pass: &Pass) -> Option<OddValues> {
    if !times::named_so(&column.name) {
        return None;
    }
    let (mut rows, mut numbers) = (Vec::new(), Vec::new());
    for (batch, part) in parts.iter().enumerate() {
        for row in (0..part.len()).filter(|row| part.is_valid(*row)) {
            rows.push(SampledRow { batch, row });
            numbers.push(part.value(row));
        }
    }

    let (unit, odd) = times::odd_epochs(&numbers)?;
    let first = *odd.first()?;
    let SampledRow { batch, row } = *rows.get(first)?;
    let line = pass.origins.get(batch)?.line(row);
    *column = ColumnSpec { format: Some(unit.to_owned()), ..ColumnSpec::new(&column.name, FieldType::Timestamp) };
    Some(OddValues { count: odd.len() as u64, first: numbers.get(first)?.to_string(), line })
}

/// Epoch times and days of a spreadsheet among floats.
fn of_fractions(column: &mut ColumnSpec, pass: &Pass, at: usize) -> SampleColumn {
    let parts = pass.batches.iter().filter_map(|batch| batch.columns().get(at)?.as_primitive_opt::<Float64Type>());
    let ranges: Vec<(i64, i64)> = parts.filter_map(|part| Some((min(part)? as i64, max(part)? as i64))).collect();
    match times::of_ranges(&column.name, &ranges) {
        Some(found) => settle(column, found),
        None => {
            let (far, maybe_epoch) = (far_of(&pass.batches, at), times::maybe_epoch(&ranges));
            SampleColumn { far, maybe_epoch, ..SampleColumn::default() }
        }
    }
}

/// The numbers of the column at index `at` that may stand for missing ones.
fn far_of(batches: &[RecordBatch], at: usize) -> Option<FarNumbers> {
    let columns = batches.iter().filter_map(|batch| batch.columns().get(at));
    let parts: Vec<&ArrayRef> = columns.filter(|part| part.null_count() < part.len()).collect();
    // Far numbers are at an end: most columns need not be written out.
    let has_nines = parts.iter().any(|part| ends(part).iter().any(|end| is_of_nines(end, '.')));
    if !has_nines {
        return None;
    }

    let written: Vec<ArrayRef> = parts.iter().filter_map(|part| cast(part, &DataType::Utf8).ok()).collect();
    far_numbers(written.iter().flat_map(|part| part.as_string::<i32>().iter().flatten()), PLAIN)
}

/// The least and the greatest number of an array, as Arrow writes them.
fn ends(array: &ArrayRef) -> Vec<String> {
    let floats = cast(array, &DataType::Float64).ok();
    let floats = floats.as_ref().and_then(|floats| floats.as_primitive_opt::<Float64Type>());
    let found = floats.map(|floats| [min(floats), max(floats)]);
    found.into_iter().flatten().flatten().map(|end| end.to_string()).collect()
}

/// The integers of the column at index `at`; none of a batch whose numbers are beyond 64 bits with a sign.
fn integers(batches: &[RecordBatch], at: usize) -> Vec<Int64Array> {
    let columns = batches.iter().filter_map(|batch| batch.columns().get(at));
    let parts = columns.filter_map(|array| {
        let signed = cast(array, &DataType::Int64).ok()?;
        let signed = signed.as_primitive_opt::<Int64Type>()?;
        Some(if signed.null_count() > array.null_count() { Int64Array::new_null(array.len()) } else { signed.clone() })
    });
    parts.collect()
}
