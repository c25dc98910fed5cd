//! Which SSTs of the version before a load may hold cells of the same row, column and timestamp as new ones.

use std::sync::Arc;

use tidetable_layout::schema::TimestampKind;
use tidetable_layout::{KeyRange, Layout, Projection};
use tidetable_store::Result;
use tidetable_store::merge::Overflow;
use tidetable_store::read::{BlockScan, ScanMode, ScanOptions, Snapshot, SstSource};
use tidetable_store::version::{Sst, VersionEdit};

use crate::spec::LoadTarget;

impl LoadTarget<'_> {
    /// The SSTs that a window holds before the load and that `edit` leaves there; those of all windows for `None`.
    pub(super) fn left_in(&self, window: Option<i64>, edit: &VersionEdit) -> Vec<&Sst> {
        let mut left = Vec::new();
        for state in &self.base.windows {
            let stays = !edit.rebuilt.contains(&state.start) && is_in(window, state.start);
            left.extend(state.ssts.iter().filter(|sst| match &sst.multi_window {
                Some(multi_window) => multi_window.windows.iter().any(|start| is_in(window, *start)),
                None => stays,
            }));
        }

        left
    }
}

/// Whether `window` is the one that begins at `start`; `None` stands for all windows.
pub(super) fn is_in(window: Option<i64>, start: i64) -> bool {
    window.is_none_or(|window| window == start)
}

/// Whether cells of the same row and column conflict only if their timestamps are equal.
pub(super) fn times_decide(layout: &Layout) -> bool {
    let schema = layout.stored();
    if schema.upsert {
        return false;
    }

    schema.groups.iter().enumerate().all(|(at, group)| {
        let mut columns = group.columns.iter().enumerate();
        group.timestamps == TimestampKind::Stored
            || columns.all(|(place, column)| !column.merge.is_newest() || layout.follows_from_key(at, place))
    })
}

/// Whether the timestamps of two SSTs do not overlap, except for cells without one.
pub(super) fn are_apart(one: &Sst, other: &Sst) -> bool {
    let times = one.min_timestamp.zip(one.max_timestamp);
    let other_times = other.min_timestamp.zip(other.max_timestamp);

    match (times, other_times) {
        (Some((first, last)), Some((other_first, other_last))) => last < other_first || other_last < first,
        _ => true,
    }
}

/// Old and new SSTs, to be read at the row keys of the new ones.
pub(super) struct Overlap<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) old: Vec<&'a Sst>,
    pub(super) new: Vec<&'a Sst>,
    keys: KeyRange,
}

impl<'a> Overlap<'a> {
    /// Those of `old` and `new` that `meets` is true of, with one at least of the other; `None` if there are none.
    pub(super) fn new(
        snapshot: &'a Snapshot,
        old: &[&'a Sst],
        new: &[&'a Sst],
        meets: impl Fn(&Sst, &Sst) -> bool,
    ) -> Option<Self> {
        let old: Vec<&Sst> = old.iter().copied().filter(|old| new.iter().any(|new| meets(old, new))).collect();
        let new: Vec<&Sst> = new.iter().copied().filter(|new| old.iter().any(|old| meets(old, new))).collect();

        let first = new.iter().map(|sst| &sst.first_key).min()?;
        let last = new.iter().map(|sst| &sst.last_key).max()?;
        let keys = KeyRange { start: first.clone(), end: Some([last.as_slice(), &[0]].concat()) };
        Some(Self { snapshot, old, new, keys })
    }

    /// Scans SSTs at all times, in the order of their sequence numbers. Sums that overflow are no error here.
    pub(super) fn scan(&self, ssts: Vec<SstSource>, projection: &Projection, mode: ScanMode) -> Result<BlockScan> {
        let mode = ScanMode { overflow: Overflow::Passes, ..mode };
        let schema = Arc::clone(self.snapshot.schema());
        BlockScan::new(schema, ssts, self.keys.clone(), projection, None, &ScanOptions::default(), mode)
    }
}
