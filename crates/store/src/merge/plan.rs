//! Merge plan: the rows of an output block, and the blocks they come from. Pure: reads keys only.

use std::ops::Range;

use tidetable_layout::Block;

use crate::merge::place::RowRef;

/// The rows of an output block, in key order.
#[derive(Debug, Default)]
pub(crate) struct BlockPlan {
    pub(crate) steps: Vec<MergeStep>,
}

/// Some rows of an output block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MergeStep {
    /// Rows of this block only.
    Copy { source: usize, rows: Range<usize> },
    /// One row of several blocks, older first.
    Combine { rows: Vec<RowRef> },
}

impl BlockPlan {
    /// Appends rows of one block.
    pub(crate) fn copy(&mut self, source: usize, rows: Range<usize>) {
        match self.steps.last_mut() {
            Some(MergeStep::Copy { source: last, rows: before }) if *last == source && before.end == rows.start => {
                before.end = rows.end;
            }
            _ => self.steps.push(MergeStep::Copy { source, rows }),
        }
    }
}

/// The longest prefix of `rows` of `block` that sorts before row `other_row` of `other`; at least one row.
pub(crate) fn run_before(block: &Block, rows: Range<usize>, other: &Block, other_row: usize) -> Range<usize> {
    let is_before = |row: usize| block.keys.compare(row, &other.keys, other_row).is_lt();

    // Runs are often one row long (a day of each meter) or very long: gallop, then binary search.
    let (mut low, mut step) = (rows.start + 1, 1);
    while low < rows.end && is_before(low) {
        low += step;
        step *= 2;
    }

    let (mut low, mut high) = (low.saturating_sub(step / 2).max(rows.start + 1), low.min(rows.end));
    while low < high {
        let middle = low.midpoint(high);
        if is_before(middle) { low = middle + 1 } else { high = middle }
    }
    rows.start..low
}
