//! Join picker: selects settled windows to join into multi-window files, so that a year of days is a few files. Pure:
//! uses the manifest only.

use std::collections::BTreeMap;

use tidetable_layout::Window;
use tidetable_layout::time::{window_bounds, window_of};
use tidetable_store::version::{Sst, Version};
use tidetable_store::write::SST_BYTES;

use crate::compaction::extent::{CompactionExtent, CompactionReason};

/// Number of later windows after which a window counts as settled: late data has mostly arrived by then.
const SETTLED_AFTER: i64 = 7;
/// Maximum number of SSTs of one join, which bounds its memory.
const MAX_SSTS: usize = 64;
/// Number of late SSTs beside multi-window files that triggers another join.
const LATE_SSTS: usize = 8;
/// Multi-window files are joined again once the late SSTs, times this factor, outweigh them.
const LATE_SHARE: u64 = 4;

/// Windows to join into multi-window files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JoinPick {
    pub(crate) reason: CompactionReason,
    /// Starts of the windows, microseconds since the epoch, ascending.
    pub(crate) windows: Vec<i64>,
}

/// The span of a join for a unit of windows.
fn span_of(window: Window) -> Option<Window> {
    match window {
        Window::Hour => Some(Window::Day),
        Window::Day => Some(Window::Month),
        // Few windows anyway; and weeks do not lie within months.
        Window::Week | Window::Month | Window::None => None,
    }
}

/// Statistics of the windows of a span.
#[derive(Default)]
struct WindowSpan<'a> {
    /// Starts of its windows with SSTs, ascending.
    windows: Vec<i64>,
    /// SSTs that hold one window each.
    own: Vec<&'a Sst>,
    /// SSTs that hold several windows.
    multi_window: Vec<&'a Sst>,
}

/// The joins of a table whose row keys name the window.
pub(crate) fn joins(version: &Version, extent: CompactionExtent) -> Vec<JoinPick> {
    let unit = version.table.spec.window;
    let Some(larger) = span_of(unit) else { return Vec::new() };
    let Some(newest) = version.windows.iter().map(|window| window.start).max() else { return Vec::new() };

    let mut found = Vec::new();
    for (start, span) in spans(version, larger) {
        let end = window_bounds(larger, start).end;
        let length = window_bounds(unit, end).end - end;
        let is_settled = end.saturating_add(length.saturating_mul(SETTLED_AFTER)) <= newest;
        if let Some(reason) = span.reason(version, extent, is_settled) {
            found.push(JoinPick { reason, windows: span.windows });
        }
    }

    found
}

/// The SSTs of a version by the span that their windows lie in.
fn spans(version: &Version, larger: Window) -> BTreeMap<i64, WindowSpan<'_>> {
    let mut spans: BTreeMap<i64, WindowSpan<'_>> = BTreeMap::new();
    for window in &version.windows {
        for sst in &window.ssts {
            match &sst.multi_window {
                Some(multi_window) => {
                    let first = multi_window.windows.first().copied().unwrap_or(window.start);
                    let span = spans.entry(window_of(larger, first)).or_default();
                    span.multi_window.push(sst);
                    span.windows.extend(&multi_window.windows);
                }
                None => {
                    let span = spans.entry(window_of(larger, window.start)).or_default();
                    span.own.push(sst);
                    span.windows.push(window.start);
                }
            }
        }
    }

    for span in spans.values_mut() {
        span.windows.sort_unstable();
        span.windows.dedup();
    }

    spans
}

impl WindowSpan<'_> {
    /// The reason to join its windows, or to join them again; `None` if there is none.
    fn reason(&self, version: &Version, extent: CompactionExtent, is_settled: bool) -> Option<CompactionReason> {
        let (own, multi_window) = (bytes_of(&self.own), bytes_of(&self.multi_window));
        if self.windows.len() < 2
            || self.own.len() + self.multi_window.len() > MAX_SSTS
            || own + multi_window > SST_BYTES
        {
            return None;
        }
        if self.multi_window.is_empty() {
            return is_settled.then_some(CompactionReason::Settled);
        }

        let late = self.own.len() >= LATE_SSTS || own.saturating_mul(LATE_SHARE) >= multi_window;
        match extent {
            _ if self.own.is_empty() && extent != CompactionExtent::Due => {
                self.multi_window.iter().any(|sst| version.may_hide_cells(sst)).then_some(CompactionReason::HiddenCells)
            }
            CompactionExtent::Due => (late && !self.own.is_empty()).then_some(CompactionReason::SeveralSsts),
            CompactionExtent::Needed | CompactionExtent::Full => Some(CompactionReason::SeveralSsts),
        }
    }
}

fn bytes_of(ssts: &[&Sst]) -> u64 {
    ssts.iter().map(|sst| sst.bytes).sum()
}
