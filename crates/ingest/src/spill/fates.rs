//! Decides what becomes of the windows that wait when memory is full.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::sort::chunk::Chunk;

/// The part of the waiting events that tells which windows still grow: the last sixteenth.
const LAST_PART: usize = 16;
/// A window still grows if it has at least half as many events in the last part as if its events came evenly.
const EVEN_SHARE: usize = 2;
/// Maximum share of waiting bytes to hold back, in quarters.
const MAX_HELD: u64 = 3;

/// What may follow the waiting events, which decides whether windows may still grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Follows {
    /// The end of all inputs of the pass: every window is complete.
    Nothing,
    /// More events, whose names get codes beside those of the waiting ones.
    More,
    /// More events, and the names of the waiting ones are given up.
    MoreWithNewNames,
}

/// What becomes of windows. Inputs are mostly in order of time: then all windows but the last are complete, and no event
/// is spilled.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WindowFates {
    /// Complete, with all their events in memory: sorted and written.
    pub(crate) write: Vec<i64>,
    /// Still growing, and small enough to wait in memory.
    pub(crate) hold: BTreeSet<i64>,
    /// Still growing, or spilled before: their events are sorted and spilled.
    pub(crate) spill: Vec<i64>,
    /// Complete, with events that were spilled: merged.
    pub(crate) merge: Vec<i64>,
}

impl WindowFates {
    /// Decides by `chunks`, which are in the order of the load, and by the windows of which events were spilled before.
    pub(crate) fn of(chunks: &[Chunk], spilled: &BTreeSet<i64>, follows: Follows) -> Self {
        let events = events_by_window(chunks);
        let growing = match follows {
            Follows::Nothing => BTreeSet::new(),
            Follows::More | Follows::MoreWithNewNames => growing(chunks, &events),
        };
        let hold = match follows {
            Follows::More if are_small(chunks, &growing) => growing.clone(),
            _ => BTreeSet::new(),
        };

        let mut fates = Self::default();
        for window in events.keys().filter(|window| !hold.contains(window)) {
            match spilled.contains(window) || growing.contains(window) {
                true => fates.spill.push(*window),
                false => fates.write.push(*window),
            }
        }
        fates.merge = spilled.iter().filter(|window| !growing.contains(window)).copied().collect();
        fates.hold = hold;
        fates
    }
}

/// Number of events of each window in `chunks`.
pub(crate) fn events_by_window<'a>(chunks: impl IntoIterator<Item = &'a Chunk>) -> BTreeMap<i64, usize> {
    let mut events = BTreeMap::new();
    for (window, runs) in chunks.into_iter().flat_map(|chunk| &chunk.windows) {
        *events.entry(*window).or_default() += runs.iter().map(Range::len).sum::<usize>();
    }
    events
}

/// The windows that still grow: those with events among the latest, unless these are few late ones.
fn growing(chunks: &[Chunk], events: &BTreeMap<i64, usize>) -> BTreeSet<i64> {
    let all: usize = events.values().sum();
    let mut rest = all / LAST_PART;
    let mut latest = Vec::new();
    for chunk in chunks.iter().rev().filter(|chunk| !chunk.windows.is_empty()) {
        latest.push(chunk);
        let events: usize = chunk.windows.values().flatten().map(Range::len).sum();
        rest = match rest.checked_sub(events) {
            None | Some(0) => break,
            Some(rest) => rest,
        };
    }

    let late: BTreeMap<i64, usize> = events_by_window(latest);
    late.into_iter()
        .filter(|(window, late)| late * LAST_PART * EVEN_SHARE >= events[window])
        .map(|(window, _)| window)
        .collect()
}

/// Whether the chunks with events of `windows` may wait in memory: if nearly all are theirs, holding them would leave no room.
fn are_small(chunks: &[Chunk], windows: &BTreeSet<i64>) -> bool {
    let held = chunks.iter().filter(|chunk| chunk.windows.keys().any(|window| windows.contains(window)));
    let held: u64 = held.map(|chunk| chunk.bytes).sum();
    let all: u64 = chunks.iter().map(|chunk| chunk.bytes).sum();
    held * 4 <= all * MAX_HELD
}

#[cfg(test)]
mod tests {
    use tidetable_layout::encode::EncodedBatch;

    use super::*;
    use crate::sort::chunk::keep_windows;

    fn empty() -> EncodedBatch {
        EncodedBatch {
            rows: None,
            prefix: Vec::new(),
            tail: Vec::new(),
            time: Vec::new(),
            groups: Vec::new(),
            rejected: Vec::new(),
        }
    }

    /// A chunk of `bytes` bytes with one event for each of `windows`, in order.
    fn chunk(bytes: u64, windows: &[i64]) -> Chunk {
        let mut of: BTreeMap<i64, Vec<Range<usize>>> = BTreeMap::new();
        windows.iter().enumerate().for_each(|(at, window)| of.entry(*window).or_default().push(at..at + 1));
        Chunk { place: (0, 0), worker: 0, bytes, encoded: empty(), units: None, windows: of }
    }

    fn fates(chunks: &[Chunk], spilled: &[i64], follows: Follows) -> [Vec<i64>; 4] {
        let fates = WindowFates::of(chunks, &spilled.iter().copied().collect(), follows);
        [fates.write, fates.hold.into_iter().collect(), fates.spill, fates.merge]
    }

    #[test]
    fn windows_that_still_grow_are_held_or_spilled() {
        let days = [chunk(5, &[1]), chunk(5, &[1, 2]), chunk(5, &[2])];
        assert_eq!(fates(&days, &[], Follows::More), [vec![1], vec![2], vec![], vec![]]);
        assert_eq!(fates(&days, &[], Follows::MoreWithNewNames), [vec![1], vec![], vec![2], vec![]]);
        assert_eq!(fates(&days, &[], Follows::Nothing), [vec![1, 2], vec![], vec![], vec![]]);
        let kept = keep_windows(days.into(), &[2].into());
        assert_eq!(kept.iter().map(|chunk| chunk.windows.len()).collect::<Vec<_>>(), [1, 1]);

        // In no order of time.
        assert_eq!(
            fates(&[chunk(5, &[1]), chunk(5, &[2, 1])], &[], Follows::More),
            [vec![], vec![], vec![1, 2], vec![]]
        );
        // Nearly all is of one window.
        assert_eq!(fates(&[chunk(5, &[1]), chunk(50, &[2])], &[], Follows::More), [vec![1], vec![], vec![2], vec![]]);
        assert_eq!(fates(&[], &[], Follows::More), [const { Vec::<i64>::new() }; 4]);
    }

    #[test]
    fn a_few_late_events_do_not_keep_a_window() {
        let mut chunks: Vec<Chunk> = (0..90).map(|_| chunk(1, &[1; 10])).collect();
        chunks.extend((0..9).map(|_| chunk(1, &[2; 10])));
        chunks.push(chunk(1, &[2, 2, 1, 2]));
        assert_eq!(fates(&chunks, &[], Follows::More), [vec![1], vec![2], vec![], vec![]]);
    }

    #[test]
    fn spilled_windows_are_merged_once_they_are_complete() {
        let days = [chunk(5, &[1]), chunk(5, &[2]), chunk(5, &[2])];
        assert_eq!(fates(&days, &[0, 1], Follows::More), [vec![], vec![2], vec![1], vec![0, 1]]);
        assert_eq!(fates(&days, &[0, 2], Follows::Nothing), [vec![1], vec![], vec![2], vec![0, 2]]);
    }
}
