//! Loading: inputs to sorted SSTs, and the edit that commits them.
//!
//! An input is read in chunks; chunks are parsed and laid out on all cores; when enough have come,
//! their cells are ordered by counting (see [`order`]), built into blocks and written, one SST or
//! more a window. Nothing is committed here: a load returns an [`Edit`].

mod chunk;
mod order;
mod plan;
mod prepare;
mod ranks;
mod read;
mod rebuild;
mod rows;
mod stats;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use rayon::prelude::*;
use tidetable_layout::{Encoder, Layout};
use tidetable_source::{ParsedChunk, SourceSpec, Storage};
use tidetable_sstable::StripeLimits;

use crate::error::Result;
use crate::ids::Ids;
use crate::table::Table;
use crate::version::{Edit, Sst, Version};
use chunk::{AllRanks, Chunk, split_by_window};
pub use plan::InputPlan;
pub use prepare::{Prepare, Prepared, UnpreparedRow};
use ranks::Ranks;
pub use read::RejectedRow;
use read::{ReadMessage, RejectedRows, read_ahead};
use rebuild::{ToRead, Work};
pub use stats::LoadStats;
use write::SstWriter;

/// Chunks parsed side by side before they are put away.
const ROUND: usize = 16;
const MICROS_PER_DAY: i64 = 86_400_000_000;

/// What a load needs besides its inputs.
pub struct Loader<'a> {
    /// Where inputs lie.
    pub storage: &'a Storage,
    /// What they are.
    pub source: &'a SourceSpec,
    /// The table to load into.
    pub table: &'a Table,
    /// Its layout.
    pub layout: &'a Layout,
    /// What happens to rows before they are laid out.
    pub prepare: Option<&'a dyn Prepare>,
    /// Names of new SSTs.
    pub ids: &'a dyn Ids,
    /// Bytes of laid-out cells to hold before they are sorted and written.
    pub memory: u64,
    /// Paths of inputs that are gone and to be left out of windows that are built anew.
    pub without: &'a [String],
    /// Called for each rejected row of a new or changed input.
    pub on_reject: &'a (dyn Fn(&RejectedRow) + Sync),
    /// Called as bytes are read and rows accepted.
    pub on_progress: &'a (dyn Fn(Progress) + Sync),
}

/// How far a load is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Bytes of inputs read, and rows of them laid out, since the last call.
    Read {
        /// Bytes as stored.
        bytes: u64,
        /// Rows accepted.
        rows: u64,
    },
    /// SSTs of a window were written.
    Wrote {
        /// Their bytes.
        bytes: u64,
    },
}

/// What a load made. Nothing of it is visible until the edit is committed.
#[derive(Debug)]
pub struct Loaded {
    /// To be committed.
    pub edit: Edit,
    /// Counts and times.
    pub stats: LoadStats,
}

impl Loader<'_> {
    /// Loads the new and changed inputs of `plan` on top of `base`.
    ///
    /// # Errors
    /// Those of reading, laying out and writing; [`crate::StoreError::InputGone`] if a window must be
    /// built anew and one of its inputs is gone. SSTs written so far are removed then.
    pub fn load(&self, base: &Version, plan: &InputPlan) -> Result<Loaded> {
        let Work { mut edit, inputs } = rebuild::plan(self, base, plan)?;
        let mut state = LoadState::new(inputs.len());
        match self.load_inputs(&mut edit, &inputs, &mut state) {
            Ok(()) => {
                edit.ssts = state.ssts;
                Ok(Loaded { edit, stats: state.stats })
            }
            Err(error) => {
                edit.ssts = state.ssts;
                self.table.discard(&edit);
                Err(error)
            }
        }
    }

    fn load_inputs(&self, edit: &mut Edit, inputs: &[ToRead], state: &mut LoadState) -> Result<()> {
        let encoders = Encoders::new(self.layout);
        let clock = Instant::now();
        let on_bytes = |bytes| (self.on_progress)(Progress::Read { bytes, rows: 0 });
        read_ahead(self.storage, self.source, inputs, &on_bytes, |messages| {
            self.consume(messages, inputs, &edit.rebuilt, &encoders, state)
        })?;
        state.stats.read = clock.elapsed().saturating_sub(state.busy);
        self.flush(&encoders, state)?;
        for (to_read, read) in inputs.iter().zip(&state.read) {
            to_read.check(read)?;
        }
        for (to_read, read) in inputs.iter().zip(&state.read).filter(|(to_read, _)| to_read.counts) {
            edit.inputs.push(to_read.record(read, &edit.rebuilt)?);
            for (window, days) in &read.days {
                edit.days.entry(*window).or_default().extend(days);
            }
        }
        Ok(())
    }

    fn consume(
        &self,
        messages: &mut dyn Iterator<Item = Result<ReadMessage>>,
        inputs: &[ToRead],
        rebuilt: &[i64],
        encoders: &Encoders<'_>,
        state: &mut LoadState,
    ) -> Result<()> {
        loop {
            let round = messages.take(ROUND).collect::<Result<Vec<_>>>()?;
            if round.is_empty() {
                return Ok(());
            }
            let clock = Instant::now();
            let outcomes: Vec<Outcome> = round
                .into_par_iter()
                .map(|message| self.lay_out(message, inputs, rebuilt, encoders))
                .collect::<Result<_>>()?;
            state.stats.parse += clock.elapsed();
            outcomes.into_iter().for_each(|outcome| state.put(outcome, inputs));
            if state.bytes >= self.memory {
                self.flush(encoders, state)?;
            }
            state.busy += clock.elapsed();
        }
    }

    /// Parses and lays out one chunk.
    fn lay_out(
        &self,
        message: ReadMessage,
        inputs: &[ToRead],
        rebuilt: &[i64],
        encoders: &Encoders<'_>,
    ) -> Result<Outcome> {
        let (at, index, parser, chunk) = match message {
            ReadMessage::End { input, hash, bytes } => return Ok(Outcome::End { input, hash, bytes }),
            ReadMessage::Chunk { input, index, parser, chunk } => (input, index, parser, chunk),
        };
        let to_read = &inputs[at];
        let ParsedChunk { batch, rows_read, rejected, origin, .. } = parser.parse(chunk)?;
        let prepared = match self.prepare {
            Some(prepare) => prepare.prepare(batch)?,
            None => Prepared::whole(batch),
        };
        let mut encoder = encoders.take();
        let laid = encoder.1.encode(&prepared.batch);
        let worker = encoder.0;
        encoders.put(encoder);
        let laid = laid?;
        // Unpivoting makes several events of a row, or none; else an event is a row.
        let accepted = match &laid.rows {
            Some(_) => prepared.batch.num_rows() - laid.rejected.len(),
            None => laid.time.len(),
        };
        let counts = Counts {
            read: rows_read,
            accepted: accepted as u64,
            filtered: prepared.filtered,
            rejected: (rejected.len() + prepared.rejected.len() + laid.rejected.len()) as u64,
        };
        counts.assert_complete(&to_read.file.path)?;
        if to_read.counts {
            let rows = RejectedRows { file: &to_read.file.path, origin: &origin, on_reject: self.on_reject };
            rows.report(&rejected, &prepared, &laid.rejected);
        }
        let bytes = laid_bytes(&laid);
        (self.on_progress)(Progress::Read { bytes: 0, rows: counts.accepted });
        let wanted = |start: i64| to_read.wants(start, rebuilt);
        let windows = split_by_window(&laid.time, self.layout.spec().window, wanted);
        let place = (to_read.sequence, index);
        let chunk = Box::new(Chunk { place, worker, laid, windows });
        Ok(Outcome::Chunk { input: at, counts, bytes, chunk })
    }

    /// Sorts and writes what has come so far.
    fn flush(&self, encoders: &Encoders<'_>, state: &mut LoadState) -> Result<()> {
        let mut chunks = std::mem::take(&mut state.chunks);
        state.bytes = 0;
        chunks.sort_by_key(|chunk| chunk.place);
        let windows: BTreeSet<i64> = chunks.iter().flat_map(|chunk| chunk.windows.keys().copied()).collect();
        let clock = Instant::now();
        let ranks = encoders.ranks(self.layout.stored().groups.len());
        state.stats.sort += clock.elapsed();
        let writer = SstWriter {
            table: self.table,
            schema: self.layout.stored(),
            ids: self.ids,
            limits: StripeLimits::default(),
        };
        let written: Vec<(i64, Vec<Sst>, LoadStats)> = windows
            .into_par_iter()
            .map(|start| {
                let (ssts, stats) = writer.write_window(&chunks, start, &ranks)?;
                (self.on_progress)(Progress::Wrote { bytes: stats.bytes_out });
                Ok((start, ssts, stats))
            })
            .collect::<Result<_>>()?;
        for (start, ssts, stats) in written {
            state.stats.add(&stats);
            if !ssts.is_empty() {
                state.ssts.entry(start).or_default().extend(ssts);
            }
        }
        Ok(())
    }
}

/// What laying out one message gave.
enum Outcome {
    Chunk { input: usize, counts: Counts, bytes: u64, chunk: Box<Chunk> },
    End { input: usize, hash: tidetable_source::ContentHash, bytes: u64 },
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    read: u64,
    accepted: u64,
    filtered: u64,
    rejected: u64,
}

impl Counts {
    /// No row is lost uncounted.
    fn assert_complete(&self, path: &str) -> Result<()> {
        if self.read == self.accepted + self.filtered + self.rejected {
            return Ok(());
        }
        Err(crate::StoreError::Uncounted {
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
struct InputRead {
    counts: Counts,
    bytes: u64,
    hash: Option<tidetable_source::ContentHash>,
    /// UTC days with cells, by window.
    days: BTreeMap<i64, BTreeSet<i32>>,
}

struct LoadState {
    chunks: Vec<Chunk>,
    bytes: u64,
    ssts: BTreeMap<i64, Vec<Sst>>,
    read: Vec<InputRead>,
    stats: LoadStats,
    busy: std::time::Duration,
}

impl LoadState {
    fn new(inputs: usize) -> Self {
        Self {
            chunks: Vec::new(),
            bytes: 0,
            ssts: BTreeMap::new(),
            read: (0..inputs).map(|_| InputRead::default()).collect(),
            stats: LoadStats::default(),
            busy: std::time::Duration::ZERO,
        }
    }

    fn put(&mut self, outcome: Outcome, inputs: &[ToRead]) {
        match outcome {
            Outcome::End { input, hash, bytes } => {
                self.read[input].hash = Some(hash);
                self.read[input].bytes = bytes;
                if inputs[input].counts {
                    self.stats.bytes_in += bytes;
                }
            }
            Outcome::Chunk { input, counts, bytes, chunk } => {
                let read = &mut self.read[input];
                read.counts.read += counts.read;
                read.counts.accepted += counts.accepted;
                read.counts.filtered += counts.filtered;
                read.counts.rejected += counts.rejected;
                if inputs[input].counts {
                    self.stats.rows_read += counts.read;
                    self.stats.rows_accepted += counts.accepted;
                    self.stats.rows_filtered += counts.filtered;
                    self.stats.rows_rejected += counts.rejected;
                }
                for (window, runs) in &chunk.windows {
                    let days = read.days.entry(*window).or_default();
                    for run in runs {
                        add_days(&chunk.laid.time[run.clone()], days);
                    }
                }
                self.bytes += bytes;
                self.chunks.push(*chunk);
            }
        }
    }
}

/// The UTC days of `times`, which are mostly many in a row alike.
fn add_days(times: &[i64], days: &mut BTreeSet<i32>) {
    let mut last = None;
    for time in times {
        let day = time.div_euclid(MICROS_PER_DAY) as i32;
        if last != Some(day) {
            days.insert(day);
            last = Some(day);
        }
    }
}

fn laid_bytes(laid: &tidetable_layout::LaidOut) -> u64 {
    let mut bytes = laid.prefix.len() * 4 + laid.tail.len() * 8 + laid.time.len() * 8;
    for group in &laid.groups {
        bytes += group.qualifier.as_ref().map_or(0, |codes| codes.len() * 4);
        bytes += group.timestamps.as_ref().map_or(0, |timestamps| timestamps.len() * 8);
        bytes += group.columns.iter().map(|column| column.get_array_memory_size()).sum::<usize>();
    }
    bytes as u64
}

/// Encoders that are not at work, each with the number of its dictionaries.
struct Encoders<'a> {
    layout: &'a Layout,
    idle: Mutex<(Vec<(usize, Encoder<'a>)>, usize)>,
}

impl<'a> Encoders<'a> {
    fn new(layout: &'a Layout) -> Self {
        Self { layout, idle: Mutex::default() }
    }

    fn take(&self) -> (usize, Encoder<'a>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        match idle.0.pop() {
            Some(encoder) => encoder,
            None => {
                idle.1 += 1;
                (idle.1 - 1, self.layout.encoder())
            }
        }
    }

    fn put(&self, encoder: (usize, Encoder<'a>)) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).0.push(encoder);
    }

    /// Ranks over the dictionaries of all encoders, none of which may be at work.
    fn ranks(&self, groups: usize) -> AllRanks {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.0.sort_by_key(|(worker, _)| *worker);
        let prefixes: Vec<_> = idle.0.iter().map(|(_, encoder)| encoder.prefixes()).collect();
        let qualifiers = (0..groups)
            .map(|group| {
                let all: Option<Vec<_>> = idle.0.iter().map(|(_, encoder)| encoder.qualifiers(group)).collect();
                all.filter(|all| !all.is_empty()).map(|all| Ranks::new(&all))
            })
            .collect();
        AllRanks { prefixes: Ranks::new(&prefixes), qualifiers }
    }
}
