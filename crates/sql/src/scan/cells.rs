//! The cells of a block in Bigtable's order.

pub use tidetable_layout::cell::CellRef;
use tidetable_layout::cell::{CellParts, Passes, visit_cells};
use tidetable_layout::{Block, StoredSchema};

use crate::error::Result;

/// Calls `visit` with every cell of `block`, which holds all groups of `schema`: rows by key, then families by name,
/// qualifiers by bytes, newest cell first.
///
/// # Errors
/// [`crate::SqlError::Shape`] if the block does not match `schema`; errors of `visit`.
pub fn cells_of_block(
    schema: &StoredSchema,
    block: &Block,
    visit: impl FnMut(CellRef<'_>) -> Result<()>,
) -> Result<()> {
    visit_cells(schema, block, CellParts { key: true, value: true }, |_, _, _| Ok(Passes::All), visit)
}
