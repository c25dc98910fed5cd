//! A window of a version, and its SSTs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidetable_layout::Window;
use tidetable_layout::time::{DAY, window_bounds};

use crate::version::sst::Sst;

/// A window and its SSTs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowState {
    /// Start, microseconds since the epoch.
    pub start: i64,
    /// For each of its UTC days (days since the epoch), the last version that changed the day.
    pub days: BTreeMap<i32, u64>,
    /// Its SSTs, older data first; those of one compaction by key.
    pub ssts: Vec<Sst>,
}

impl WindowState {
    /// A window without SSTs.
    pub(crate) fn new(start: i64) -> Self {
        Self { start, days: BTreeMap::new(), ssts: Vec::new() }
    }

    /// Removes all SSTs; version `number` changes all its days.
    pub(crate) fn empty(&mut self, number: u64) {
        self.ssts.clear();
        self.touch(number);
    }

    /// Marks all its days as changed by version `number`.
    pub(crate) fn touch(&mut self, number: u64) {
        self.days.values_mut().for_each(|changed| *changed = number);
    }

    /// Whether it is one of the windows at `starts`, or lists a multi-window file with rows of one.
    pub(crate) fn has_rows_of(&self, starts: &[i64]) -> bool {
        let multi_window = self.ssts.iter().filter_map(|sst| sst.multi_window.as_ref());
        starts.contains(&self.start)
            || multi_window.into_iter().any(|files| starts.iter().any(|start| files.holds(*start)))
    }

    /// Removes the rebuilt windows at `starts` from its multi-window files, and the files without live windows; if it
    /// is one of them, also its own SSTs.
    pub(crate) fn leave(&mut self, starts: &[i64]) {
        self.ssts.retain_mut(|sst| match &mut sst.multi_window {
            Some(multi_window) => {
                starts.iter().for_each(|start| multi_window.leave(*start));
                !multi_window.windows.is_empty()
            }
            None => !starts.contains(&self.start),
        });
    }
}

/// The `days` (days since the epoch) that overlap the window at `start`.
pub fn days_in(days: &[i32], window: Window, start: i64) -> Vec<i32> {
    let bounds = window_bounds(window, start);
    let mut within = days.to_vec();
    within.retain(|day| {
        let begun = i64::from(*day) * DAY;
        begun < bounds.end && bounds.start < begun.saturating_add(DAY)
    });

    within
}
