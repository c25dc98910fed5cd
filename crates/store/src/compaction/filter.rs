//! What rules take out of merged rows for good.

use tidetable_layout::{Block, StoredSchema};

use crate::error::Result;
use crate::gc::GcFilter;
use crate::read::snapshot::Snapshot;
use crate::tombstone::cells_of;

/// The rules of a table at the times of a compaction.
pub(crate) struct CompactionFilter {
    /// At the time of the version, if the plan's is another.
    before: Option<GcFilter>,
    /// At the time of the plan.
    now: Option<GcFilter>,
    /// What files say of rules that were applied to all their rows.
    stamp: Option<String>,
}

impl CompactionFilter {
    pub(crate) fn new(snapshot: &Snapshot, now: i64) -> Result<Self> {
        let version = snapshot.version();
        let collector = snapshot.collector_at(now)?;
        let before = if now > version.now { snapshot.collector_at(version.now)? } else { None };
        // Age goes on, versions only come with cells.
        let when = collector.as_ref().filter(|collector| collector.looks_at_age()).map(|_| now);
        let stamp = collector.as_ref().and_then(|_| serde_json::to_string(&(&version.table.gc, when)).ok());
        Ok(Self { before, now: collector, stamp })
    }

    /// Whether it takes nothing out, ever.
    pub(crate) fn is_mild(&self) -> bool {
        self.now.is_none()
    }

    /// What a file says of these rules, once they were applied to all its rows. They take nothing more out of rows of such
    /// a file that no other file has.
    pub(crate) fn stamp(&self) -> Option<&str> {
        self.stamp.as_deref()
    }

    /// What is left of `block`, and whether a read at the plan's time shows less of it than one at the version's.
    pub(crate) fn collect(&self, schema: &StoredSchema, block: Block) -> Result<(Block, bool)> {
        let Some(now) = &self.now else { return Ok((block, false)) };
        let Some(before) = &self.before else { return Ok((now.collect(schema, block)?, false)) };
        let block = before.collect(schema, block)?;
        let shown = cells_of(schema, &block);
        let block = now.collect(schema, block)?;
        let expired = cells_of(schema, &block) < shown;
        Ok((block, expired))
    }
}
