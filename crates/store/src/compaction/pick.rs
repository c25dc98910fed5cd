//! Which windows may be worth compacting. Pure: looks at the manifest alone.

use crate::drops::overlaps;
use crate::version::{Version, WindowState};

/// Why a window is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompactionReason {
    /// Several SSTs are merged whenever it is read.
    SeveralSsts,
    /// It is as a load wrote it: less dense than it could be.
    Fresh,
    /// It holds cells that drops or rules hide.
    HiddenCells,
}

/// How much of a table is to be compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CompactionExtent {
    /// What readers gain from: windows of several SSTs, and those that hold hidden cells.
    Needed,
    /// Also windows that only become denser.
    Full,
}

/// A window that may be worth it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pick {
    pub(super) start: i64,
    pub(super) reason: CompactionReason,
}

/// The windows whose SSTs are several or, if all is wanted, fresh, and those of which something may be hidden:
/// whether it is, only their cells tell.
pub(super) fn pick(version: &Version, extent: CompactionExtent) -> Vec<Pick> {
    let reason = |window: &WindowState| {
        if window.ssts.windows(2).any(|pair| pair[0].order != pair[1].order) {
            return Some(CompactionReason::SeveralSsts);
        }
        if extent == CompactionExtent::Full && window.ssts.iter().any(|sst| sst.level == 0) {
            return Some(CompactionReason::Fresh);
        }
        let dropped = version.drops.iter().any(|drop| {
            let older = window.ssts.iter().filter(|sst| sst.order < drop.order);
            let keys = drop.target.keys();
            older.into_iter().any(|sst| overlaps(&keys, &sst.first_key, &sst.last_key))
        });
        let ruled = !version.table.gc.is_empty() && !window.ssts.is_empty();
        (dropped || ruled).then_some(CompactionReason::HiddenCells)
    };
    let picked =
        version.windows.iter().filter_map(|window| Some(Pick { start: window.start, reason: reason(window)? }));
    picked.collect()
}
