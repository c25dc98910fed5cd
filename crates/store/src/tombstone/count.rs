//! Counts the cells of a block, and those that a tombstone hides.

use arrow::array::Array;
use tidetable_layout::{Block, Group, GroupBlock, StoredSchema};

use crate::tombstone::filter::place;
use crate::version::DeleteTarget;

/// Number of cells of `block`, which must have all column groups.
pub fn cells_of(schema: &StoredSchema, block: &Block) -> u64 {
    let groups = schema.groups.iter().zip(block.groups.iter().flatten());
    groups.map(|(group, records)| cells_of_group(group, records)).sum()
}

/// Number of cells of a column group.
fn cells_of_group(group: &Group, records: &GroupBlock) -> u64 {
    if group.keeps_duplicates() {
        return (0..records.row_ends.len()).map(|row| packed_cells(records, row, |_| true)).sum();
    }
    if group.packed.is_some() {
        return records.len() as u64;
    }
    records.columns.iter().flatten().map(|values| (values.len() - values.null_count()) as u64).sum()
}

/// Number of cells in a row of a packed group with `wanted` records; all records of a qualifier make one cell.
fn packed_cells(records: &GroupBlock, row: usize, wanted: impl Fn(usize) -> bool) -> u64 {
    let mut cells = 0;
    let mut last = None;
    for record in records.records(row).filter(|record| wanted(*record)) {
        let code = records.qualifiers.as_ref().map_or(0, |qualifiers| qualifiers.codes[record]);
        if last != Some(code) {
            cells += 1;
            last = Some(code);
        }
    }

    cells
}

/// Number of rows of `block` in which `target` hides cells, and of those cells. All rows must match its keys.
pub(crate) fn hidden(schema: &StoredSchema, block: &Block, target: &DeleteTarget) -> (u64, u64) {
    if target.takes_rows() {
        return (block.keys.len() as u64, cells_of(schema, block));
    }

    let (mut rows, mut cells) = (0, 0);
    for row in 0..block.keys.len() {
        let groups = schema.groups.iter().zip(block.groups.iter().flatten());
        let hidden: u64 = groups.map(|(group, records)| hidden_in_row(group, records, row, target)).sum();
        rows += u64::from(hidden > 0);
        cells += hidden;
    }
    (rows, cells)
}

/// Number of cells of a row that `target` hides in a column group.
fn hidden_in_row(group: &Group, records: &GroupBlock, row: usize, target: &DeleteTarget) -> u64 {
    let hides = |record: usize, column: usize| {
        let (qualifier, timestamp) = place(records, record);
        target.hides(group, column, qualifier, timestamp)
    };
    if group.keeps_duplicates() {
        return packed_cells(records, row, |record| hides(record, 0));
    }
    if group.packed.is_some() {
        return records.records(row).filter(|record| hides(*record, 0)).count() as u64;
    }

    let mut hidden = 0;
    for (column, values) in records.columns.iter().enumerate() {
        let Some(values) = values else { continue };
        let there = records.records(row).filter(|record| values.is_valid(*record));
        hidden += there.filter(|record| hides(*record, column)).count() as u64;
    }

    hidden
}
