//! Window mask: selects rows of a multi-window file by window.

use std::ops::Range;
use std::sync::Arc;

use tidetable_layout::time::window_bounds;
use tidetable_layout::{Block, Layout, StoredSchema, Window};

use crate::error::{Result, StoreError};
use crate::merge::keep_rows;
use crate::version::MultiWindow;

/// Selects the rows of a multi-window file that are read.
#[derive(Debug, Clone)]
pub struct WindowMask {
    layout: Arc<Layout>,
    /// Event time, microseconds: rows of windows that overlap it are read.
    time: Range<i64>,
    without: Vec<i64>,
}

impl WindowMask {
    /// The mask of a file for a read of the windows that overlap `time`; `None` if all rows are read.
    pub(crate) fn new(layout: &Arc<Layout>, multi_window: &MultiWindow, time: &Range<i64>) -> Option<Self> {
        let unit = layout.spec().window;
        let wanted = multi_window.windows.iter().all(|start| window_overlaps(unit, *start, time));
        (!wanted || !multi_window.without.is_empty()).then(|| Self {
            layout: Arc::clone(layout),
            time: time.clone(),
            without: multi_window.without.clone(),
        })
    }

    /// The selected rows of `block`.
    pub(crate) fn apply(&self, schema: &StoredSchema, block: Block) -> Result<Block> {
        let windows = self.layout.row_windows(&block.keys);
        let windows =
            windows.map_err(|error| StoreError::Layout { table: String::new(), reason: error.to_string() })?;
        let Some(windows) = windows else { return Ok(block) };

        let unit = self.layout.spec().window;
        let mut kept: Vec<Range<usize>> = Vec::new();
        for (row, start) in windows.into_iter().enumerate() {
            if window_overlaps(unit, start, &self.time) && self.without.binary_search(&start).is_err() {
                match kept.last_mut() {
                    Some(run) if run.end == row => run.end += 1,
                    _ => kept.push(row..row + 1),
                }
            }
        }

        keep_rows(schema, &block, &kept)
    }
}

/// Whether the window at `start` overlaps `time`.
pub(crate) fn window_overlaps(unit: Window, start: i64, time: &Range<i64>) -> bool {
    let bounds = window_bounds(unit, start);
    bounds.start < time.end && time.start < bounds.end
}
