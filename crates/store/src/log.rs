//! Windows in the events of the log, which say what was decided about a table and why.
//!
//! The message of an event is its stable name, such as `commit`; its fields are `table`, `window`, `reason` and what else the
//! decision rests on. Events have the level `debug`. The guide to operations lists them.

use std::sync::Arc;

use tidetable_layout::Window;
use tidetable_layout::time::window_name;

/// Names the windows of an event by their starts, in microseconds since the epoch: `2018-01-01` for one window,
/// `2018-01-01..2018-01-31` for the first and last of several, and nothing for none.
pub fn window_names(unit: Window, starts: impl IntoIterator<Item = i64>) -> String {
    let bounds = starts.into_iter().fold(None, |bounds, start| match bounds {
        None => Some((start, start)),
        Some((first, last)) => Some((start.min(first), start.max(last))),
    });

    match bounds {
        None => String::new(),
        Some((first, last)) if first == last => window_name(unit, first),
        Some((first, last)) => format!("{}..{}", window_name(unit, first), window_name(unit, last)),
    }
}

/// Where an SST lies, for the events of a scan. A scan knows it only while the log has the level `debug`.
#[derive(Debug, Clone)]
pub struct SstPlace {
    /// Name of the table.
    pub(crate) table: Arc<str>,
    /// Name of the window that lists the SST.
    pub(crate) window: String,
    /// Id of the SST, which is its file name without directory and extension.
    pub(crate) sst: String,
}

impl SstPlace {
    /// Logs that a point lookup does not read the SST.
    pub(crate) fn log_ruled_out(&self) {
        let Self { table, window, sst } = self;
        tracing::debug!(table = &**table, window, reason = "the key filter excludes the row", sst, "sst_skipped");
    }

    /// Logs that a scan left out some stripes of the SST.
    pub(crate) fn log_skipped_stripes(&self, stripes: usize, reason: &str) {
        let Self { table, window, sst } = self;
        tracing::debug!(table = &**table, window, reason, sst, stripes, "stripes_skipped");
    }
}

#[cfg(test)]
mod tests {
    use tidetable_layout::time::DAY;

    use super::*;

    #[test]
    fn windows_are_named_by_the_first_and_the_last() {
        assert_eq!(window_names(Window::Day, []), "");
        assert_eq!(window_names(Window::Day, [0]), "1970-01-01");
        assert_eq!(window_names(Window::Day, [2 * DAY, 0, DAY]), "1970-01-01..1970-01-03");
        assert_eq!(window_names(Window::None, [0]), "all");
    }
}
