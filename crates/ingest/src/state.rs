//! State of a load for each table.

use std::collections::BTreeMap;

use tidetable_store::Result;
use tidetable_store::version::Sst;

use crate::encode::{EncodedChunk, PieceOutcome};
use crate::input::feed::FeedEnd;
use crate::output::finish::Finished;
use crate::output::write::UNIT_BITS;
use crate::pass::Reading;
use crate::sort::chunk::Chunk;
use crate::spill::file::Spill;
use crate::stats::{EmptyRow, LoadStats};
use crate::unit::TableDone;
use crate::work::{InputRead, ToRead, Work};

/// A table of the load: what waits, what was spilled, and what was written of it.
#[derive(Default)]
pub(crate) struct TargetState {
    /// Chunks that wait to be sorted.
    pub(crate) chunks: Vec<Chunk>,
    /// Bytes of these chunks in memory, which count against the budget.
    pub(crate) bytes: u64,
    /// Spilled events by window, those that came first before others.
    pub(crate) spills: BTreeMap<i64, Vec<Spill>>,
    /// Number of times that source rows of spilled events were numbered.
    numbered: u64,
    pub(crate) ssts: BTreeMap<i64, Vec<Sst>>,
    /// Totals for each input of its work.
    pub(crate) read: Vec<InputRead>,
    pub(crate) stats: LoadStats,
    /// The first row without cells, with the sequence number of its input.
    first_empty: Option<(u64, EmptyRow)>,
}

impl TargetState {
    pub(crate) fn new(work: &Work) -> Self {
        Self { read: work.inputs.iter().map(|_| InputRead::default()).collect(), ..Self::default() }
    }

    /// Adds an encoded piece of input `input`, which begins at `offset`.
    fn put(&mut self, input: usize, to_read: &ToRead, offset: u64, part: EncodedChunk) {
        self.read[input].add_owed(&part.owed, to_read.is_new_at(offset));
        if to_read.counts_at(offset) {
            self.read[input].count(&part.counts, &part.days);
            self.count(to_read, &part);
        } else {
            self.read[input].add_settled(part.days, to_read);
        }

        self.bytes += part.chunk.bytes;
        self.chunks.push(part.chunk);
    }

    /// Adds the counts of a piece of an input whose rows count.
    fn count(&mut self, to_read: &ToRead, part: &EncodedChunk) {
        let (rows, times) = (&part.counts, &part.times);
        self.stats.rows_read += rows.read;
        self.stats.rows_accepted += rows.accepted;
        self.stats.rows_filtered += rows.filtered;
        self.stats.rows_rejected += rows.rejected;
        self.stats.more_lines_rejected += rows.more_lines;
        self.stats.rows_owed += rows.owed;
        self.stats.rows_hidden += rows.hidden;
        self.stats.rows_empty += rows.empty;

        self.stats.note(&to_read.file.path, &part.notes);
        self.stats.repeated_times += times.repeated;
        self.stats.cut_times += times.cut;
        self.stats.nan_values += times.nan;

        // Pieces arrive in any order.
        let found = part.first_empty.iter().map(|row| (to_read.input_seqno, row.clone()));
        let first = self.first_empty.take().into_iter().chain(found);
        self.first_empty = first.min_by_key(|(input_seqno, row)| (*input_seqno, row.line));
    }

    /// Records what is known of an input once it was read.
    fn end_input(&mut self, input: usize, to_read: &ToRead, end: &FeedEnd) {
        let read = &mut self.read[input];
        read.hash = Some(end.hash);
        read.loaded = end.loaded;
        read.shape = end.shape;

        if to_read.counts {
            let held = to_read.held.as_ref().map_or(0, |held| held.end);
            let bytes = end.loaded.map_or(end.bytes, |loaded| loaded.bytes);
            self.stats.bytes_in += bytes.saturating_sub(held);
        }
    }

    /// The number from which source rows of the next spilled events are counted: apart from all before.
    pub(crate) fn next_unit(&mut self) -> u64 {
        self.numbered += 1;
        self.numbered << UNIT_BITS
    }

    /// Records the SSTs that were finished, and the counts of their windows.
    ///
    /// # Errors
    /// The first error among them. Files finished before a failure are recorded, so that they are removed.
    pub(crate) fn record(&mut self, finished: Vec<Finished>, counted: Vec<Result<LoadStats>>) -> Result<()> {
        let mut failed = Ok(());
        for Finished { place, sst, took } in finished {
            self.stats.write += took;
            match sst {
                Ok(Some(sst)) => {
                    self.stats.count_sst(&sst);
                    self.ssts.entry(place.window).or_default().push(sst);
                }
                Ok(None) => {}
                Err(error) => failed = failed.and(Err(error)),
            }
        }

        for counted in counted {
            match counted {
                Ok(counted) => self.stats.add(&counted),
                Err(error) => failed = failed.and(Err(error)),
            }
        }

        failed
    }

    /// What a unit returns of the table.
    pub(crate) fn into_done(self) -> TableDone {
        let Self { ssts, read, stats, first_empty, .. } = self;
        TableDone { ssts, read, stats, first_empty }
    }
}

impl PieceOutcome {
    /// Adds the encoded piece to the state of each table.
    pub(crate) fn put(self, readings: &[Reading], works: &[Work], states: &mut [TargetState]) {
        match self {
            Self::End { input, end } => {
                for used in &readings[input].uses {
                    states[used.target].end_input(used.input, used.of(works), &end);
                }
            }
            Self::Encoded { input, offset, parts } => {
                for (used, part) in readings[input].uses.iter().zip(parts) {
                    states[used.target].put(used.input, used.of(works), offset, part);
                }
            }
            Self::Skipped => {}
        }
    }
}
