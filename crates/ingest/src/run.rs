//! Runs a unit of a load, pass by pass.

use std::sync::Mutex;
use std::time::Instant;

use rayon::prelude::*;
use tidetable_sstable::StripeLimits;
use tidetable_store::Result;

use crate::batcher::{Batcher, are_too_many, names_of};
use crate::encoders::Encoders;
use crate::input::read::read_ahead;
use crate::output::finish::{Finished, Finisher, files_at_once};
use crate::output::write::SstWriter;
use crate::pass::{Pass, passes};
use crate::sort::chunk::{events_by_window, held_back, keep_window};
use crate::spec::{Progress, TableTarget, UnitLoader};
use crate::state::TargetState;
use crate::stats::LoadStats;
use crate::unit::{LoadUnit, LoadUnitDone, TableDone};
use crate::work::Work;

/// Pieces of inputs that may wait to be parsed.
const READ_AHEAD: usize = 4;

/// Events from which a window is sorted and encoded by all cores together.
const LARGE_WINDOW: usize = 1 << 20;

impl<'a> UnitLoader<'a> {
    /// Reads the inputs of a unit, and writes SSTs.
    ///
    /// # Errors
    /// Those of reading, encoding and writing. The SSTs written so far are removed.
    pub fn run(&self, unit: &LoadUnit) -> Result<LoadUnitDone> {
        let works = unit.works.as_slice();
        let encoders: Vec<Encoders<'a>> = self.tables.iter().map(|target| Encoders::new(target.layout)).collect();
        let mut states: Vec<TargetState> = works.iter().map(TargetState::new).collect();
        let mut passes = passes(works).into_iter();
        let done = passes.try_for_each(|pass| self.run_pass(&pass, works, &encoders, &mut states));
        let tables: Vec<TableDone> = states.into_iter().map(TargetState::into_done).collect();
        if done.is_err() {
            self.tables.iter().zip(&tables).for_each(|(target, done)| done.discard(target.table));
        }
        done.map(|()| LoadUnitDone { tables })
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
                let gather = Batcher { loader: self, pass, works, encoders, messages: &messages };
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

    /// Sorts and writes the waiting cells; if `more` will come, it may hold back one window, unless names are given up with it.
    fn flush(
        &self,
        targets: &[usize],
        encoders: &[Encoders<'a>],
        states: &mut [TargetState],
        more: bool,
    ) -> Result<()> {
        let forget = more && are_too_many(self.memory, names_of(encoders));
        let may_hold = more && !forget;
        let mut targets = targets.iter();
        targets.try_for_each(|at| self.flush_target(&self.tables[*at], &encoders[*at], &mut states[*at], may_hold))?;
        if forget {
            encoders.iter().for_each(Encoders::forget);
        }
        Ok(())
    }

    fn flush_target(
        &self,
        target: &TableTarget<'_>,
        encoders: &Encoders<'_>,
        state: &mut TargetState,
        may_hold: bool,
    ) -> Result<()> {
        let mut chunks = std::mem::take(&mut state.chunks);
        chunks.sort_by_key(|chunk| chunk.place);
        let held = if may_hold { held_back(&chunks) } else { None };
        let mut events = events_by_window(&chunks);
        held.map(|window| events.remove(&window));
        // A large window keeps all cores busy, and one at a time bounds the memory for its copy.
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
        let (counted, finished) = Finisher::beside(files_at_once(table.blobs().as_ref(), self.memory), |finisher| {
            let write = |(start, _)| writer.write_window(&chunks, start, &ranks, finisher);
            let mut written: Vec<Result<LoadStats>> = large.into_iter().map(write).collect();
            written.par_extend(small.into_par_iter().map(write));
            written
        });
        state.chunks = held.map_or(Vec::new(), |window| keep_window(chunks, window));
        state.bytes = state.chunks.iter().map(|chunk| chunk.bytes).sum();
        // Files finished before a failure are recorded, so that they are removed.
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
