//! Loading: inputs to sorted SSTs, and the edits that commit them.
//!
//! An input is read once for all the tables that want it ([`pass`]), in pieces; pieces are parsed and
//! laid out on all cores ([`lay`]); when enough have come, their cells are ordered by counting (see
//! [`order`]), built into blocks and written, one SST or more a window. Nothing is committed here: a
//! load returns an [`VersionEdit`] for each table.

pub(crate) mod batcher;
pub(crate) mod encode;
pub(crate) mod feed;
pub(crate) mod finish;
pub(crate) mod overtaken;
pub(crate) mod pass;
pub(crate) mod plan;
pub(crate) mod prepare;
pub(crate) mod read;
pub(crate) mod rebuild;
pub(crate) mod sort;
pub(crate) mod state;
pub(crate) mod stats;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod write;

use std::sync::Mutex;
use std::time::Instant;

use rayon::prelude::*;
use tidetable_layout::Layout;
use tidetable_sstable::StripeLimits;

use crate::error::Result;
use crate::ids::Ids;
use crate::table::Table;
use crate::version::{Version, VersionEdit};
use batcher::Gather;
pub use feed::{Feed, FeedEnd, FileFeed, Piece};
use finish::{Finished, Finisher};
use pass::{Pass, passes};
pub use plan::{Grown, GrowthOf, InputPlan, Looking};
pub use prepare::{Prepare, Prepared, UnpreparedRow};
pub use read::RejectedRow;
use read::read_ahead;
use rebuild::Work;
use sort::chunk::{events_by_window, held_back, keep_window};
#[doc(hidden)]
pub use sort::order::order_events;
use state::{Encoders, TargetState};
pub use stats::{EmptyRow, LargestRow, LoadStats};
use write::SstWriter;

/// Pieces of inputs that wait to be parsed.
const READ_AHEAD: usize = 4;
/// What a load works with beside the cells that wait: pieces that are read and parsed, and what is encoded and written.
const WORKING_MEMORY: u64 = 128 << 20;
/// The least that a load may be told to hold: with less it would write a file for each piece it reads.
pub const LEAST_MEMORY: u64 = 16 << 20;
/// Events of a window that are ordered and encoded by all cores together.
const LARGE_WINDOW: usize = 1 << 20;
const MICROS_PER_DAY: i64 = 86_400_000_000;

/// A load of one source into the tables that are made of it.
pub struct Loader<'a> {
    /// The rows.
    pub feed: &'a dyn Feed,
    /// What happens to rows before any table sees them.
    pub derive: Option<&'a dyn Prepare>,
    /// The tables.
    pub targets: Vec<Target<'a>>,
    /// Names of new SSTs.
    pub ids: &'a dyn Ids,
    /// Bytes that the load may hold, about, of all tables together. It decides how many cells wait before they are sorted
    /// and written; a piece of an input is held whatever it takes.
    pub memory: u64,
    /// Called for each rejected row of a new or changed input.
    pub on_reject: &'a (dyn Fn(&RejectedRow) + Sync),
    /// Called as bytes are read, and rows laid out and written.
    pub on_progress: &'a (dyn Fn(Progress) + Sync),
}

/// A table to load into.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// The table.
    pub table: &'a Table,
    /// Its layout.
    pub layout: &'a Layout,
    /// Which rows it takes.
    pub filter: Option<&'a dyn Prepare>,
    /// The version to load upon.
    pub base: &'a Version,
    /// What it has to load.
    pub plan: &'a InputPlan,
}

/// How far a load is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// What there is to read, once it is known which inputs are read again for windows that are built anew.
    ToRead {
        /// Bytes as stored.
        bytes: u64,
    },
    /// Bytes of inputs read, and rows of them parsed, since the last call.
    Read {
        /// Bytes as stored.
        bytes: u64,
        /// Rows that were right.
        rows: u64,
    },
    /// Rows were laid out for a table, and wait to be sorted.
    Laid {
        /// How many, since the last call.
        rows: u64,
    },
    /// Rows that waited were sorted and encoded.
    Wrote {
        /// How many, since the last call.
        rows: u64,
    },
}

/// Bytes of cells that may wait where a load may hold `memory`, of which the names of rows and columns take `names`: cells of
/// a window are copied to be sorted. However little it is, a piece is always taken.
fn waiting_cells(memory: u64, names: u64) -> u64 {
    let cells = memory.saturating_sub(WORKING_MEMORY).max(memory / 2).saturating_sub(names);
    (cells / 2).max(memory / 16).max(1)
}

/// What a load made of one table. Nothing of it is visible until the edit is committed.
#[derive(Debug)]
pub struct Loaded {
    /// To be committed.
    pub edit: VersionEdit,
    /// Counts and times. What tables read together cost together is told of the first.
    pub stats: LoadStats,
    /// Inputs that have grown, but the windows they touch were built anew: later inputs write the same cells.
    pub overtaken: Vec<String>,
}

impl<'a> Loader<'a> {
    /// Loads what each target's plan says is new or changed: for each target what to commit.
    ///
    /// What a grown input brings is added to its windows, unless it turns out that cells of later inputs would be hidden by
    /// it: then the load begins again and builds those windows anew.
    ///
    /// # Errors
    /// Those of reading, laying out and writing; [`crate::StoreError::InputsGone`] if a window must be
    /// built anew and one of its inputs is gone. SSTs written so far are removed then.
    pub fn load(&self) -> Result<Vec<Loaded>> {
        let loaded = self.load_once(&[])?;
        let discard =
            || self.targets.iter().zip(&loaded).for_each(|(target, loaded)| target.table.discard(&loaded.edit));
        let overtaken = self.targets.iter().zip(&loaded).map(|(target, loaded)| target.overtaken(&loaded.edit));
        let overtaken: Vec<Vec<String>> = overtaken.collect::<Result<_>>().inspect_err(|_| discard())?;
        if overtaken.iter().all(Vec::is_empty) {
            return Ok(loaded);
        }
        discard();
        let plans = self.targets.iter().zip(&overtaken).map(|(target, paths)| {
            let mut plan = target.plan.clone();
            plan.rebuild_grown(paths);
            plan
        });
        let plans: Vec<InputPlan> = plans.collect();
        let targets = self.targets.iter().zip(&plans).map(|(target, plan)| Target { plan, ..*target }).collect();
        let again = Loader { targets, ..*self };
        let told: Vec<&[Grown]> = self.targets.iter().map(|target| target.plan.grown.as_slice()).collect();
        let loaded = again.load_once(&told)?;
        Ok(loaded.into_iter().zip(overtaken).map(|(loaded, overtaken)| Loaded { overtaken, ..loaded }).collect())
    }

    /// As [`Self::load`], where no input is overtaken. If it is not the first time, `told` are the inputs of each target that
    /// had grown then: only what they held before has rejected rows that were not told.
    fn load_once(&self, told: &[&[Grown]]) -> Result<Vec<Loaded>> {
        let mut works = rebuild::plan(self)?;
        for (work, grown) in works.iter_mut().zip(told) {
            work.tell_only_held(grown);
        }
        let encoders: Vec<Encoders<'a>> = self.targets.iter().map(|target| Encoders::new(target.layout)).collect();
        let mut states: Vec<TargetState> = works.iter().map(TargetState::new).collect();
        let passes = passes(&works);
        let bytes = passes.iter().flat_map(|pass| &pass.readings).map(|reading| reading.file.size).sum();
        (self.on_progress)(Progress::ToRead { bytes });
        let mut passes = passes.into_iter();
        let done = passes.try_for_each(|pass| self.run_pass(&pass, &works, &encoders, &mut states));
        let done = done.and_then(|()| works.iter_mut().zip(&states).try_for_each(|(work, state)| state.settle(work)));
        let loaded = works.into_iter().zip(states).map(|(work, state)| {
            let (ssts, stats) = state.into_written();
            Loaded { edit: VersionEdit { ssts, ..work.edit }, stats, overtaken: Vec::new() }
        });
        let loaded: Vec<Loaded> = loaded.collect();
        if done.is_err() {
            self.targets.iter().zip(&loaded).for_each(|(target, loaded)| target.table.discard(&loaded.edit));
        }
        done.map(|()| loaded)
    }

    fn run_pass(
        &self,
        pass: &Pass,
        works: &[Work],
        encoders: &[Encoders<'a>],
        states: &mut [TargetState],
    ) -> Result<()> {
        let Some(first) = pass.targets.first().copied() else { return Ok(()) };
        let on_bytes = |bytes| (self.on_progress)(Progress::Read { bytes, rows: 0 });
        read_ahead(self.feed, &pass.files(works), READ_AHEAD, &on_bytes, |messages| {
            let messages = Mutex::new(messages.fuse());
            loop {
                let gather = Gather { loader: self, pass, works, encoders, messages: &messages };
                let clock = Instant::now();
                let (more, waited) = gather.until_full(states)?;
                let stats = &mut states[first].stats;
                stats.read += waited;
                stats.parse += clock.elapsed().saturating_sub(waited);
                self.flush(&pass.targets, encoders, states, more)?;
                if !more {
                    return Ok(());
                }
            }
        })
    }

    /// Sorts and writes what has come so far; if `more` is to come, not what waits for the rest of its window.
    fn flush(
        &self,
        targets: &[usize],
        encoders: &[Encoders<'a>],
        states: &mut [TargetState],
        more: bool,
    ) -> Result<()> {
        let mut targets = targets.iter();
        targets.try_for_each(|at| self.flush_target(&self.targets[*at], &encoders[*at], &mut states[*at], more))
    }

    fn flush_target(
        &self,
        target: &Target<'_>,
        encoders: &Encoders<'_>,
        state: &mut TargetState,
        more: bool,
    ) -> Result<()> {
        let mut chunks = std::mem::take(&mut state.chunks);
        chunks.sort_by_key(|chunk| chunk.place);
        let held = if more { held_back(&chunks) } else { None };
        let mut events = events_by_window(&chunks);
        held.map(|window| events.remove(&window));
        // A large window keeps all cores busy, and one at a time is in memory twice.
        let (large, small): (Vec<_>, Vec<_>) = events.into_iter().partition(|(_, events)| *events >= LARGE_WINDOW);
        let clock = Instant::now();
        let schema = target.layout.stored();
        let ranks = encoders.ranks(schema.groups.len());
        state.stats.sort += clock.elapsed();
        let on_written = |rows| {
            (self.on_progress)(Progress::Wrote { rows });
            self.feed.go_on()
        };
        let (table, layout, limits) = (target.table, target.layout, StripeLimits::default());
        let writer = SstWriter { table, layout, schema, ids: self.ids, limits, on_written: &on_written };
        let (counted, finished) = Finisher::beside(|finisher| {
            let write = |(start, _)| writer.write_window(&chunks, start, &ranks, finisher);
            let mut written: Vec<Result<LoadStats>> = large.into_iter().map(write).collect();
            written.par_extend(small.into_par_iter().map(write));
            written
        });
        state.chunks = held.map_or(Vec::new(), |window| keep_window(chunks, window));
        state.bytes = state.chunks.iter().map(|chunk| chunk.bytes).sum();
        // What was finished is kept even where something else failed: it is to be removed.
        let mut failed = Ok(());
        for Finished { place, sst, took } in finished {
            state.stats.write += took;
            match sst {
                Ok(Some(sst)) => {
                    state.stats.count_sst(&sst);
                    state.ssts.entry(place.window).or_default().push(sst);
                }
                Ok(None) => {}
                Err(error) => failed = failed.and(Err(error)),
            }
        }
        for counted in counted {
            match counted {
                Ok(counted) => state.stats.add(&counted),
                Err(error) => failed = failed.and(Err(error)),
            }
        }
        failed
    }
}
