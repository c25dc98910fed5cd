//! Delete plan: counts what a delete hides before it is committed.

use std::collections::{BTreeMap, BTreeSet};

use tidetable_layout::Projection;

use crate::error::{Result, StoreError};
use crate::merge::operator::Overflow;
use crate::read::options::{ScanMode, ScanOptions};
use crate::read::scan_range::ScanRange;
use crate::read::snapshot::Snapshot;
use crate::tombstone::count;
use crate::version::DeleteTarget;
use crate::version::VersionEdit;

/// The effect of a delete on a version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeletePlan {
    /// The target to hide.
    pub target: DeleteTarget,
    /// Rows with hidden cells.
    pub rows: u64,
    /// Hidden stored cells, including expired ones.
    pub cells: u64,
    /// Days whose cells may change, by window: all days of a window with hidden cells.
    pub days: BTreeMap<i64, BTreeSet<i32>>,
    /// Whether the newest tombstones already cover it, for every input seen so far.
    is_known: bool,
    base: u64,
}

impl DeletePlan {
    /// Counts what `target` hides in `snapshot`.
    ///
    /// # Errors
    /// [`StoreError::DeleteNamesNoRow`] and [`StoreError::NoFamily`]; [`StoreError::UpsertCells`], for of
    /// a row that is replaced whole no file says what it held before: cells hidden when read and cells
    /// hidden when loaded again would leave different rows. Those of reading.
    pub fn new(snapshot: &Snapshot, target: DeleteTarget) -> Result<Self> {
        let (version, schema) = (snapshot.version(), snapshot.schema());
        let table = || snapshot.table().name().to_owned();
        if target.names_no_row() {
            return Err(StoreError::DeleteNamesNoRow { table: table() });
        }
        if let DeleteTarget::Family { family, .. } | DeleteTarget::Column { family, .. } = &target {
            let families: Vec<&str> = version.table.spec.families.iter().map(|family| family.name.as_str()).collect();
            if !families.contains(&family.as_str()) {
                let known = families.join(", ");
                return Err(StoreError::NoFamily { table: table(), family: family.clone(), known });
            }
        }
        if schema.upsert && !target.takes_rows() {
            return Err(StoreError::UpsertCells { table: table() });
        }
        // Expired cells are still stored, and could show again if newer ones were hidden.
        let stored = snapshot.including_expired();
        // Overflowing sums must be deletable.
        let counted = |slices: Vec<ScanRange>| -> Result<Option<(u64, u64)>> {
            let mut sum = None;
            for slice in slices {
                let mode = ScanMode { overflow: Overflow::Passes, ..ScanMode::default() };
                for block in stored.scan_in(&slice, &Projection::all(schema), &ScanOptions::default(), mode)? {
                    let (rows, cells) = count::hidden(schema, &block?, &target);
                    let (rows_before, cells_before) = sum.unwrap_or_default();
                    sum = Some((rows_before + rows, cells_before + cells));
                }
            }
            Ok(sum)
        };
        let next = version.next_input_seqno();
        let is_known =
            version.tombstones.iter().any(|tombstone| tombstone.target == target && tombstone.input_seqno == next);
        let days = BTreeMap::new();
        let mut plan = Self { target: target.clone(), rows: 0, cells: 0, days, is_known, base: version.number };
        let (keys, keeps) = (target.keys(), snapshot.layout().rows_lie_in_one_window());
        for window in &version.windows {
            let Some((rows, cells)) = counted(snapshot.window(window, &keys))? else { continue };
            plan.rows += rows;
            plan.cells += cells;
            // Where rows span windows, hiding a cell here may uncover an older one in another window.
            if cells > 0 || !keeps {
                plan.days.insert(window.start, window.days.keys().copied().collect());
            }
        }
        if !keeps {
            (plan.rows, plan.cells) = counted(snapshot.whole(&keys).into_iter().collect())?.unwrap_or_default();
        }
        Ok(plan)
    }

    /// Whether it hides no stored cell.
    pub fn is_empty(&self) -> bool {
        self.cells == 0
    }

    /// The edit of the delete. A delete that hides nothing is recorded too: it applies to the inputs seen so far,
    /// whatever they bring later. The edit is empty only if tombstones already cover it.
    pub fn edit(&self) -> VersionEdit {
        if self.is_empty() && (self.is_known || tidetable_sstable::failpoint!(ForgetIdleDrops)) {
            return VersionEdit { base: self.base, ..VersionEdit::default() };
        }
        VersionEdit {
            deletes: vec![self.target.clone()],
            days: self.days.clone(),
            base: self.base,
            ..VersionEdit::default()
        }
    }
}
