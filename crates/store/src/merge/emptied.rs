//! Rows that an upsert without values emptied.
//!
//! Such a row is invisible, but the timestamp of the upsert must stay: an older event that arrives later must not
//! bring the row back. So an SST keeps a record without values, which takes part in merges and is removed from reads.
//! Manifests record which SSTs may hold any ([`crate::Sst::emptied`]).

use arrow::array::{Array, ArrayRef};
use tidetable_layout::schema::TimestampKind;
use tidetable_layout::{Block, GroupBlock, Projection, StoredSchema};

use crate::error::Result;
use crate::gc::remove;

/// Whether a block holds such a row, as far as its projected groups show.
pub fn any(schema: &StoredSchema, block: &Block) -> bool {
    let groups = schema.groups.iter().zip(&block.groups);
    let mut stored = groups.filter(|(group, _)| group.timestamps == TimestampKind::Stored);
    schema.upsert && stored.any(|(_, held)| held.as_ref().is_some_and(has_empty_record))
}

/// Adds the columns needed to detect rows that an upsert emptied: all values of a group.
pub(crate) fn widen(projection: &mut Projection) {
    projection.groups.iter_mut().flatten().for_each(|group| group.columns.fill(true));
}

/// Removes the rows that an upsert emptied from a block.
pub fn take_out(schema: &StoredSchema, mut block: Block) -> Result<Block> {
    let mut changed = false;
    for (group, held) in schema.groups.iter().zip(&mut block.groups) {
        if group.timestamps == TimestampKind::Stored
            && let Some(records) = held.as_mut().filter(|records| has_empty_record(records))
        {
            *records = remove(records, &vec![None; records.columns.len()], false)?;
            changed = true;
        }
    }
    Ok(if changed { block.without_empty_rows() } else { block })
}

fn has_empty_record(records: &GroupBlock) -> bool {
    let columns: Option<Vec<&ArrayRef>> = records.columns.iter().map(Option::as_ref).collect();
    // A column without nulls rules out records without values.
    let columns = columns.filter(|columns| columns.iter().all(|values| values.null_count() > 0));
    columns.is_some_and(|columns| (0..records.len()).any(|at| columns.iter().all(|values| values.is_null(at))))
}
