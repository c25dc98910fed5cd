//! What keeps a derived table from being brought up to date.

use std::cmp::Ordering;

use tidetable_job::Table;
use tidetable_layout::Window;
use tidetable_layout::time::window_name;
use tidetable_store::Version;

use super::days::ranges;

/// The window for which the query of a derived table runs once: that of the table, or a coarser one of its `sources`, so that
/// its groups are complete. Of an upserted row only the newest event counts.
pub(crate) fn query_window(sources: impl Iterator<Item = Window>, table: &Table) -> Window {
    let of_table = Some(table.spec.window).filter(|_| !table.spec.upsert);
    sources.chain(of_table).reduce(coarser).unwrap_or(Window::None)
}

/// The smallest window that contains windows of both.
fn coarser(a: Window, b: Window) -> Window {
    match rank(a).cmp(&rank(b)) {
        _ if a == b => a,
        Ordering::Less => b,
        Ordering::Greater => a,
        // Weeks do not lie inside months.
        Ordering::Equal => Window::None,
    }
}

/// The order of windows by their length.
fn rank(window: Window) -> u8 {
    match window {
        Window::Hour => 0,
        Window::Day => 1,
        Window::Week | Window::Month => 2,
        Window::None => 3,
    }
}

/// Why a derived table cannot be brought up to date: tables that it reads lost cells with damaged SSTs.
pub(crate) struct HeldBack {
    /// Whether all of the table stays as it was, because its query reads all of these tables at once.
    pub(crate) is_whole: bool,
    /// A sentence that says so.
    pub(crate) note: String,
}

impl HeldBack {
    /// What keeps `table` back, which reads the tables `read`, by name; `None` if these lost nothing.
    pub(crate) fn of(table: &Table, read: &[(String, Version)]) -> Option<Self> {
        let mut lost = Vec::new();
        for (name, version) in read {
            let unit = version.table.spec.window;
            let windows: Vec<String> = version.lost_windows().iter().map(|start| window_name(unit, *start)).collect();
            if !windows.is_empty() {
                let window = if windows.len() == 1 { "window" } else { "windows" };
                let windows: Vec<&str> = windows.iter().map(String::as_str).collect();
                lost.push(format!("{window} {} of {name}", ranges(&windows)));
            }
        }
        if lost.is_empty() {
            return None;
        }

        let sources = read.iter().map(|(_, version)| version.table.spec.window);
        let is_whole = query_window(sources, table) == Window::None;
        let (name, lost) = (&table.spec.name, lost.join(" and "));
        let note = match is_whole {
            true => format!(
                "{name} stays as it was: a damaged SST took cells of {lost}, and its query reads all windows at once; the run that \
                 rebuilds what was lost updates {name}, too"
            ),
            false => format!(
                "{name} keeps what it has of {lost}, of which a damaged SST took cells; the run that rebuilds what was lost updates \
                 {name}, too"
            ),
        };
        Some(Self { is_whole, note })
    }
}
