//! SSTs that hold the rows of several windows, which settled long ago.
//!
//! A row of such a file is of the window that its key names, so only tables whose rows keep to windows have any. Windows
//! stay the unit of change: one that is built anew leaves the file to the others, and what is appended to one lies beside
//! it. The file stands in the list of one of its windows, its home, before all others there.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tidetable_layout::time::window_bounds;
use tidetable_layout::{Block, Layout, StoredSchema, Window};

use crate::error::{Result, StoreError};
use crate::merge::keep_rows;
use crate::version::WindowState;

/// The windows whose rows a file holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MultiWindow {
    /// Their starts, microseconds since the epoch, ascending; at least one.
    pub windows: Vec<i64>,
    /// Windows that were built anew since, ascending: what the file holds of them counts no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<i64>,
}

impl MultiWindow {
    /// Whether rows of the window at `start` are to be read from it.
    pub fn holds(&self, start: i64) -> bool {
        self.windows.binary_search(&start).is_ok()
    }

    /// Takes a window out, if it is among them.
    pub(crate) fn leave(&mut self, start: i64) {
        if let Ok(at) = self.windows.binary_search(&start) {
            self.windows.remove(at);
            let place = self.without.binary_search(&start).unwrap_or_else(|place| place);
            self.without.insert(place, start);
        }
    }
}

/// The windows at `starts`, which are built anew, leave the files they share with others. A file that is left by all of
/// its windows goes.
pub(crate) fn leave<'a>(windows: impl Iterator<Item = &'a mut WindowState>, starts: &[i64]) {
    for window in windows {
        window.ssts.retain_mut(|sst| match &mut sst.joined {
            Some(joined) => {
                starts.iter().for_each(|start| joined.leave(*start));
                !joined.windows.is_empty()
            }
            None => !starts.contains(&window.start),
        });
    }
}

/// Which rows of a joined file are read.
#[derive(Debug, Clone)]
pub(crate) struct WindowMask {
    layout: Arc<Layout>,
    /// Those of the windows that overlap this.
    time: Range<i64>,
    without: Vec<i64>,
}

impl WindowMask {
    /// The mask of a file for a reader who wants the windows that overlap `time`; `None` if all its rows are read.
    pub(crate) fn new(layout: &Arc<Layout>, joined: &MultiWindow, time: &Range<i64>) -> Option<Self> {
        let unit = layout.spec().window;
        let wanted = joined.windows.iter().all(|start| overlaps(unit, *start, time));
        (!wanted || !joined.without.is_empty()).then(|| Self {
            layout: Arc::clone(layout),
            time: time.clone(),
            without: joined.without.clone(),
        })
    }

    /// What it leaves of `block`.
    pub(crate) fn apply(&self, schema: &StoredSchema, block: Block) -> Result<Block> {
        let unreadable = |error| StoreError::Layout { table: String::new(), reason: format!("{error}") };
        let Some(windows) = self.layout.row_windows(&block.keys).map_err(unreadable)? else { return Ok(block) };
        let unit = self.layout.spec().window;
        let mut kept: Vec<Range<usize>> = Vec::new();
        for (row, start) in windows.into_iter().enumerate() {
            if overlaps(unit, start, &self.time) && self.without.binary_search(&start).is_err() {
                match kept.last_mut() {
                    Some(run) if run.end == row => run.end += 1,
                    _ => kept.push(row..row + 1),
                }
            }
        }
        keep_rows(schema, &block, &kept)
    }
}

/// Whether the window that starts at `start` has a moment of `time`.
pub(crate) fn overlaps(unit: Window, start: i64, time: &Range<i64>) -> bool {
    let bounds = window_bounds(unit, start);
    bounds.start < time.end && time.start < bounds.end
}
