//! Encoded chunks that wait to be sorted.

use std::collections::BTreeMap;
use std::ops::Range;

use arrow::array::{Array, ArrayRef};
use tidetable_layout::Window;
use tidetable_layout::encode::EncodedBatch;
use tidetable_layout::time::{window_bounds, window_of};

use crate::sort::ranks::Ranks;

/// An encoded chunk of an input.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Position in the order of the load: input sequence number, index of the chunk in the input.
    pub(crate) place: (u64, u64),
    /// The worker that owns the dictionaries of its codes.
    pub(crate) worker: usize,
    /// Bytes in memory.
    pub(crate) bytes: u64,
    /// The cells.
    pub(crate) encoded: EncodedBatch,
    /// Runs of events by window start; events of other windows are left out.
    pub(crate) windows: BTreeMap<i64, Vec<Range<usize>>>,
}

/// Runs of consecutive events of the same window, which is one of UTC.
pub(crate) fn split_by_window(
    times: &[i64],
    window: Window,
    wanted: impl Fn(i64) -> bool,
) -> BTreeMap<i64, Vec<Range<usize>>> {
    let mut windows: BTreeMap<i64, Vec<Range<usize>>> = BTreeMap::new();
    let mut at = 0;
    while at < times.len() {
        let start = window_of(window, times[at]);
        let bounds = window_bounds(window, start);
        let run = times[at..].iter().take_while(|time| bounds.contains(time)).count().max(1);
        if wanted(start) {
            windows.entry(start).or_default().push(at..at + run);
        }
        at += run;
    }
    windows
}

/// Number of events of each window in `chunks`.
pub(crate) fn events_by_window(chunks: &[Chunk]) -> BTreeMap<i64, usize> {
    let mut events = BTreeMap::new();
    for (window, runs) in chunks.iter().flat_map(|chunk| &chunk.windows) {
        *events.entry(*window).or_default() += runs.iter().map(Range::len).sum::<usize>();
    }
    events
}

/// Maximum share of waiting bytes to hold back, in quarters.
const MAX_HELD: u64 = 3;

/// The window to hold back: that of the latest event in `chunks`, since inputs are mostly in order of time. So a load
/// tends to write one SST per window. `None` if that would keep nearly all chunks in memory.
pub(crate) fn held_back(chunks: &[Chunk]) -> Option<i64> {
    let (open, _) = chunks.last()?.windows.iter().max_by_key(|(_, runs)| runs.last().map(|run| run.end))?;
    let bytes = |held: bool| -> u64 {
        chunks.iter().filter(|chunk| !held || chunk.windows.contains_key(open)).map(|chunk| chunk.bytes).sum()
    };
    (bytes(true) * 4 <= bytes(false) * MAX_HELD).then_some(*open)
}

/// The parts of `chunks` that are in the window `held`.
pub(crate) fn keep_window(chunks: Vec<Chunk>, held: i64) -> Vec<Chunk> {
    let of_window = |mut chunk: Chunk| {
        chunk.windows.retain(|window, _| *window == held);
        (!chunk.windows.is_empty()).then_some(chunk)
    };
    chunks.into_iter().filter_map(of_window).collect()
}

/// Average bytes of the values of an event in the chunks with events in window `start`.
pub(crate) fn event_bytes(chunks: &[Chunk], start: i64) -> usize {
    let bytes = |array: &ArrayRef| match array.data_type().primitive_width() {
        Some(width) => width * array.len(),
        None => array.to_data().get_slice_memory_size().unwrap_or_default(),
    };
    let chunks = || chunks.iter().filter(|chunk| chunk.windows.contains_key(&start));
    let columns = chunks().flat_map(|chunk| &chunk.encoded.groups).flat_map(|group| &group.columns);
    let events: usize = chunks().map(|chunk| chunk.encoded.prefix.len()).sum();
    columns.map(bytes).sum::<usize>() / events.max(1)
}

/// Ranks of prefixes and, for each group, of qualifiers.
pub(crate) struct AllRanks {
    pub(crate) prefixes: Ranks,
    pub(crate) qualifiers: Vec<Option<Ranks>>,
}

#[cfg(test)]
mod tests {
    use super::*;

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
        Chunk { place: (0, 0), worker: 0, bytes, encoded: empty(), windows: of }
    }

    #[test]
    fn the_window_that_still_grows_is_held_back() {
        let days = [chunk(5, &[1]), chunk(5, &[1, 2]), chunk(5, &[2])];
        assert_eq!(held_back(&days), Some(2));
        let kept = keep_window(days.into(), 2);
        assert_eq!(kept.iter().map(|chunk| chunk.windows.len()).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(held_back(&[chunk(5, &[1]), chunk(5, &[2, 1])]), None, "of all chunks some is of window 1");
        assert_eq!(held_back(&[chunk(5, &[1]), chunk(50, &[2])]), None, "nothing else would be written");
        assert_eq!(held_back(&[chunk(5, &[1]), chunk(1, &[])]), None);
        assert_eq!(held_back(&[]), None);
    }
}
