//! Which settled windows are joined, so that a year of days is a few files to open. Pure: looks at the manifest alone.

use std::collections::BTreeMap;

use tidetable_layout::Window;
use tidetable_layout::time::{window_bounds, window_of};

use crate::compaction::extent::{CompactionExtent, CompactionReason};
use crate::sst_writer::SST_BYTES;
use crate::version::{Sst, Version};

/// Windows that must have come after those that are joined: what is late has mostly come by then.
const SETTLED_AFTER: i64 = 7;
/// SSTs of one join at most, so that its memory has a bound.
const MOST_SSTS: usize = 64;
/// SSTs beside joined files that wait to be taken in.
const LATE_SSTS: usize = 8;
/// So many times the bytes of what is beside them must outweigh joined files, or they wait.
const LATE_SHARE: u64 = 4;

/// Windows whose SSTs become files of all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JoinPick {
    pub(crate) reason: CompactionReason,
    /// Their starts, ascending.
    pub(crate) windows: Vec<i64>,
}

/// The unit that windows are joined to, where rows keep to them.
fn span_of(window: Window) -> Option<Window> {
    match window {
        Window::Hour => Some(Window::Day),
        Window::Day => Some(Window::Month),
        // Few enough as they are; weeks do not lie inside months.
        Window::Week | Window::Month | Window::None => None,
    }
}

/// What is known of the windows of a span.
#[derive(Default)]
struct Span<'a> {
    /// Those that hold something.
    windows: Vec<i64>,
    own: Vec<&'a Sst>,
    joined: Vec<&'a Sst>,
}

/// The joins of a table whose rows keep to windows.
pub(crate) fn joins(version: &Version, extent: CompactionExtent) -> Vec<JoinPick> {
    let unit = version.table.spec.window;
    let Some(larger) = span_of(unit) else { return Vec::new() };
    let Some(newest) = version.windows.iter().map(|window| window.start).max() else { return Vec::new() };
    let settled = |start: i64| {
        let end = window_bounds(larger, start).end;
        let length = window_bounds(unit, end).end - end;
        end.saturating_add(length.saturating_mul(SETTLED_AFTER)) <= newest
    };
    let mut found = Vec::new();
    for (start, span) in spans(version, larger) {
        if let Some(reason) = span.reason(version, extent, settled(start)) {
            found.push(JoinPick { reason, windows: span.windows });
        }
    }
    found
}

fn spans(version: &Version, larger: Window) -> BTreeMap<i64, Span<'_>> {
    let mut spans: BTreeMap<i64, Span<'_>> = BTreeMap::new();
    let span = |start| window_of(larger, start);
    for window in &version.windows {
        for sst in &window.ssts {
            match &sst.joined {
                Some(joined) => {
                    let held = spans.entry(span(joined.windows.first().copied().unwrap_or(window.start))).or_default();
                    held.joined.push(sst);
                    held.windows.extend(&joined.windows);
                }
                None => {
                    let held = spans.entry(span(window.start)).or_default();
                    held.own.push(sst);
                    held.windows.push(window.start);
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

impl Span<'_> {
    /// Why its windows are to be joined, or joined again.
    fn reason(&self, version: &Version, extent: CompactionExtent, settled: bool) -> Option<CompactionReason> {
        let bytes = |ssts: &[&Sst]| ssts.iter().map(|sst| sst.bytes).sum::<u64>();
        let (own, joined) = (bytes(&self.own), bytes(&self.joined));
        if self.windows.len() < 2 || self.own.len() + self.joined.len() > MOST_SSTS || own + joined > SST_BYTES {
            return None;
        }
        if self.joined.is_empty() {
            return settled.then_some(CompactionReason::Settled);
        }
        let late = self.own.len() >= LATE_SSTS || own.saturating_mul(LATE_SHARE) >= joined;
        match extent {
            _ if self.own.is_empty() && extent != CompactionExtent::Due => {
                self.joined.iter().any(|sst| version.may_hide_cells(sst)).then_some(CompactionReason::HiddenCells)
            }
            CompactionExtent::Due => (late && !self.own.is_empty()).then_some(CompactionReason::SeveralSsts),
            CompactionExtent::Needed | CompactionExtent::Full => Some(CompactionReason::SeveralSsts),
        }
    }
}
