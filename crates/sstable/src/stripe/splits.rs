//! Splits a block into the row ranges of stripes.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray};
use tidetable_layout::{Block, StoredSchema, ValueType};

use crate::options::StripeLimits;

/// The size of some rows, in the units of [`StripeLimits`].
#[derive(Default, Clone, Copy)]
struct Weight {
    cells: usize,
    bytes: usize,
    rows: usize,
}

impl Weight {
    fn plus(self, other: Self) -> Self {
        Self { cells: self.cells + other.cells, bytes: self.bytes + other.bytes, rows: self.rows + other.rows }
    }

    fn over(self, limits: &StripeLimits) -> bool {
        self.cells > limits.cells || self.bytes > limits.bytes || self.rows > limits.rows
    }

    /// The number of stripes that these rows fill, by the limit that is reached first.
    fn stripes(self, limits: &StripeLimits) -> usize {
        let by_cells = self.cells.div_ceil(limits.cells.max(1));
        let by_bytes = self.bytes.div_ceil(limits.bytes.max(1));
        let by_rows = self.rows.div_ceil(limits.rows.max(1));
        by_cells.max(by_bytes).max(by_rows).max(1)
    }
}

/// Row ranges of `block` that make one stripe each, in order and without gaps. No range goes over a limit unless it is
/// a single row, and ranges are of about one size, so that no short stripe is left at the end.
pub fn stripe_splits(schema: &StoredSchema, block: &Block, limits: &StripeLimits) -> Vec<Range<usize>> {
    let weigher = RowWeigher::new(schema, block);
    let rows = block.keys.len();
    let all = (0..rows).fold(Weight::default(), |sum, row| sum.plus(weigher.row(row)));
    let parts = all.stripes(limits);
    let share =
        Weight { cells: all.cells.div_ceil(parts), bytes: all.bytes.div_ceil(parts), rows: all.rows.div_ceil(parts) };

    let mut splits = Vec::with_capacity(parts + 1);
    let (mut start, mut sum) = (0, Weight::default());
    for row in 0..rows {
        let weight = weigher.row(row);
        let full = sum.cells >= share.cells && sum.bytes >= share.bytes && sum.rows >= share.rows;
        if row > start && (full || sum.plus(weight).over(limits)) {
            splits.push(start..row);
            (start, sum) = (row, Weight::default());
        }
        sum = sum.plus(weight);
    }

    if start < rows {
        splits.push(start..rows);
    }
    splits
}

/// Computes the weight of single rows of a block. Of fixed-width values only the count matters.
struct RowWeigher<'a> {
    block: &'a Block,
    groups: Vec<GroupWeigher<'a>>,
    /// Bytes of a tail, which every key has.
    tail: usize,
}

struct GroupWeigher<'a> {
    ends: &'a [u32],
    /// Bytes of a record's numbers, before encoding.
    fixed: usize,
    /// The offsets of each text column, as Arrow has them.
    texts: Vec<&'a [i32]>,
}

impl<'a> RowWeigher<'a> {
    fn new(schema: &StoredSchema, block: &'a Block) -> Self {
        let mut groups = Vec::with_capacity(schema.groups.len());
        for (group, part) in schema.groups.iter().zip(&block.groups) {
            let Some(part) = part else { continue };
            let (mut fixed, mut texts) = (0, Vec::new());
            for (column, array) in group.columns.iter().zip(&part.columns) {
                match column.value {
                    ValueType::Bytes | ValueType::Field(tidetable_layout::FieldType::Text) => {
                        texts.extend(array.as_ref().and_then(offsets));
                    }
                    ValueType::Field(tidetable_layout::FieldType::Decimal { .. }) => fixed += 16,
                    _ => fixed += 8,
                }
            }
            groups.push(GroupWeigher { ends: &part.row_ends, fixed, texts });
        }
        Self { block, groups, tail: block.keys.tail_shape().width() }
    }

    fn row(&self, row: usize) -> Weight {
        let (prefix, _) = self.block.keys.parts(row);
        let mut weight = Weight { cells: 0, bytes: prefix.len() + self.tail, rows: 1 };
        for GroupWeigher { ends, fixed, texts } in &self.groups {
            let start = if row == 0 { 0 } else { ends.get(row - 1).copied().unwrap_or(0) } as usize;
            let end = ends.get(row).copied().unwrap_or(0) as usize;
            let records = end.saturating_sub(start);
            weight.cells = weight.cells.max(records);
            weight.bytes += records * fixed;
            for offsets in texts {
                let (Some(from), Some(to)) = (offsets.get(start), offsets.get(end)) else { continue };
                weight.bytes += to.saturating_sub(*from).unsigned_abs() as usize;
            }
        }
        weight
    }
}

fn offsets(array: &ArrayRef) -> Option<&[i32]> {
    let any = array.as_any();
    let text = any.downcast_ref::<arrow::array::StringArray>().map(|array| array.value_offsets());
    text.or_else(|| array.as_binary_opt::<i32>().map(|array| array.value_offsets()))
}
