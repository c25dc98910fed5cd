//! What a compaction will do, to be shown before it is done.

use rayon::prelude::*;
use tidetable_layout::{KeyRange, Projection};

use super::pick::{CompactionExtent, CompactionReason, Pick, pick};
use crate::drops::cells_of;
use crate::error::Result;
use crate::snapshot::{Slice, Snapshot};
use crate::version::Sst;

/// The windows of a version that a compaction rewrites.
#[derive(Debug, Clone)]
pub struct CompactionPlan {
    pub(super) snapshot: Snapshot,
    /// Logical time at which rules are judged: that of the version, or later.
    pub now: i64,
    /// By start.
    pub windows: Vec<WindowPlan>,
}

/// A window to be rewritten.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowPlan {
    /// Its start, microseconds since the epoch.
    pub start: i64,
    /// Why.
    pub reason: CompactionReason,
    /// The SSTs to be replaced, older data first.
    pub ssts: Vec<Sst>,
}

impl CompactionPlan {
    /// Plans the compaction of what is needed of `snapshot` at `now`; before the time of its version that counts.
    ///
    /// # Errors
    /// Those of reading: a window of one SST is read to see whether anything of it is hidden.
    pub fn new(snapshot: &Snapshot, now: i64) -> Result<Self> {
        Self::of_extent(snapshot, now, CompactionExtent::Needed)
    }

    /// Plans the compaction of so much of `snapshot` at `now`, as [`Self::new`] does.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_extent(snapshot: &Snapshot, now: i64, extent: CompactionExtent) -> Result<Self> {
        let version = snapshot.version();
        let now = now.max(version.now);
        let judged = snapshot.as_of_now(now)?;
        let worth = |pick: Pick| -> Result<Option<WindowPlan>> {
            let window = version.windows.iter().find(|window| window.start == pick.start);
            let ssts = window.map(|window| window.ssts.clone()).unwrap_or_default();
            let plan = WindowPlan { start: pick.start, reason: pick.reason, ssts };
            let is_worth = match pick.reason {
                CompactionReason::SeveralSsts | CompactionReason::Fresh => true,
                CompactionReason::HiddenCells => count(&judged, &plan)? < count(&snapshot.as_stored(), &plan)?,
            };
            Ok(is_worth.then_some(plan))
        };
        let windows: Vec<Option<WindowPlan>> =
            pick(version, extent).into_par_iter().map(worth).collect::<Result<_>>()?;
        Ok(Self { snapshot: snapshot.clone(), now, windows: windows.into_iter().flatten().collect() })
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }
}

impl WindowPlan {
    /// All of its rows, to be scanned.
    pub(super) fn slice(&self) -> Slice {
        Slice { keys: KeyRange::all(), ssts: self.ssts.iter().map(|sst| sst.id.clone()).collect(), bytes: 0 }
    }
}

/// Cells that `snapshot` shows of a window.
fn count(snapshot: &Snapshot, plan: &WindowPlan) -> Result<u64> {
    let mut cells = 0;
    for block in snapshot.scan(&plan.slice(), &Projection::all(snapshot.schema()))? {
        cells += cells_of(snapshot.schema(), &block?);
    }
    Ok(cells)
}
