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
/// Chunks that are counted together.
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
    /// The ranks of each piece.
    ranges: Vec<Range<u32>>,
    /// Events of each piece.
    events: Vec<usize>,
}

/// The events of a chunk that are in a window, by piece, in order of arrival.
pub(crate) struct Part<'a> {
    pub(crate) chunk: &'a Chunk,
    /// The number of its first event in the window.
    pub(crate) base: u32,
    /// End of each piece.
    ends: Vec<u32>,
    pub(crate) ranks: Vec<u32>,
    /// The numbers of the events in the chunk.
    pub(crate) events: Vec<u32>,
    pub(crate) tails: Tails,
    /// The source row of each event, where needed.
    pub(crate) units: Option<Vec<u64>>,
    pub(crate) groups: Vec<GroupPart>,
}

/// The cells of one group.
pub(crate) struct GroupPart {
    /// Ranks of qualifiers, for dynamic groups.
    pub(crate) qualifiers: Option<Vec<u32>>,
    /// Cell timestamps, if stored.
    pub(crate) timestamps: Option<Vec<i64>>,
    /// The values of each column.
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

impl<'a> Partition<'a> {
    /// Partitions events into pieces of at most `most` events, unless a piece is of one name.
    pub(crate) fn new(schema: &'a StoredSchema, events: Events<'a>, most: usize) -> Self {
        let Events { chunks, window, ranks, first_unit } = events;
        let chunks: Vec<(&Chunk, &[Range<usize>])> =
            chunks.iter().filter_map(|chunk| Some((chunk, chunk.windows.get(&window)?.as_slice()))).collect();
        let total = chunks.iter().flat_map(|(_, runs)| *runs).map(Range::len).sum::<usize>();
        let key_ranks = KeyRanks::new(&chunks, &ranks.prefixes, total);
        let ranked: Vec<Vec<u32>> = chunks.par_iter().map(|(chunk, runs)| key_ranks.of(chunk, runs)).collect();
        let names = key_ranks.len();
        // Few events are one piece, and one bucket.
        let bits = if total <= most { 0 } else { BUCKET_BITS };
        let shift = names.next_power_of_two().trailing_zeros().saturating_sub(bits);
        let counts = counts(&ranked, shift, (names >> shift) + 1);
        let ends = cuts(&counts, total, most);
        let mut piece_of = vec![0u32; counts.len()];
        let (mut ranges, mut events) = (Vec::with_capacity(ends.len()), Vec::with_capacity(ends.len()));
        let mut first = 0;
        for (piece, end) in (0u32..).zip(&ends) {
            piece_of[first..*end].fill(piece);
            events.push(counts[first..*end].iter().map(|count| *count as usize).sum());
            ranges.push((first << shift) as u32..(end << shift).min(names.max(1)) as u32);
            first = *end;
        }
        let counts_rows = |chunk: &Chunk| chunk.encoded.rows.is_some() || chunk.units.is_some();
        let has_units = schema.upsert || chunks.iter().any(|(chunk, _)| counts_rows(chunk));
        let mut units = has_units.then_some(first_unit);
        let mut base = 0;
        let numbered = chunks.iter().zip(ranked).map(|((chunk, runs), ranks)| {
            let own = base;
            base += chunk.encoded.prefix.len() as u32;
            (*chunk, *runs, ranks, own, units.as_mut().map(|unit| units_of(chunk, runs, unit)))
        });
        let numbered: Vec<_> = numbered.collect();
        let ways: Vec<Way> =
            (0..schema.groups.len()).map(|group| way(schema, group, &chunks, total / names.max(1))).collect();
        let parts = numbered.into_par_iter().map(|(chunk, runs, own, base, units)| {
            let places = Places::new(&own, runs, &piece_of, shift, ends.len());
            Part::new(chunk, base, own, places, units, &ways, ranks)
        });
        Self { schema, first_unit, parts: parts.collect(), ranges, events }
    }

    /// Number of pieces.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The ranks of a piece.
    pub(crate) fn ranks(&self, piece: usize) -> Range<u32> {
        self.ranges[piece].clone()
    }

    /// Number of events of a piece.
    pub(crate) fn events(&self, piece: usize) -> usize {
        self.events[piece]
    }
}

/// What becomes of the values of a group, of so many events a name.
fn way(schema: &StoredSchema, group: usize, chunks: &[(&Chunk, &[Range<usize>])], a_name: usize) -> Way {
    let of = &schema.groups[group];
    // One record a row: its last event is all that is needed.
    let once = of.qualifier == QualifierKind::Constant && of.timestamps == TimestampKind::Zero && a_name >= MANY;
    let width: Option<usize> = of.columns.iter().map(|column| Lane::width(&column.value.arrow())).sum();
    let mut columns = chunks.iter().flat_map(|(chunk, _)| &chunk.encoded.groups[group].columns);
    match width.filter(|_| !once && columns.all(|column| column.null_count() == 0)) {
        Some(width) if width <= MAX_MOVED => Way::Move,
        Some(_) => Way::ByPiece,
        None => Way::ByRecord,
    }
}

/// The ranks by which the events of a window are cut and sorted.
enum KeyRanks<'a> {
    /// Those of prefixes.
    Names(&'a Ranks),
    /// The distance of a number from the least, in steps of a power of two: about as many steps as events, so that few numbers
    /// share one. Within a step events are sorted by the number, which is their tail.
    Numbers { least: u64, shift: u32, steps: usize },
}

/// Steps of numbers for each event.
const STEPS_AN_EVENT: usize = 4;

impl<'a> KeyRanks<'a> {
    fn new(chunks: &[(&Chunk, &[Range<usize>])], prefixes: &'a Prefixes, total: usize) -> Self {
        if let Prefixes::Names(names) = prefixes {
            return Self::Names(names);
        }
        let bounds = |(chunk, runs): &(&Chunk, &[Range<usize>])| {
            let numbers = runs.iter().flat_map(|run| &chunk.encoded.tail[run.clone()]);
            numbers.fold((u64::MAX, 0), |(least, greatest), number| (least.min(*number), greatest.max(*number)))
        };
        let wider = |one: (u64, u64), other: (u64, u64)| (one.0.min(other.0), one.1.max(other.1));
        let (least, greatest) = chunks.par_iter().map(bounds).reduce(|| (u64::MAX, 0), wider);

        let width = greatest.saturating_sub(least);
        let most = (total * STEPS_AN_EVENT).clamp(1, 1 << 31) as u64;
        let mut shift = 0;
        while width >> shift >= most {
            shift += 1;
        }
        Self::Numbers { least, shift, steps: (width >> shift) as usize + 1 }
    }

    /// Number of ranks.
    fn len(&self) -> usize {
        match self {
            Self::Names(names) => names.len(),
            Self::Numbers { steps, .. } => *steps,
        }
    }

    /// The ranks of the events in runs of a chunk.
    fn of(&self, chunk: &Chunk, runs: &[Range<usize>]) -> Vec<u32> {
        let mut out = Vec::with_capacity(runs.iter().map(Range::len).sum());
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
fn units_of(chunk: &Chunk, runs: &[Range<usize>], unit: &mut u64) -> Vec<u64> {
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

/// The number of events in each of `buckets` buckets.
fn counts(ranked: &[Vec<u32>], shift: u32, buckets: usize) -> Vec<u32> {
    let none = || vec![0u32; buckets];
    let add = |mut counts: Vec<u32>, ranks: &Vec<u32>| {
        ranks.iter().for_each(|rank| counts[(rank >> shift) as usize] += 1);
        counts
    };
    let sum = |mut one: Vec<u32>, other: Vec<u32>| {
        one.iter_mut().zip(other).for_each(|(count, more)| *count += more);
        one
    };
    ranked.par_iter().with_min_len(COUNTED).fold(none, add).reduce(none, sum)
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
    /// The numbers of the events in the chunk, and among those of the window.
    events: Vec<u32>,
    order: Vec<u32>,
}

impl Places {
    fn new(ranks: &[u32], runs: &[Range<usize>], piece_of: &[u32], shift: u32, pieces: usize) -> Self {
        let piece = |rank: u32| piece_of[(rank >> shift) as usize] as usize;
        let mut next = vec![0u32; pieces + 1];
        ranks.iter().for_each(|rank| next[piece(*rank) + 1] += 1);
        for at in 1..next.len() {
            next[at] += next[at - 1];
        }
        let ends = next[1..].to_vec();
        let (mut events, mut order) = (vec![0; ranks.len()], vec![0; ranks.len()]);
        let mut own = 0u32;
        for run in runs {
            for event in run.clone() {
                let place = &mut next[piece(ranks[own as usize])];
                (events[*place as usize], order[*place as usize]) = (event as u32, own);
                *place += 1;
                own += 1;
            }
        }
        Self { ends, events, order }
    }
}

impl<'a> Part<'a> {
    fn new(
        chunk: &'a Chunk,
        base: u32,
        ranks: Vec<u32>,
        places: Places,
        units: Option<Vec<u64>>,
        ways: &[Way],
        all: &AllRanks,
    ) -> Self {
        let Places { ends, events, order } = places;
        let tails = match chunk.encoded.tail.as_slice() {
            [] => Tails::One(0),
            tails => tails_of(tails, &events),
        };
        let groups = chunk.encoded.groups.iter().enumerate().map(|(at, group)| GroupPart {
            qualifiers: all.qualifiers[at].as_ref().map(|ranks| {
                let (rank_of, codes) = (ranks.of(chunk.worker), group.qualifier.as_deref().unwrap_or_default());
                events.iter().map(|event| rank_of[codes[*event as usize] as usize]).collect()
            }),
            timestamps: group
                .timestamps
                .as_ref()
                .map(|times| events.iter().map(|event| times[*event as usize]).collect()),
            columns: {
                let lanes = group.columns.iter().filter_map(Lane::of);
                match ways[at] {
                    Way::Move => Columns::Moved(lanes.map(|lane| lane.take(&events)).collect()),
                    Way::ByPiece => Columns::Lanes(lanes.collect()),
                    Way::ByRecord => Columns::Stay,
                }
            },
        });
        let groups = groups.collect();
        let (ranks, units) = (picked(&ranks, &order), units.map(|units| picked(&units, &order)));
        Self { chunk, base, ends, ranks, events, tails, units, groups }
    }

    /// The events of a piece, as a range of those here.
    pub(crate) fn piece(&self, piece: usize) -> Range<usize> {
        let start = piece.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[piece] as usize
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
        let places = Places::new(&[3, 0, 2, 1, 3], &[1..3, 4..7], &[0, 0, 1, 1], 0, 2);
        assert_eq!((places.ends, places.events, places.order), (vec![2, 5], vec![2, 5, 1, 4, 6], vec![1, 3, 0, 2, 4]));
    }
}
