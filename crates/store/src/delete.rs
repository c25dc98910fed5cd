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
        check_target(snapshot, &target)?;
        let version = snapshot.version();
        let next = version.next_input_seqno();
        let is_known =
            version.tombstones.iter().any(|tombstone| tombstone.target == target && tombstone.input_seqno == next);
        let keys = target.keys();
        let base = version.number;
        let mut plan = Self { target, rows: 0, cells: 0, days: BTreeMap::new(), is_known, base };

        // Expired cells are still stored, and could show again if newer ones were hidden.
        let stored = snapshot.including_expired();
        let rows_in_one_window = snapshot.layout().rows_lie_in_one_window();
        for window in &version.windows {
            let ranges = snapshot.window(window, &keys);
            if ranges.is_empty() {
                continue;
            }
            let hidden = plan.count(&stored, &ranges)?;
            plan.rows += hidden.rows;
            plan.cells += hidden.cells;
            // Where rows span windows, hiding a cell here may uncover an older one in another window.
            if hidden.cells > 0 || hidden.has_rows && !rows_in_one_window {
                plan.days.insert(window.start, window.days.keys().copied().collect());
            }
        }

        if !rows_in_one_window {
            let whole: Vec<ScanRange> = snapshot.whole(&keys).into_iter().collect();
            let hidden = plan.count(&stored, &whole)?;
            (plan.rows, plan.cells) = (hidden.rows, hidden.cells);
        }
        Ok(plan)
    }

    /// Counts the rows and cells of `ranges` that the target hides.
    fn count(&self, stored: &Snapshot, ranges: &[ScanRange]) -> Result<HiddenCells> {
        let schema = stored.schema();
        let mut hidden = HiddenCells::default();
        for range in ranges {
            // Overflowing sums must be deletable.
            let mode = ScanMode { overflow: Overflow::Passes, ..ScanMode::default() };
            for block in stored.scan_in(range, &Projection::all(schema), &ScanOptions::default(), mode)? {
                let (rows, cells) = count::hidden(schema, &block?, &self.target);
                hidden.rows += rows;
                hidden.cells += cells;
                hidden.has_rows = true;
            }
        }

        Ok(hidden)
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

/// What a target hides of some scan ranges.
#[derive(Debug, Default)]
struct HiddenCells {
    rows: u64,
    cells: u64,
    /// Whether the ranges hold rows that the target names, with hidden cells or without.
    has_rows: bool,
}

/// Refuses a target that names no row, an unknown family, or cells of an upsert table.
fn check_target(snapshot: &Snapshot, target: &DeleteTarget) -> Result<()> {
    let table = snapshot.table().name();
    if target.names_no_row() {
        return Err(StoreError::DeleteNamesNoRow { table: table.to_owned() });
    }

    if let DeleteTarget::Family { family, .. } | DeleteTarget::Column { family, .. } = target {
        let spec = &snapshot.version().table.spec;
        let families: Vec<&str> = spec.families.iter().map(|family| family.name.as_str()).collect();
        if !families.contains(&family.as_str()) {
            let known = families.join(", ");
            return Err(StoreError::NoFamily { table: table.to_owned(), family: family.clone(), known });
        }
    }

    if snapshot.schema().upsert && !target.takes_rows() {
        return Err(StoreError::UpsertCells { table: table.to_owned() });
    }
    Ok(())
}
