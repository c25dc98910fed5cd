//! Which SSTs of the version before a load may hold cells of the same row, column and timestamp as new ones.

use tidetable_layout::Layout;
use tidetable_layout::schema::{Merge, TimestampKind};
use tidetable_store::version::{Sst, VersionEdit};

use crate::spec::LoadTarget;

impl LoadTarget<'_> {
    /// The SSTs that a window holds before the load and that `edit` leaves there; those of all windows for `None`.
    pub(super) fn left_in(&self, window: Option<i64>, edit: &VersionEdit) -> Vec<&Sst> {
        let is_near = |start: i64| window.is_none_or(|window| window == start);
        let mut left = Vec::new();
        for state in &self.base.windows {
            let stays = !edit.rebuilt.contains(&state.start) && is_near(state.start);
            left.extend(state.ssts.iter().filter(|sst| match &sst.multi_window {
                Some(multi_window) => multi_window.windows.iter().any(|start| is_near(*start)),
                None => stays,
            }));
        }
        left
    }
}

/// Whether cells of the same row and column conflict only if their timestamps are equal.
pub(super) fn times_decide(layout: &Layout) -> bool {
    let schema = layout.stored();
    let mut groups = schema.groups.iter().enumerate();
    !schema.upsert
        && groups.all(|(at, group)| {
            let mut columns = group.columns.iter().enumerate();
            let commutes =
                |(place, merge): (usize, &Merge)| *merge != Merge::Newest || layout.follows_from_key(at, place);
            group.timestamps == TimestampKind::Stored || columns.all(|(place, column)| commutes((place, &column.merge)))
        })
}

/// Whether the timestamps of two SSTs do not overlap, except for cells without one.
pub(super) fn are_apart(one: &Sst, other: &Sst) -> bool {
    let times = |sst: &Sst| sst.min_timestamp.zip(sst.max_timestamp);
    match (times(one), times(other)) {
        (Some((first, last)), Some((other_first, other_last))) => last < other_first || other_last < first,
        _ => true,
    }
}
