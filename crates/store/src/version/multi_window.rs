//! Multi-window files: SSTs with the rows of several settled windows.
//!
//! The row key tells the window of a row, so only tables whose keys name the window have such files. Windows stay the
//! unit of change: a rebuilt window leaves the file to the others, and appended rows go into SSTs of their own. The
//! file is listed in one of its windows, its home, before all other SSTs.

use serde::{Deserialize, Serialize};

/// The windows of a multi-window file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MultiWindow {
    /// Their starts, microseconds since the epoch, ascending; at least one.
    pub windows: Vec<i64>,
    /// Windows rebuilt since, ascending: the rows that the file holds of them are ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<i64>,
}

impl MultiWindow {
    /// Whether the file holds live rows of the window at `start`.
    pub fn holds(&self, start: i64) -> bool {
        self.windows.binary_search(&start).is_ok()
    }

    /// Removes a window, if it is among them.
    pub(crate) fn leave(&mut self, start: i64) {
        if let Ok(at) = self.windows.binary_search(&start) {
            self.windows.remove(at);
            let place = self.without.binary_search(&start).unwrap_or_else(|place| place);
            self.without.insert(place, start);
        }
    }
}
