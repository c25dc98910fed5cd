//! Encoded chunks that wait to be sorted.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::Array;
use tidetable_layout::Window;
use tidetable_layout::encode::{EncodedBatch, KeyNumbers};
use tidetable_layout::time::{window_bounds, window_of};

use crate::sort::ranks::Ranks;

/// An encoded chunk of an input, with the windows that its events are in.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Position in the order of the load: input sequence number, index of the chunk in the input.
    pub(crate) place: (u64, u64),
    /// The worker that owns the dictionaries of its codes.
    pub(crate) worker: usize,
    pub(crate) bytes: u64,
    pub(crate) encoded: EncodedBatch,
    /// The source row of each event, by a number of the load; `None` if they are numbered by their rows in the chunk.
    pub(crate) units: Option<Vec<u64>>,
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

/// The parts of `chunks` that are in the windows `held`.
pub(crate) fn keep_windows(mut chunks: Vec<Chunk>, held: &BTreeSet<i64>) -> Vec<Chunk> {
    for chunk in &mut chunks {
        chunk.windows.retain(|window, _| held.contains(window));
    }
    chunks.retain(|chunk| !chunk.windows.is_empty());
    chunks
}

/// Average bytes of the values of an event in the chunks with events in window `start`.
pub(crate) fn event_bytes(chunks: &[Chunk], start: i64) -> usize {
    let mut bytes = 0;
    let mut events = 0;
    for Chunk { encoded, .. } in chunks.iter().filter(|chunk| chunk.windows.contains_key(&start)) {
        events += encoded.prefix.len();
        for array in encoded.groups.iter().flat_map(|group| &group.columns) {
            bytes += match array.data_type().primitive_width() {
                Some(width) => width * array.len(),
                None => array.to_data().get_slice_memory_size().unwrap_or_default(),
            };
        }
    }

    bytes / events.max(1)
}

/// The order of row keys and, for each group, of qualifiers.
pub(crate) struct AllRanks {
    pub(crate) prefixes: Prefixes,
    pub(crate) qualifiers: Vec<Option<Ranks>>,
}

/// The prefixes of row keys, in order: names in memory, or numbers that need none.
pub(crate) enum Prefixes {
    /// Codes of events stand for these names.
    Names(Ranks),
    /// Keys are numbers, which are the tails of events.
    Numbers(Arc<KeyNumbers>),
}
