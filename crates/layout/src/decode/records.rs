//! Blocks to records of the source's columns.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, TimestampMicrosecondArray, UInt32Array};
use arrow::compute::take;
use arrow::datatypes::TimestampMicrosecondType;

use crate::block::Block;
use crate::decode::columns::ColumnReader;
use crate::decode::record_alignment::{RecordAlignment, is_one_each};
use crate::error::DecodeError;
use crate::plan::Layout;

impl Layout {
    /// The records of a block, in the order of row keys; inside a row by time if the last field of
    /// [`Layout::record_order`] is among `fields`, else as stored. `fields` are indices into
    /// [`Layout::records_schema`], and the block must hold what [`Layout::projection`] says of them.
    ///
    /// # Errors
    /// If the block lacks a projected part, or holds a key or qualifier that this layout cannot have encoded.
    pub fn decode(&self, mut block: Block, fields: &[usize]) -> Result<RecordBatch, DecodeError> {
        let schema = self.records_schema.project(fields).map_err(|_| DecodeError::NoField {
            field: fields.iter().copied().max().unwrap_or(0),
            count: self.records.len(),
        })?;
        if block.groups.len() != self.groups.len() {
            return Err(DecodeError::Shape { group: block.groups.len() });
        }

        let alignment = RecordAlignment::build(self, &block)?;
        let timestamps: Vec<Option<ArrayRef>> = block
            .groups
            .iter_mut()
            .map(|group| {
                let times = group.as_mut()?.timestamps.take()?;
                Some(Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC")) as ArrayRef)
            })
            .collect();

        let reader = ColumnReader { layout: self, block: &block, alignment: &alignment, timestamps };
        let mut columns = Vec::with_capacity(fields.len());
        for record in fields.iter().filter_map(|field| self.records.get(*field)) {
            columns.push(reader.column(record)?);
        }

        if let Some(by) = self.record_order.last().and_then(|last| fields.iter().position(|field| field == last))
            && let Some(indices) = columns.get(by).and_then(|column| time_order(&alignment, column.as_ref()))
        {
            for column in &mut columns {
                *column = take(column.as_ref(), &indices, None)?;
            }
        }

        let options = RecordBatchOptions::new().with_row_count(Some(alignment.count));
        Ok(RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)?)
    }
}

/// The permutation of records that sorts each row by the times in `column`; `None` if they are sorted.
fn time_order(alignment: &RecordAlignment, column: &dyn Array) -> Option<UInt32Array> {
    if is_one_each(&alignment.row_ends) {
        return None;
    }
    let times = column.as_primitive_opt::<TimestampMicrosecondType>()?;
    let values = times.values();
    let mut start = 0;
    let sorted = alignment.row_ends.iter().all(|end| {
        let row = values.get(start..*end as usize).unwrap_or_default();
        start = *end as usize;
        row.is_sorted()
    });
    if sorted {
        return None;
    }

    let mut indices: Vec<u32> = (0..alignment.count as u32).collect();
    let mut start = 0;
    for end in &alignment.row_ends {
        if let Some(row) = indices.get_mut(start..*end as usize) {
            // The stable sort detects descending runs, the stored order of versions.
            row.sort_by_key(|record| values.get(*record as usize).copied());
        }
        start = *end as usize;
    }
    Some(UInt32Array::from(indices))
}
