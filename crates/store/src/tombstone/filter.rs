//! Tombstone filter: hides cells of a block read from an SST.

use std::ops::Range;

use arrow::array::BooleanArray;
use tidetable_layout::{Block, Group, GroupBlock, KeyRange, Projection, StoredSchema};

use crate::error::Result;
use crate::gc::{remove, widen_group};
use crate::merge::keep_rows;
use crate::version::Sst;
use crate::version::{DeleteTarget, Tombstone};

/// The tombstones that apply to one SST.
#[derive(Debug, Clone)]
pub struct TombstoneFilter {
    /// Key ranges of hidden rows.
    rows: Vec<KeyRange>,
    /// Tombstones of cells, each with its row key.
    cells: Vec<(Vec<u8>, DeleteTarget)>,
}

impl TombstoneFilter {
    /// The filter of those of `drops` that are newer than `sst` and overlap its keys; `None` if none is.
    pub(crate) fn of_sst(tombstones: &[Tombstone], sst: &Sst) -> Option<Self> {
        Self::new(tombstones.iter().filter(|tombstone| tombstone.may_hide(sst)).map(|tombstone| &tombstone.target))
    }

    /// The filter of `targets`; `None` if there is none.
    pub(crate) fn new<'a>(targets: impl Iterator<Item = &'a DeleteTarget>) -> Option<Self> {
        let mut filter = Self { rows: Vec::new(), cells: Vec::new() };
        for target in targets {
            let keys = target.keys();
            if target.takes_rows() {
                filter.rows.push(keys);
            } else {
                filter.cells.push((keys.start, target.clone()));
            }
        }
        filter.rows.sort_by(|a, b| a.start.cmp(&b.start));
        (!filter.rows.is_empty() || !filter.cells.is_empty()).then_some(filter)
    }

    /// Adds the columns needed to identify cells.
    pub(crate) fn widen(&self, schema: &StoredSchema, projection: &mut Projection) {
        for (group, wanted) in schema.groups.iter().zip(&mut projection.groups) {
            if let Some(wanted) = wanted
                && self.cells.iter().any(|(_, target)| target.concerns(group))
            {
                widen_group(group, wanted);
            }
        }
    }

    /// Whether all rows from `first` to `last` are hidden, so that none need be read.
    pub(crate) fn hides_all(&self, first: &[u8], last: &[u8]) -> bool {
        self.rows.iter().any(|keys| keys.covers(first, last))
    }

    /// The visible cells of `block`.
    pub(crate) fn apply(&self, schema: &StoredSchema, block: Block) -> Result<Block> {
        let hidden: Vec<Range<usize>> =
            self.rows.iter().map(|keys| rows_of(&block, keys)).filter(|rows| !rows.is_empty()).collect();
        let mut block = if hidden.is_empty() { block } else { keep_rows(schema, &block, &others(&hidden, &block))? };

        let mut rows: Vec<(usize, &DeleteTarget)> = Vec::new();
        for (key, target) in &self.cells {
            rows.extend(rows_of(&block, &KeyRange::of_key(key)).next().map(|row| (row, target)));
        }
        if rows.is_empty() {
            return Ok(block);
        }

        let mut changed = false;
        for (group, stored) in schema.groups.iter().zip(&mut block.groups) {
            if let Some(records) = stored
                && let Some(drops) = hidden_cells(group, records, &rows)
            {
                *records = remove(records, &drops, false)?;
                changed = true;
            }
        }
        Ok(if changed { block.without_empty_rows() } else { block })
    }
}

/// The rows of `block` with these keys.
fn rows_of(block: &Block, keys: &KeyRange) -> Range<usize> {
    let start = block.keys.lower_bound(&keys.start);
    start..keys.end.as_ref().map_or(block.keys.len(), |end| block.keys.lower_bound(end))
}

/// The rows of `block` in none of `hidden`, whose starts ascend.
fn others(hidden: &[Range<usize>], block: &Block) -> Vec<Range<usize>> {
    let mut kept = Vec::new();
    let mut at = 0;
    for rows in hidden {
        if at < rows.start {
            kept.push(at..rows.start);
        }
        at = at.max(rows.end);
    }
    if at < block.keys.len() {
        kept.push(at..block.keys.len());
    }

    kept
}

/// For each column of the group, which of its cells are hidden; `None` if none is. `rows` are rows, each with a
/// tombstone that matches it.
fn hidden_cells(
    group: &Group,
    records: &GroupBlock,
    rows: &[(usize, &DeleteTarget)],
) -> Option<Vec<Option<BooleanArray>>> {
    let mut drops: Vec<Option<Vec<bool>>> = vec![None; group.columns.len()];
    for (row, target) in rows {
        for record in records.records(*row) {
            let (qualifier, timestamp) = place(records, record);
            for (column, drops) in drops.iter_mut().enumerate() {
                if target.hides(group, column, qualifier, timestamp) {
                    drops.get_or_insert_with(|| vec![false; records.len()])[record] = true;
                }
            }
        }
    }

    let drops: Vec<Option<BooleanArray>> = drops.into_iter().map(|drop| drop.map(BooleanArray::from)).collect();
    drops.iter().any(Option::is_some).then_some(drops)
}

/// The qualifier of a record, empty in a group of constant qualifiers, and its timestamp.
pub(crate) fn place(records: &GroupBlock, record: usize) -> (&[u8], i64) {
    let qualifiers = records.qualifiers.as_ref();
    let qualifier = qualifiers.map_or(&[][..], |names| names.dictionary[names.codes[record] as usize].as_ref());
    (qualifier, records.timestamps.as_ref().map_or(0, |timestamps| timestamps[record]))
}
