//! Loading: inputs to sorted SSTs, and the edits that commit them.
//!
//! An input is read once for all the tables that want it ([`pass`]), in pieces; pieces are parsed and
//! laid out on all cores ([`lay`]); when enough have come, their cells are ordered by counting (see
//! [`order`]), built into blocks and written, one SST or more a window. Nothing is committed here: a
//! load returns an [`Edit`] for each table.

mod chunk;
mod feed;
mod lay;
mod order;
mod pass;
mod plan;
mod prepare;
mod ranks;
mod read;
mod rebuild;
mod rows;
mod size;
mod state;
mod stats;
#[cfg(test)]
mod tests;
mod upsert;
mod write;

use std::collections::BTreeSet;
use std::time::Instant;

use rayon::prelude::*;
use tidetable_layout::Layout;
use tidetable_sstable::StripeLimits;

use crate::error::Result;
use crate::ids::Ids;
use crate::table::Table;
use crate::version::{Edit, Sst, Version};
pub use feed::{Feed, FeedEnd, FileFeed, Piece};
#[doc(hidden)]
pub use order::order_events;
use pass::{Pass, passes};
pub use plan::InputPlan;
pub use prepare::{Prepare, Prepared, UnpreparedRow};
pub use read::RejectedRow;
use read::{ReadMessage, read_ahead};
use rebuild::Work;
use state::TargetState;
pub use stats::{LargestRow, LoadStats};
use write::SstWriter;

/// Most pieces parsed side by side before they are put away, and most that wait to be.
const ROUND: usize = 16;
/// Memory for each of those: a piece is about 4 MiB of text, and twice that once parsed and laid out.
const PIECE_MEMORY: u64 = 32 << 20;
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
    /// Bytes of laid-out cells to hold before they are sorted and written, of all tables together.
    pub memory: u64,
    /// Paths of inputs that are gone and to be left out of windows that are built anew.
    pub without: &'a [String],
    /// Called for each rejected row of a new or changed input.
    pub on_reject: &'a (dyn Fn(&RejectedRow) + Sync),
    /// Called as bytes are read and rows laid out.
    pub on_progress: &'a (dyn Fn(Progress) + Sync),
}

/// A table to load into.
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
    /// Bytes of inputs read, and rows of them parsed, since the last call.
    Read {
        /// Bytes as stored.
        bytes: u64,
        /// Rows that were right.
        rows: u64,
    },
    /// SSTs of a window were written.
    Wrote {
        /// Their bytes.
        bytes: u64,
    },
}

/// What a load made of one table. Nothing of it is visible until the edit is committed.
#[derive(Debug)]
pub struct Loaded {
    /// To be committed.
    pub edit: Edit,
    /// Counts and times. What tables read together cost together is told of the first.
    pub stats: LoadStats,
}

impl Loader<'_> {
    /// Loads what each target's plan says is new or changed: for each target what to commit.
    ///
    /// # Errors
    /// Those of reading, laying out and writing; [`crate::StoreError::InputGone`] if a window must be
    /// built anew and one of its inputs is gone. SSTs written so far are removed then.
    pub fn load(&self) -> Result<Vec<Loaded>> {
        let mut works = rebuild::plan(self)?;
        let mut states: Vec<TargetState<'_>> =
            self.targets.iter().zip(&works).map(|(target, work)| TargetState::new(target.layout, work)).collect();
        let done = passes(&works).iter().try_for_each(|pass| self.run_pass(pass, &works, &mut states));
        let done = done.and_then(|()| works.iter_mut().zip(&states).try_for_each(|(work, state)| state.settle(work)));
        let loaded = works.into_iter().zip(states).map(|(work, state)| {
            let edit = Edit { ssts: state.ssts, ..work.edit };
            Loaded { edit, stats: state.stats }
        });
        let loaded: Vec<Loaded> = loaded.collect();
        if done.is_err() {
            self.targets.iter().zip(&loaded).for_each(|(target, loaded)| target.table.discard(&loaded.edit));
        }
        done.map(|()| loaded)
    }

    fn run_pass(&self, pass: &Pass, works: &[Work], states: &mut [TargetState<'_>]) -> Result<()> {
        let Some(first) = pass.targets.first().copied() else { return Ok(()) };
        let clock = Instant::now();
        let mut busy = std::time::Duration::ZERO;
        let on_bytes = |bytes| (self.on_progress)(Progress::Read { bytes, rows: 0 });
        let files: Vec<_> = pass.readings.iter().map(|reading| &reading.file).collect();
        // Little memory is for few pieces at a time; two keep two cores busy.
        let pieces = usize::try_from(self.memory / PIECE_MEMORY).unwrap_or(ROUND).clamp(2, ROUND);
        read_ahead(self.feed, &files, pieces, &on_bytes, |messages| {
            while let round = messages.take(pieces).collect::<Result<Vec<ReadMessage>>>()?
                && !round.is_empty()
            {
                let clock = Instant::now();
                let outcomes: Vec<_> = round
                    .into_par_iter()
                    .map(|message| self.lay_out(message, &pass.readings, works, states))
                    .collect::<Result<_>>()?;
                states[first].stats.parse += clock.elapsed();
                for outcome in outcomes {
                    outcome.put(&pass.readings, works, states);
                }
                if states.iter().map(|state| state.bytes).sum::<u64>() >= self.memory {
                    self.flush(&pass.targets, states)?;
                }
                busy += clock.elapsed();
            }
            Ok(())
        })?;
        states[first].stats.read += clock.elapsed().saturating_sub(busy);
        self.flush(&pass.targets, states)
    }

    /// Sorts and writes what has come so far.
    fn flush(&self, targets: &[usize], states: &mut [TargetState<'_>]) -> Result<()> {
        targets.iter().try_for_each(|target| self.flush_target(&self.targets[*target], &mut states[*target]))
    }

    fn flush_target(&self, target: &Target<'_>, state: &mut TargetState<'_>) -> Result<()> {
        let mut chunks = std::mem::take(&mut state.chunks);
        state.bytes = 0;
        chunks.sort_by_key(|chunk| chunk.place);
        let windows: BTreeSet<i64> = chunks.iter().flat_map(|chunk| chunk.windows.keys().copied()).collect();
        let clock = Instant::now();
        let schema = target.layout.stored();
        let ranks = state.encoders.ranks(schema.groups.len());
        state.stats.sort += clock.elapsed();
        let writer = SstWriter { table: target.table, schema, ids: self.ids, limits: StripeLimits::default() };
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
