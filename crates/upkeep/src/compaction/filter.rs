//! Compaction filter: removes cells that garbage-collection rules have expired.

use tidetable_layout::{Block, StoredSchema};
use tidetable_store::GcFilter;
use tidetable_store::Result;
use tidetable_store::read::Snapshot;
use tidetable_store::tombstone::cells_of;

/// The GC filters of a compaction.
pub(crate) struct CompactionFilter {
    /// GC filter at the time of the version, if the plan's time differs.
    before: Option<GcFilter>,
    /// GC filter at the time of the plan.
    now: Option<GcFilter>,
    /// File metadata for SSTs with this filter applied to all rows.
    stamp: Option<String>,
}

impl CompactionFilter {
    pub(crate) fn new(snapshot: &Snapshot, now: i64) -> Result<Self> {
        let version = snapshot.version();
        let gc_filter = snapshot.gc_filter_at(now)?;
        let before = if now > version.now { snapshot.gc_filter_at(version.now)? } else { None };
        // Cells expire by age without new data, by versions only with it.
        let when = gc_filter.as_ref().filter(|gc_filter| gc_filter.looks_at_age()).map(|_| now);
        let stamp = gc_filter.as_ref().and_then(|_| serde_json::to_string(&(&version.table.gc, when)).ok());
        Ok(Self { before, now: gc_filter, stamp })
    }

    /// Whether it never removes cells.
    pub(crate) fn is_empty(&self) -> bool {
        self.now.is_none()
    }

    /// File metadata for SSTs with this filter applied to all rows. Applying it again removes nothing from rows that
    /// are in no other SST.
    pub(crate) fn stamp(&self) -> Option<&str> {
        self.stamp.as_deref()
    }

    /// The remaining cells of `block`, and whether a read at the plan's time returns fewer cells than one at the
    /// version's time.
    pub(crate) fn apply(&self, schema: &StoredSchema, block: Block) -> Result<(Block, bool)> {
        let Some(now) = &self.now else { return Ok((block, false)) };
        let Some(before) = &self.before else { return Ok((now.apply(schema, block)?, false)) };
        let block = before.apply(schema, block)?;
        let shown = cells_of(schema, &block);
        let block = now.apply(schema, block)?;
        let expired = cells_of(schema, &block) < shown;
        Ok((block, expired))
    }
}
