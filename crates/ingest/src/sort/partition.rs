//! Partitions the events of a window by row key into pieces that fit in a processor's cache.
//!
//! Telemetry arrives by time and is stored by entity: picking the events of a row one by one from all chunks would miss the
//! cache for each. So every chunk sorts its events by piece, values with keys, and a piece is put together of one run of
//! each chunk. Both steps read and write in order, or within what the cache holds.

use std::ops::Range;

use arrow::array::Array;
use rayon::prelude::*;
use tidetable_layout::StoredSchema;
use tidetable_layout::schema::{QualifierKind, TimestampKind};

use crate::sort::chunk::{AllRanks, Chunk, Prefixes};
use crate::sort::lane::{Lane, picked};
use crate::sort::order::Tails;
use crate::sort::ranks::Ranks;

/// Ranks are counted in at most so many buckets, as powers of two.
const BUCKET_BITS: u32 = 16;
/// The greatest width of the values of a group that are moved with the keys, bytes. Wider ones are picked from the chunks piece by
/// piece, so that there is no second copy of all.
const MAX_MOVED: usize = 64;
/// Average events of a name from which values that a row needs once are not moved.
const MANY: usize = 4;
/// Chunks that one core counts together, to share the array of counts.
const COUNTED: usize = 8;

/// The events of a window to partition.
#[derive(Clone, Copy)]
pub(crate) struct Events<'a> {
    /// In the order of the load; also with events of other windows.
    pub(crate) chunks: &'a [Chunk],
    pub(crate) window: i64,
    /// The order of the names that their codes stand for.
    pub(crate) ranks: &'a AllRanks,
    /// The number from which source rows are counted that have none yet.
    pub(crate) first_unit: u64,
}

/// The events of a window by piece. Pieces are consecutive ranges of ranks.
pub(crate) struct Partition<'a> {
    pub(crate) schema: &'a StoredSchema,
    pub(crate) first_unit: u64,
    pub(crate) parts: Vec<Part<'a>>,
    ranges: Vec<Range<u32>>,
    events: Vec<usize>,
}

/// The events of a chunk that are in a window, by piece, in order of arrival.
pub(crate) struct Part<'a> {
    pub(crate) chunk: &'a Chunk,
    /// The number of its first event in the window.
    pub(crate) base: u32,
    /// End of each piece, as a place among the events.
    ends: Vec<u32>,
    pub(crate) ranks: Vec<u32>,
    /// The numbers of the events in the chunk.
    pub(crate) events: Vec<u32>,
    pub(crate) tails: Tails,
    /// The source row of each event, where needed.
    pub(crate) units: Option<Vec<u64>>,
    pub(crate) groups: Vec<GroupPart>,
}

/// The cells of one group, for the events of a part.
pub(crate) struct GroupPart {
    /// Ranks of qualifiers, for dynamic groups.
    pub(crate) qualifiers: Option<Vec<u32>>,
    pub(crate) timestamps: Option<Vec<i64>>,
    pub(crate) columns: Columns,
}

/// Where the values of a part are.
pub(crate) enum Columns {
    /// In the order of the part.
    Moved(Vec<Lane>),
    /// In the chunk, picked piece by piece.
    Lanes(Vec<Lane>),
    /// In the chunk, picked by record.
    Stay,
}

/// What becomes of the values of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Move,
    ByPiece,
    ByRecord,
}

/// The events of a chunk that are in a window.
#[derive(Clone, Copy)]
struct WindowChunk<'a> {
    chunk: &'a Chunk,
    runs: &'a [Range<usize>],
}

impl WindowChunk<'_> {
    fn len(&self) -> usize {
        self.runs.iter().map(Range::len).sum()
    }
}

/// A chunk whose events in a window are numbered and ranked, but not sorted.
struct RankedChunk<'a> {
    chunk: WindowChunk<'a>,
    ranks: Vec<u32>,
    /// The number of its first event in the window.
    base: u32,
    /// The source row of each event, where needed.
    units: Option<Vec<u64>>,
}

impl<'a> Partition<'a> {
    /// Partitions events into pieces of at most `most` events, unless a piece is of one name.
    pub(crate) fn new(schema: &'a StoredSchema, events: Events<'a>, most: usize) -> Self {
        let Events { chunks, window, ranks, first_unit } = events;
        let chunks = chunks.iter().filter_map(|chunk| Some(WindowChunk { chunk, runs: chunk.windows.get(&window)? }));
        let chunks: Vec<WindowChunk<'_>> = chunks.collect();
        let total = chunks.iter().map(WindowChunk::len).sum();
        let key_ranks = KeyRanks::new(&chunks, &ranks.prefixes, total);
        let ranked: Vec<Vec<u32>> = chunks.par_iter().map(|chunk| key_ranks.of(chunk)).collect();
        let pieces = Pieces::new(&ranked, key_ranks.len(), total, most);

        // Numbers of source rows go on from chunk to chunk.
        let has_rows =
            chunks.iter().any(|WindowChunk { chunk, .. }| chunk.encoded.rows.is_some() || chunk.units.is_some());
        let mut unit = (schema.upsert || has_rows).then_some(first_unit);
        let mut base = 0;
        let mut numbered = Vec::with_capacity(chunks.len());
        for (chunk, ranks) in chunks.iter().zip(ranked) {
            let units = unit.as_mut().map(|unit| units_of(chunk, unit));
            numbered.push(RankedChunk { chunk: *chunk, ranks, base, units });
            base += chunk.chunk.encoded.prefix.len() as u32;
        }

        let events_per_name = total / key_ranks.len().max(1);
        let ways: Vec<Way> =
            (0..schema.groups.len()).map(|group| way(schema, group, &chunks, events_per_name)).collect();
        let parts = numbered.into_par_iter().map(|chunk| Part::new(chunk, &pieces, &ways, ranks));
        let parts = parts.collect();
        let Pieces { ranges, events, .. } = pieces;
        Self { schema, first_unit, parts, ranges, events }
    }

    /// Number of pieces, at least one.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    pub(crate) fn ranks(&self, piece: usize) -> Range<u32> {
        self.ranges[piece].clone()
    }

    /// Number of events of a piece.
    pub(crate) fn events(&self, piece: usize) -> usize {
        self.events[piece]
    }
}

/// What becomes of the values of a group, by the mean number of events that a name has.
fn way(schema: &StoredSchema, group: usize, chunks: &[WindowChunk<'_>], events_per_name: usize) -> Way {
    let of = &schema.groups[group];
    // One record a row: its last event is all that is needed.
    let once =
        of.qualifier == QualifierKind::Constant && of.timestamps == TimestampKind::Zero && events_per_name >= MANY;
    let width: Option<usize> = of.columns.iter().map(|column| Lane::width(&column.value.arrow())).sum();
    let mut columns = chunks.iter().flat_map(|WindowChunk { chunk, .. }| &chunk.encoded.groups[group].columns);
    match width.filter(|_| !once && columns.all(|column| column.null_count() == 0)) {
        Some(width) if width <= MAX_MOVED => Way::Move,
        Some(_) => Way::ByPiece,
        None => Way::ByRecord,
    }
}

/// The ranks by which the events of a window are cut and sorted.
enum KeyRanks<'a> {
    /// Keys are names of prefixes with tails: the places of the names in byte order.
    Names(&'a Ranks),
    /// The distance of a number from the least, in steps of a power of two: about as many steps as events, so that few numbers
    /// share one. Within a step events are sorted by the number, which is their tail.
    Numbers { least: u64, shift: u32, steps: usize },
}

/// Steps of numbers for each event.
const STEPS_AN_EVENT: usize = 4;

impl<'a> KeyRanks<'a> {
    fn new(chunks: &[WindowChunk<'_>], prefixes: &'a Prefixes, total: usize) -> Self {
        if let Prefixes::Names(names) = prefixes {
            return Self::Names(names);
        }

        let bounds = chunks.par_iter().map(|WindowChunk { chunk, runs }| {
            let numbers = runs.iter().flat_map(|run| &chunk.encoded.tail[run.clone()]);
            numbers.fold((u64::MAX, 0), |(least, greatest), number| (least.min(*number), greatest.max(*number)))
        });
        let (least, greatest) = bounds.reduce(|| (u64::MAX, 0), |one, other| (one.0.min(other.0), one.1.max(other.1)));

        let width = greatest.saturating_sub(least);
        let most = (total * STEPS_AN_EVENT).clamp(1, 1 << 31) as u64;
        let mut shift = 0;
        while width >> shift >= most {
            shift += 1;
        }
        Self::Numbers { least, shift, steps: (width >> shift) as usize + 1 }
    }

    /// Number of ranks: all that [`Self::of`] returns are below it.
    fn len(&self) -> usize {
        match self {
            Self::Names(names) => names.len(),
            Self::Numbers { steps, .. } => *steps,
        }
    }

    /// The ranks of the events of a chunk.
    fn of(&self, window_chunk: &WindowChunk<'_>) -> Vec<u32> {
        let WindowChunk { chunk, runs } = window_chunk;
        let mut out = Vec::with_capacity(window_chunk.len());
        for run in runs.iter().cloned() {
            match self {
                Self::Names(names) => {
                    let rank_of = names.of(chunk.worker);
                    out.extend(chunk.encoded.prefix[run].iter().map(|code| rank_of[*code as usize]));
                }
                Self::Numbers { least, shift, .. } => {
                    out.extend(chunk.encoded.tail[run].iter().map(|number| ((number - least) >> shift) as u32));
                }
            }
        }
        out
    }
}

/// Numbers the source rows of a chunk's events from `unit` on, unless they have numbers: events of a row are consecutive.
fn units_of(WindowChunk { chunk, runs }: &WindowChunk<'_>, unit: &mut u64) -> Vec<u64> {
    if let Some(numbered) = &chunk.units {
        return runs.iter().flat_map(|run| &numbered[run.clone()]).copied().collect();
    }
    let mut units = Vec::new();
    let mut last = None;
    for event in runs.iter().cloned().flatten() {
        let row = chunk.encoded.rows.as_ref().map_or(event as u32, |rows| rows[event]);
        if last != Some(row) {
            *unit += 1;
            last = Some(row);
        }
        units.push(*unit);
    }
    units
}

/// How events are cut into pieces: by buckets of ranks, several of which make a piece.
struct Pieces {
    /// Bits of a rank below the number of its bucket.
    shift: u32,
    of_bucket: Vec<u32>,
    ranges: Vec<Range<u32>>,
    events: Vec<usize>,
}

impl Pieces {
    /// Cuts `total` events, which have these ranks below `names`, into pieces of at most `most` events.
    fn new(ranked: &[Vec<u32>], names: usize, total: usize, most: usize) -> Self {
        // Few events are one piece, and one bucket.
        let bits = if total <= most { 0 } else { BUCKET_BITS };
        let shift = names.next_power_of_two().trailing_zeros().saturating_sub(bits);
        let counts = counts(ranked, shift, (names >> shift) + 1);

        let mut pieces = Self { shift, of_bucket: vec![0; counts.len()], ranges: Vec::new(), events: Vec::new() };
        let mut first = 0;
        for (piece, end) in (0u32..).zip(cuts(&counts, total, most)) {
            pieces.of_bucket[first..end].fill(piece);
            pieces.events.push(counts[first..end].iter().map(|count| *count as usize).sum());
            pieces.ranges.push((first << shift) as u32..(end << shift).min(names.max(1)) as u32);
            first = end;
        }
        pieces
    }

    /// The piece of the events with a rank.
    fn of(&self, rank: u32) -> usize {
        self.of_bucket[(rank >> self.shift) as usize] as usize
    }
}

/// The number of events in each of `buckets` buckets.
fn counts(ranked: &[Vec<u32>], shift: u32, buckets: usize) -> Vec<u32> {
    let partial = ranked.par_iter().with_min_len(COUNTED).fold(
        || vec![0u32; buckets],
        |mut counts, ranks| {
            ranks.iter().for_each(|rank| counts[(rank >> shift) as usize] += 1);
            counts
        },
    );
    partial.reduce(
        || vec![0u32; buckets],
        |mut counts, others| {
            counts.iter_mut().zip(others).for_each(|(count, more)| *count += more);
            counts
        },
    )
}

/// The end of each piece among buckets with these counts. Pieces are of about one size.
fn cuts(counts: &[u32], total: usize, most: usize) -> Vec<usize> {
    let share = total.div_ceil(total.div_ceil(most.max(1)).max(1));
    let mut ends = Vec::new();
    let mut sum = 0;
    for (bucket, count) in counts.iter().enumerate() {
        let more = *count as usize;
        if sum > 0 && more > 0 && (sum >= share || sum + more > most) {
            ends.push(bucket);
            sum = 0;
        }
        sum += more;
    }
    ends.push(counts.len());
    ends
}

/// Places of a chunk's events when they are sorted by piece.
struct Places {
    ends: Vec<u32>,
    /// The numbers of the events in the chunk.
    events: Vec<u32>,
    /// Their numbers among the events of the chunk that are in the window.
    order: Vec<u32>,
}

impl Places {
    /// Sorts events by counting, so that those of a piece stay in order of arrival.
    fn new(ranks: &[u32], runs: &[Range<usize>], pieces: &Pieces) -> Self {
        let mut next = vec![0u32; pieces.ranges.len() + 1];
        ranks.iter().for_each(|rank| next[pieces.of(*rank) + 1] += 1);
        for at in 1..next.len() {
            next[at] += next[at - 1];
        }
        let ends = next[1..].to_vec();

        let mut events = vec![0; ranks.len()];
        let mut order = vec![0; ranks.len()];
        let mut number = 0u32;
        for run in runs {
            for event in run.clone() {
                let place = &mut next[pieces.of(ranks[number as usize])];
                events[*place as usize] = event as u32;
                order[*place as usize] = number;
                *place += 1;
                number += 1;
            }
        }
        Self { ends, events, order }
    }
}

impl<'a> Part<'a> {
    fn new(ranked: RankedChunk<'a>, pieces: &Pieces, ways: &[Way], all: &AllRanks) -> Self {
        let RankedChunk { chunk: WindowChunk { chunk, runs }, ranks, base, units } = ranked;
        let Places { ends, events, order } = Places::new(&ranks, runs, pieces);
        let tails = match chunk.encoded.tail.as_slice() {
            [] => Tails::One(0),
            tails => tails_of(tails, &events),
        };

        let groups = ways.iter().enumerate().map(|(group, way)| GroupPart::new(chunk, group, *way, &events, all));
        let groups = groups.collect();
        let ranks = picked(&ranks, &order);
        let units = units.map(|units| picked(&units, &order));
        Self { chunk, base, ends, ranks, events, tails, units, groups }
    }

    /// The events of a piece, as a range of those here.
    pub(crate) fn piece(&self, piece: usize) -> Range<usize> {
        let start = piece.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[piece] as usize
    }
}

impl GroupPart {
    /// The cells of group `group` of a chunk, for these events of it.
    fn new(chunk: &Chunk, group: usize, way: Way, events: &[u32], all: &AllRanks) -> Self {
        let cells = &chunk.encoded.groups[group];
        let qualifiers = all.qualifiers[group].as_ref().map(|ranks| {
            let rank_of = ranks.of(chunk.worker);
            let codes = cells.qualifier.as_deref().unwrap_or_default();
            events.iter().map(|event| rank_of[codes[*event as usize] as usize]).collect()
        });
        let timestamps = cells.timestamps.as_ref().map(|times| picked(times, events));

        let lanes = cells.columns.iter().filter_map(Lane::of);
        let columns = match way {
            Way::Move => Columns::Moved(lanes.map(|lane| lane.take(events)).collect()),
            Way::ByPiece => Columns::Lanes(lanes.collect()),
            Way::ByRecord => Columns::Stay,
        };
        Self { qualifiers, timestamps, columns }
    }
}

/// The tails of some events: mostly a window has one.
fn tails_of(tails: &[u64], events: &[u32]) -> Tails {
    let first = events.first().map_or(0, |event| tails[*event as usize]);
    let others = events.iter().fold(0, |others, event| others | (tails[*event as usize] ^ first));
    if others == 0 {
        Tails::One(first)
    } else {
        Tails::Each(events.iter().map(|event| tails[*event as usize]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_of_about_one_size() {
        assert_eq!(cuts(&[4, 4, 4, 4, 4], 20, 8), [2, 4, 5]);
        assert_eq!(cuts(&[4, 4, 4, 4], 16, 9), [2, 4]);
        assert_eq!(cuts(&[1, 90, 1, 0, 1], 93, 8), [1, 2, 5]);
        assert_eq!(cuts(&[4, 4, 0], 8, 4), [1, 3]);
        assert_eq!(cuts(&[0, 0], 0, 8), [2]);
    }

    #[test]
    fn events_of_a_piece_stay_in_order() {
        // Of eight events two runs are in the window.
        let pieces = Pieces { shift: 0, of_bucket: vec![0, 0, 1, 1], ranges: vec![0..2, 2..4], events: vec![2, 3] };
        let places = Places::new(&[3, 0, 2, 1, 3], &[1..3, 4..7], &pieces);
        assert_eq!((places.ends, places.events, places.order), (vec![2, 5], vec![2, 5, 1, 4, 6], vec![1, 3, 0, 2, 4]));
    }
}
