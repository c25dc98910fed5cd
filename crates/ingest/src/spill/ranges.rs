//! Cuts a window into ranges of row keys that fit in memory, by the keys of the pages that were spilled.

use crate::spill::file::{PageEntry, Spill};
use crate::spill::page::RowKey;

/// Spills that are merged together, however little memory there is.
const LEAST_AT_ONCE: usize = 4;
/// Bytes of a range that is sorted within a processor's cache.
const CACHED: u64 = 8 << 20;
/// Pages of a spill in a range on average: those across an end are read twice.
const PAGES_A_SPILL: u64 = 8;

/// Consecutive row keys, which are sorted and merged at a time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeyRange {
    /// The first key; `None`: from the beginning.
    pub(crate) start: Option<RowKey>,
    /// The first key behind it; `None`: to the end.
    pub(crate) end: Option<RowKey>,
}

impl KeyRange {
    /// Whether it has the row keys of a whole page.
    pub(crate) fn has_all(&self, page: &PageEntry) -> bool {
        self.start.as_ref().is_none_or(|start| *start <= page.first)
            && self.end.as_ref().is_none_or(|end| page.last < *end)
    }

    /// Whether it may have row keys of a page.
    pub(crate) fn has_any(&self, page: &PageEntry) -> bool {
        self.start.as_ref().is_none_or(|start| *start <= page.last)
            && self.end.as_ref().is_none_or(|end| page.first < *end)
    }
}

/// The most spills that are merged in ranges of `most` bytes: a page of each takes half of it.
pub(crate) fn most_at_once(spills: &[Spill], most: u64) -> usize {
    usize::try_from(most / 2 / page_weight(spills).max(1)).unwrap_or(usize::MAX).max(LEAST_AT_ONCE)
}

/// The average bytes of a page in memory.
fn page_weight(spills: &[Spill]) -> u64 {
    let pages: usize = spills.iter().map(|spill| spill.pages.len()).sum();
    let weight: u64 = spills.iter().flat_map(|spill| &spill.pages).map(|page| page.weight).sum();
    weight / pages.max(1) as u64
}

/// Ranges that together have all row keys of `spills`, in ascending order, each of about `most` bytes in memory or less:
/// pages that lie across an end are counted where they begin. A row is in one range, however large.
pub(crate) fn key_ranges(spills: &[Spill], most: u64) -> Vec<KeyRange> {
    let mut pages: Vec<&PageEntry> = spills.iter().flat_map(|spill| &spill.pages).collect();
    if pages.is_empty() {
        return Vec::new();
    }
    pages.sort_by(|one, other| one.first.cmp(&other.first));

    let total: u64 = pages.iter().map(|page| page.weight).sum();
    let most = most.min(CACHED.max(spills.len() as u64 * PAGES_A_SPILL * page_weight(spills)));
    // All of about one size.
    let share = total.div_ceil(total.div_ceil(most.max(1)).max(1));

    let mut ranges = Vec::new();
    let mut start: Option<RowKey> = None;
    let mut weight = 0;
    let mut first = None;
    for page in pages {
        let is_full = weight > 0 && weight + page.weight / 2 >= share;
        if is_full && first != Some(&page.first) {
            let end = Some(page.first.clone());
            ranges.push(KeyRange { start: start.take(), end: end.clone() });
            start = end;
            weight = 0;
        }
        weight += page.weight;
        first = Some(&page.first);
    }
    ranges.push(KeyRange { start, end: None });
    ranges
}
