//! Visits the cells of a block, one after the other.

use crate::block::{Block, GroupBlock};
use crate::cell::block_cells::{BlockCells, Passes};
use crate::error::ShapeError;
use crate::schema::{Group, StoredSchema};

/// A cell, as in Bigtable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellRef<'a> {
    /// Index of the row in the block.
    pub row: usize,
    /// Row key.
    pub row_key: &'a [u8],
    /// Family id.
    pub family: &'a str,
    /// Qualifier.
    pub qualifier: &'a [u8],
    /// Microseconds since the epoch.
    pub timestamp: i64,
    /// Value bytes.
    pub value: &'a [u8],
}

/// The parts of cells that are written; others stay empty.
#[derive(Debug, Clone, Copy)]
pub struct CellParts {
    /// Row keys.
    pub key: bool,
    /// Values.
    pub value: bool,
}

/// Calls `visit` with the cells of `block` that `passes` lets through, as [`BlockCells::new`] says: rows by key, then families
/// by name, qualifiers by bytes, newest cell first.
///
/// # Errors
/// [`ShapeError`] if the block does not match `schema`; errors of `passes` and `visit`.
pub fn visit_cells<E: From<ShapeError>>(
    schema: &StoredSchema,
    block: &Block,
    parts: CellParts,
    passes: impl Fn(&Group, &GroupBlock, (&str, &[u8])) -> Result<Passes, E>,
    mut visit: impl FnMut(CellRef<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let of_block = BlockCells::new(schema, block, passes)?;
    let mut values = of_block.values()?;
    let (mut row_key, mut value, mut cells) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..block.keys.len() {
        of_block.row(row, &mut cells)?;
        if cells.is_empty() {
            continue;
        }
        row_key.clear();
        if parts.key {
            block.keys.write(row, &mut row_key);
        }
        for cell in &cells {
            value.clear();
            if parts.value {
                values.write(cell, &mut value);
            }
            let Some(name) = of_block.names().get(cell.name as usize) else { continue };
            let (family, qualifier) = (name.family, name.qualifier);
            visit(CellRef { row, row_key: &row_key, family, qualifier, timestamp: cell.timestamp, value: &value })?;
        }
    }
    Ok(())
}
