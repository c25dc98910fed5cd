//! Cells as returned by reads of a table.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use arrow::array::Array;
use tidetable_layout::cell::write_cell;
use tidetable_layout::schema::QualifierKind;
use tidetable_layout::{Block, KeyRange, Projection, StoredSchema};
use tidetable_store::Snapshot;
use tidetable_store::version::DeleteTarget;

use crate::finding::{Finding, Result};

/// Row key, family, qualifier, time with the newest first.
pub type CellKey = (String, String, String, Reverse<i64>);

/// Cells and their values, as clients see them: bytes, in the order of Bigtable.
pub type Cells = BTreeMap<CellKey, Vec<u8>>;

/// Whether a delete hides a cell, by the target alone: whether the cell is older is the caller's to know.
pub fn hides(target: &DeleteTarget, (key, own_family, own, Reverse(time)): &CellKey) -> bool {
    let key = key.as_bytes();
    match target {
        DeleteTarget::Prefix { prefix } => key.starts_with(prefix),
        DeleteTarget::Row { key: row } => key == row,
        DeleteTarget::Family { key: row, family } => key == row && family == own_family,
        DeleteTarget::Column { key: row, family, qualifier, times } => {
            let inside = times.as_ref().is_none_or(|times| times.contains(time));
            key == row && family == own_family && own.as_bytes() == qualifier && inside
        }
    }
}

/// All cells of the rows in `keys`, read from `snapshot` by scan ranges.
///
/// # Errors
/// Those of reading; a duplicate cell, or a row without cells.
pub fn cells_in(snapshot: &Snapshot, keys: &KeyRange) -> Result<Cells> {
    let mut cells = Cells::new();
    for slice in snapshot.scan_ranges(std::slice::from_ref(keys), &(i64::MIN..i64::MAX)) {
        for block in snapshot.scan(&slice, &Projection::all(snapshot.schema()))? {
            read(snapshot.schema(), &block?, &mut cells)?;
        }
    }
    Ok(cells)
}

/// All cells of one row, by point lookup.
///
/// # Errors
/// Those of reading.
pub fn cells_of_row(snapshot: &Snapshot, key: &str) -> Result<Cells> {
    let mut cells = Cells::new();
    if let Some(block) = snapshot.row(key.as_bytes(), &Projection::all(snapshot.schema()))?
        && !block.keys.is_empty()
    {
        read(snapshot.schema(), &block, &mut cells)?;
    }
    Ok(cells)
}

/// Adds the cells of a block, each of which must be new.
fn read(schema: &StoredSchema, block: &Block, cells: &mut Cells) -> Result<()> {
    for row in 0..block.keys.len() {
        let key = text(&block.keys.get(row));
        let before = cells.len();
        for (group, records) in schema.groups.iter().zip(block.groups.iter().flatten()) {
            for record in records.records(row) {
                for (column, values) in group.columns.iter().zip(records.columns.iter().flatten()) {
                    if values.is_null(record) {
                        continue;
                    }

                    let qualifier = match (&records.qualifiers, group.qualifier) {
                        (Some(names), QualifierKind::Dynamic) => &names.dictionary[names.codes[record] as usize],
                        _ => column.qualifier.as_slice(),
                    };
                    let time = records.timestamps.as_ref().map_or(0, |times| times[record]);
                    let mut value = Vec::new();
                    write_cell(column, values.as_ref(), record, &mut value);
                    let cell = (key.clone(), column.family.clone(), text(qualifier), Reverse(time));
                    if cells.insert(cell.clone(), value).is_some() {
                        return Err(Finding::new(format!("cell {cell:?} is returned twice")));
                    }
                }
            }
        }

        if cells.len() == before {
            return Err(Finding::new(format!("row {key} has no cells")));
        }
    }
    Ok(())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Compares two sets of cells.
///
/// # Errors
/// The first difference.
pub fn same(what: &str, found: &Cells, expected: &Cells) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let lost = expected.iter().find(|(key, value)| found.get(*key) != Some(*value));
    let strange = found.iter().find(|(key, value)| expected.get(*key) != Some(*value));
    let (found, expected) = (found.len(), expected.len());
    Err(Finding::new(format!(
        "{what}: {found} cells where {expected} were expected; expected {lost:?}, found {strange:?}"
    )))
}
