//! Checks of values against what cells, messages and queries can hold.

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::datatypes::{ArrowPrimitiveType, TimestampMicrosecondType, UInt64Type};

use crate::cell::PackedWriter;
use crate::encode::rejects::Rejects;
use crate::error::RejectReason;
use crate::hll::Sketch;
use crate::plan::{GroupPlan, Layout, ValuePlan};
use crate::scalar::ColumnView;
use crate::schema::{Column, Encoding, Group, Merge, Packed, PackedForm};
use crate::template::segment::Segment;
use crate::time::TIMESTAMP_RANGE;

/// The most bytes of a cell that Bigtable accepts: 100 MiB.
const MAX_CELL: usize = 100 * 1024 * 1024;

/// Rejects events with a time outside [`TIMESTAMP_RANGE`] in any column. A table that keeps cells as they are takes any that
/// Bigtable has.
pub(super) fn check_times(layout: &Layout, columns: &[ArrayRef], rejects: &mut Rejects) {
    let range = if layout.keeps_cells() { 0..=i64::MAX } else { TIMESTAMP_RANGE };
    for (field, column) in columns.iter().enumerate().take(layout.source.fields.len()) {
        let Some(array) = column.as_primitive_opt::<TimestampMicrosecondType>() else { continue };
        if array.values().iter().any(|time| !range.contains(time)) {
            for (event, time) in array.iter().enumerate() {
                if time.is_some_and(|time| !range.contains(&time)) {
                    rejects.push(event, Some(field), RejectReason::TimeRange);
                }
            }
        }
    }
}

/// Rejects events whose cell of this column is too long, is no sketch where one is due, or overflows its encoding.
pub(super) fn check_cells(plan: &ValuePlan, stored: &Column, array: &dyn Array, rejects: &mut Rejects) {
    let field = if let ValuePlan::Field(field) = plan { Some(*field) } else { None };

    if let Some(texts) = array.as_string_opt::<i32>()
        && texts.value_data().len() > MAX_CELL
    {
        for event in (0..texts.len()).filter(|event| texts.value_length(*event).cast_unsigned() as usize > MAX_CELL) {
            rejects.push(event, field, RejectReason::CellTooLong);
        }
    }

    if let (ValuePlan::Template(segments), Merge::Hll, Some(values)) =
        (plan, stored.merge, array.as_binary_opt::<i32>())
    {
        let field = segments.iter().find_map(Segment::field).map(|segment| segment.field);
        for event in 0..values.len() {
            if values.is_valid(event) && Sketch::read(values.value(event)).is_err() {
                rejects.push(event, field, RejectReason::NotSketch);
            }
        }
    }

    if stored.encoding == Encoding::Int64
        && let Some(values) = array.as_primitive_opt::<UInt64Type>()
        && max_of(values).is_some_and(|most| most > i64::MAX.cast_unsigned())
    {
        for event in 0..values.len() {
            if values.is_valid(event) && values.value(event) > i64::MAX.cast_unsigned() {
                rejects.push(event, field, RejectReason::Int64Overflow);
            }
        }
    }
}

/// Rejects values outside the range of their protobuf type, and cells over the size limit. Cells of a whole row are not
/// known here.
pub(super) fn check_packed(plan: &GroupPlan, stored: &Group, columns: &[ArrayRef], rejects: &mut Rejects) {
    let fields =
        plan.columns.iter().filter_map(|plan| if let ValuePlan::Field(field) = plan { Some(*field) } else { None });
    let arrays: Vec<(usize, &ArrayRef)> = fields.filter_map(|field| Some((field, columns.get(field)?))).collect();

    if let Some(Packed { form: PackedForm::Message { fields } | PackedForm::Repeated { fields, .. }, .. }) =
        &stored.packed
    {
        for ((field, array), declared) in arrays.iter().zip(fields) {
            if declared.kind.holds_all(array.data_type()) {
                continue;
            }
            let view = ColumnView::new(array.as_ref());
            for event in 0..array.len() {
                if view.get(event).is_some_and(|scalar| !declared.kind.holds(scalar)) {
                    rejects.push(event, Some(*field), RejectReason::ProtoRange { kind: declared.kind.name() });
                }
            }
        }
    }

    // Escapes make at most six bytes of one; other values are short.
    let texts = arrays.iter().filter_map(|(_, array)| array.as_string_opt::<i32>());
    if texts.map(|texts| texts.value_data().len()).sum::<usize>() > MAX_CELL / 8
        && let Some(mut writer) = PackedWriter::new(stored, arrays.iter().map(|(_, array)| array.as_ref()))
    {
        let mut cell = Vec::new();
        for event in 0..arrays.first().map_or(0, |(_, array)| array.len()) {
            cell.clear();
            writer.write(event..event + 1, &mut cell);
            if cell.len() > MAX_CELL {
                rejects.push(event, None, RejectReason::CellTooLong);
            }
        }
    }
}

fn max_of<T: ArrowPrimitiveType<Native = u64>>(values: &PrimitiveArray<T>) -> Option<u64> {
    values.values().iter().copied().max()
}
