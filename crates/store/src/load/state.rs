//! What a load knows of one of its tables while it goes on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use tidetable_layout::Layout;
use tidetable_layout::encode::{Dictionary, Encoder};
use tidetable_source::ContentHash;

use crate::error::{Result, StoreError};
use crate::load::encode::{Outcome, Part};
use crate::load::pass::Reading;
use crate::load::rebuild::Work;
use crate::load::sort::chunk::{AllRanks, Chunk};
use crate::load::sort::ranks::Ranks;
use crate::load::stats::{EmptyRow, LoadStats};
use crate::version::Sst;

/// Rows of an input, or of a piece of it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) read: u64,
    pub(crate) accepted: u64,
    pub(crate) filtered: u64,
    pub(crate) rejected: u64,
    /// Of those accepted, rows that made no cell.
    pub(crate) empty: u64,
}

impl Counts {
    /// No row is lost uncounted.
    pub(crate) fn assert_complete(&self, path: &str) -> Result<()> {
        if self.read == self.accepted + self.filtered + self.rejected {
            return Ok(());
        }
        Err(StoreError::Uncounted {
            path: path.to_owned(),
            read: self.read,
            accepted: self.accepted,
            filtered: self.filtered,
            rejected: self.rejected,
        })
    }
}

/// What was read of one input.
#[derive(Debug, Default)]
pub(crate) struct InputRead {
    pub(crate) counts: Counts,
    pub(crate) hash: Option<ContentHash>,
    /// UTC days with cells, by window.
    pub(crate) days: BTreeMap<i64, BTreeSet<i32>>,
}

/// A table of the load.
#[derive(Default)]
pub(crate) struct TargetState {
    /// What waits to be sorted.
    pub(crate) chunks: Vec<Chunk>,
    /// Bytes of it.
    pub(crate) bytes: u64,
    /// What was written, by window.
    pub(crate) ssts: BTreeMap<i64, Vec<Sst>>,
    /// One for each input of its work.
    pub(crate) read: Vec<InputRead>,
    pub(crate) stats: LoadStats,
    /// The first row without a cell: the sequence of its input, and its line.
    first_empty: Option<(u64, EmptyRow)>,
}

impl TargetState {
    pub(crate) fn new(work: &Work) -> Self {
        Self { read: work.inputs.iter().map(|_| InputRead::default()).collect(), ..Self::default() }
    }

    /// Adds what one piece of input `input` became; it tells in the counts if `counts`.
    fn put(&mut self, input: usize, counts: bool, part: Part) {
        let Part { counts: rows, times, days, chunk, first_empty } = part;
        if counts {
            let read = &mut self.read[input];
            read.counts.read += rows.read;
            read.counts.accepted += rows.accepted;
            read.counts.filtered += rows.filtered;
            read.counts.rejected += rows.rejected;
            for (window, days) in days {
                read.days.entry(window).or_default().extend(days);
            }
            self.stats.rows_read += rows.read;
            self.stats.rows_accepted += rows.accepted;
            self.stats.rows_filtered += rows.filtered;
            self.stats.rows_rejected += rows.rejected;
            self.stats.rows_empty += rows.empty;
            let place = |(sequence, row): &(u64, EmptyRow)| (*sequence, row.line);
            let found = first_empty.map(|row| (chunk.place.0, row));
            // Pieces come in any order.
            let first = self.first_empty.take().into_iter().chain(found);
            self.first_empty = first.min_by_key(place);
            self.stats.repeated_times += times.repeated;
            self.stats.cut_times += times.cut;
        }
        self.bytes += chunk.bytes;
        self.chunks.push(chunk);
    }

    /// What it wrote, by window, and what it counted.
    pub(crate) fn into_written(self) -> (BTreeMap<i64, Vec<Sst>>, LoadStats) {
        let first_empty = self.first_empty.map(|(_, row)| row);
        (self.ssts, LoadStats { first_empty, ..self.stats })
    }

    /// Writes into the edit which inputs were read, after checking that they are what they should be.
    pub(crate) fn settle(&self, work: &mut Work) -> Result<()> {
        for (to_read, read) in work.inputs.iter().zip(&self.read) {
            to_read.check(read)?;
        }
        for (to_read, read) in work.inputs.iter().zip(&self.read).filter(|(to_read, _)| to_read.counts) {
            work.edit.inputs.push(to_read.record(read, &work.edit.rebuilt)?);
            for (window, days) in &read.days {
                work.edit.days.entry(*window).or_default().extend(days);
            }
        }
        Ok(())
    }
}

impl Outcome {
    /// Puts it away, table by table.
    pub(crate) fn put(self, readings: &[Reading], works: &[Work], states: &mut [TargetState]) {
        match self {
            Self::End { input, end } => {
                for (target, index) in &readings[input].uses {
                    let state = &mut states[*target];
                    state.read[*index].hash = Some(end.hash);
                    let to_read = &works[*target].inputs[*index];
                    if to_read.counts {
                        let held = to_read.held.as_ref().map_or(0, |held| held.end);
                        state.stats.bytes_in += end.bytes.saturating_sub(held);
                    }
                }
            }
            Self::Laid { input, offset, parts } => {
                for ((target, index), part) in readings[input].uses.iter().zip(parts) {
                    states[*target].put(*index, works[*target].inputs[*index].counts_at(offset), part);
                }
            }
            Self::Skipped => {}
        }
    }
}

/// Encoders that are not at work, each with the number of its dictionaries.
pub(crate) struct Encoders<'a> {
    layout: &'a Layout,
    idle: Mutex<(Vec<(usize, Encoder<'a>)>, usize)>,
    /// The latest ranks, and how many names each dictionary had then.
    known: Mutex<Option<(Vec<usize>, Arc<AllRanks>)>>,
}

impl<'a> Encoders<'a> {
    pub(crate) fn new(layout: &'a Layout) -> Self {
        Self { layout, idle: Mutex::default(), known: Mutex::default() }
    }

    pub(crate) fn take(&self) -> (usize, Encoder<'a>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        match idle.0.pop() {
            Some(encoder) => encoder,
            None => {
                idle.1 += 1;
                (idle.1 - 1, self.layout.encoder())
            }
        }
    }

    pub(crate) fn put(&self, encoder: (usize, Encoder<'a>)) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).0.push(encoder);
    }

    /// Bytes that the names of encoders which are not at work take, and their ranks, about.
    pub(crate) fn memory(&self) -> u64 {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let groups = self.layout.stored().groups.len();
        let qualifiers = |encoder: &Encoder<'_>| {
            (0..groups).filter_map(|group| encoder.qualifiers(group)).map(Dictionary::memory).sum::<usize>()
        };
        let names = idle.0.iter().map(|(_, encoder)| encoder.prefixes().memory() + qualifiers(encoder));
        // Ranks hold each name once more.
        2 * names.sum::<usize>() as u64
    }

    /// Ranks over the dictionaries of all encoders, none of which may be at work. Those of before are given again if no
    /// name has come since: entities are mostly known after the first of their readings.
    pub(crate) fn ranks(&self, groups: usize) -> Arc<AllRanks> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.0.sort_by_key(|(worker, _)| *worker);
        let prefixes: Vec<_> = idle.0.iter().map(|(_, encoder)| encoder.prefixes()).collect();
        let qualifiers: Vec<Vec<_>> = (0..groups)
            .map(|group| idle.0.iter().filter_map(|(_, encoder)| encoder.qualifiers(group)).collect())
            .collect();
        let names: Vec<usize> = prefixes.iter().chain(qualifiers.iter().flatten()).map(|names| names.len()).collect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.as_ref().filter(|(before, _)| *before == names) {
            Some((_, ranks)) => Arc::clone(ranks),
            None => {
                // Not both at once: they are as large as all names.
                *known = None;
                let of = |all: &Vec<_>| (!all.is_empty()).then(|| Ranks::new(all));
                let qualifiers = qualifiers.iter().map(of).collect();
                let ranks = Arc::new(AllRanks { prefixes: Ranks::new(&prefixes), qualifiers });
                *known = Some((names, Arc::clone(&ranks)));
                ranks
            }
        }
    }
}
