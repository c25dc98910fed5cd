//! Encoded chunks that wait to be sorted, and the events of one window collected from them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use rayon::prelude::*;
use tidetable_layout::encode::EncodedBatch;
use tidetable_layout::time::{window_bounds, window_of};
use tidetable_layout::{StoredSchema, Window};

use crate::load::sort::ranks::Ranks;

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

/// The events of a window in order of arrival, with ranks instead of codes.
#[derive(Debug)]
pub(crate) struct WindowEvents {
    /// Rank of the row-key prefix of each event.
    pub(crate) ranks: Vec<u32>,
    /// Tail of each event; empty if keys have none.
    pub(crate) tails: Vec<u64>,
    /// The groups of the layout.
    pub(crate) groups: Vec<GroupEvents>,
    /// The source row of each event, where needed.
    pub(crate) units: Option<Vec<u32>>,
}

/// The values of one column group for each event of a window.
#[derive(Debug)]
pub(crate) struct GroupEvents {
    /// Rank of the qualifier, for dynamic groups.
    pub(crate) qualifiers: Option<Vec<u32>>,
    /// Cell timestamp, if it is stored.
    pub(crate) timestamps: Option<Vec<i64>>,
    /// Arrays of each column, one per chunk: values are copied only once, in sorted order.
    pub(crate) columns: Vec<Vec<ArrayRef>>,
    /// Position of each event in those arrays.
    pub(crate) places: Arc<Places>,
}

/// Positions of the values of a window's events in the chunks.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// The run of each event; empty if there is only one run.
    run_of: Vec<u32>,
    /// The chunk of each run, and the offset from an event's number to its number in the chunk.
    runs: Vec<(usize, isize)>,
}

impl Places {
    /// From consecutive runs: the chunk of each, and its events there.
    pub(crate) fn new(runs: &[(usize, Range<usize>)]) -> Self {
        let mut places = Self::default();
        let mut events = 0;
        for (at, (chunk, run)) in runs.iter().enumerate() {
            if runs.len() > 1 {
                places.run_of.resize(events + run.len(), at as u32);
            }
            places.runs.push((*chunk, run.start.cast_signed() - events.cast_signed()));
            events += run.len();
        }
        places
    }

    /// The chunk of an event and its number there.
    #[inline]
    pub(crate) fn of(&self, event: u32) -> (usize, usize) {
        let run = self.run_of.get(event as usize).map_or(0, |run| *run as usize);
        let (chunk, shift) = self.runs.get(run).copied().unwrap_or_default();
        (chunk, (event as usize).wrapping_add_signed(shift))
    }
}

/// Runs of consecutive events of the same window, and the UTC days they touch.
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

/// Ranks of prefixes and, for each group, of qualifiers.
pub(crate) struct AllRanks {
    pub(crate) prefixes: Ranks,
    pub(crate) qualifiers: Vec<Option<Ranks>>,
}

impl WindowEvents {
    /// Collects the events of window `start` from `chunks`, which are in the order of the load.
    pub(crate) fn collect(schema: &StoredSchema, chunks: &[Chunk], start: i64, ranks: &AllRanks) -> Self {
        let chunks: Vec<&Chunk> = chunks.iter().filter(|chunk| chunk.windows.contains_key(&start)).collect();
        let mut places = Vec::new();
        for (at, chunk) in chunks.iter().enumerate() {
            places.extend(chunk.windows.get(&start).into_iter().flatten().map(|run| (at, run.clone())));
        }
        let runs: Vec<(&Chunk, &Range<usize>)> = places.iter().map(|(at, run)| (chunks[*at], run)).collect();
        let places = Arc::new(Places::new(&places));
        let group =
            |group: usize| GroupEvents::collect(&chunks, &runs, &places, group, ranks.qualifiers[group].as_ref());
        let ((prefix_ranks, tails), groups) = rayon::join(
            || rayon::join(|| ranks_of(&runs, ranks), || tails_of(&runs)),
            || (0..schema.groups.len()).into_par_iter().map(group).collect(),
        );
        let has_parts = chunks.iter().any(|chunk| chunk.encoded.rows.is_some());
        let units = (schema.upsert || has_parts).then(|| units(&runs));
        Self { ranks: prefix_ranks, tails, groups, units }
    }

    /// Average bytes of the values of an event.
    pub(crate) fn event_bytes(&self) -> usize {
        let bytes = |array: &ArrayRef| match array.data_type().primitive_width() {
            Some(width) => width * array.len(),
            None => array.to_data().get_slice_memory_size().unwrap_or_default(),
        };
        let column = |arrays: &Vec<ArrayRef>| {
            let events: usize = arrays.iter().map(|array| array.len()).sum();
            arrays.iter().map(bytes).sum::<usize>() / events.max(1)
        };
        self.groups.iter().flat_map(|group| &group.columns).map(column).sum()
    }

    /// The source row of an event; each event counts as a row where that is not needed.
    pub(crate) fn unit(&self, event: u32) -> u32 {
        self.units.as_ref().map_or(event, |units| units[event as usize])
    }
}

fn ranks_of(runs: &[(&Chunk, &Range<usize>)], ranks: &AllRanks) -> Vec<u32> {
    let mut out = Vec::with_capacity(runs.iter().map(|(_, run)| run.len()).sum());
    for (chunk, run) in runs {
        let rank_of = ranks.prefixes.of(chunk.worker);
        out.extend(chunk.encoded.prefix[(*run).clone()].iter().map(|code| rank_of[*code as usize]));
    }
    out
}

fn tails_of(runs: &[(&Chunk, &Range<usize>)]) -> Vec<u64> {
    let tails = runs.iter().filter(|(chunk, _)| !chunk.encoded.tail.is_empty());
    tails.map(|(chunk, run)| &chunk.encoded.tail[(*run).clone()]).collect::<Vec<_>>().concat()
}

/// Numbers the source rows: events of a row are consecutive.
fn units(runs: &[(&Chunk, &Range<usize>)]) -> Vec<u32> {
    let mut units = Vec::new();
    let mut unit = 0;
    for (chunk, run) in runs {
        let mut last = None;
        for event in (*run).clone() {
            let row = chunk.encoded.rows.as_ref().map_or(event as u32, |rows| rows[event]);
            if last != Some(row) {
                unit += 1;
                last = Some(row);
            }
            units.push(unit);
        }
    }
    units
}

impl GroupEvents {
    fn collect(
        chunks: &[&Chunk],
        runs: &[(&Chunk, &Range<usize>)],
        places: &Arc<Places>,
        group: usize,
        ranks: Option<&Ranks>,
    ) -> Self {
        let parts = || runs.iter().map(|(chunk, run)| (*chunk, &chunk.encoded.groups[group], (*run).clone()));
        let qualifiers = ranks.map(|ranks| {
            let mut out = Vec::with_capacity(runs.iter().map(|(_, run)| run.len()).sum());
            for (chunk, part, run) in parts() {
                let rank_of = ranks.of(chunk.worker);
                let codes = part.qualifier.as_ref().map_or(&[][..], |codes| &codes[run]);
                out.extend(codes.iter().map(|code| rank_of[*code as usize]));
            }
            out
        });
        let stored: Option<Vec<&[i64]>> =
            parts().map(|(_, part, run)| part.timestamps.as_ref().map(|timestamps| &timestamps[run])).collect();
        let all: Vec<&[ArrayRef]> = chunks.iter().map(|chunk| chunk.encoded.groups[group].columns.as_slice()).collect();
        let columns = all.first().map_or(0, |columns| columns.len());
        let columns = (0..columns).map(|at| all.iter().map(|columns| Arc::clone(&columns[at])).collect()).collect();
        Self { qualifiers, timestamps: stored.map(|stored| stored.concat()), columns, places: Arc::clone(places) }
    }

    /// The columns of each chunk.
    pub(crate) fn by_chunk(&self) -> Vec<Vec<ArrayRef>> {
        let chunks = self.columns.first().map_or(0, Vec::len);
        (0..chunks).map(|chunk| self.columns.iter().map(|column| Arc::clone(&column[chunk])).collect()).collect()
    }

    /// Whether an event has a value in a column.
    pub(crate) fn has(&self, event: u32, column: usize) -> bool {
        let (chunk, at) = self.places.of(event);
        self.columns[column][chunk].is_valid(at)
    }
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
