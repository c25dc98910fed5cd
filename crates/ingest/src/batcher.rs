//! Batching: encodes pieces of inputs on all cores until the memory for cells is full.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tidetable_store::Result;

use crate::encode::PieceOutcome;
use crate::encoders::Encoders;
use crate::input::read::ReadMessage;
use crate::pass::Pass;
use crate::spec::{Progress, UnitLoader};
use crate::state::TargetState;
use crate::work::Work;

/// Bytes a load uses beside waiting cells: for pieces being parsed, and SSTs being encoded and written.
const WORKING_MEMORY: u64 = 128 << 20;

/// State that the cores share while they encode.
pub(crate) struct Batcher<'a, 'l, M> {
    pub(crate) loader: &'a UnitLoader<'l>,
    pub(crate) pass: &'a Pass,
    pub(crate) works: &'a [Work],
    pub(crate) encoders: &'a [Encoders<'l>],
    /// Pieces that were read and not encoded; any core takes the next.
    pub(crate) messages: &'a Mutex<M>,
}

impl<M: Iterator<Item = Result<ReadMessage>> + Send> Batcher<'_, '_, M> {
    /// Encodes pieces until the memory for cells is full or no piece is left. Returns whether more may come, and how
    /// long a core waited for pieces on average.
    pub(crate) fn until_full(&self, states: &mut [TargetState]) -> Result<(bool, Duration)> {
        let states = Mutex::new(states);
        let failed = AtomicBool::new(false);
        // Each core takes the next piece as soon as it is free; there are no rounds to wait for.
        let done = rayon::broadcast(|_| {
            let done = self.work(&states, &failed);
            if done.is_err() {
                failed.store(true, Ordering::Relaxed);
            }
            done
        });
        let cores = done.len().max(1) as u32;
        let done: Vec<(bool, Duration)> = done.into_iter().collect::<Result<_>>()?;
        let waited = done.iter().map(|(_, waited)| *waited).sum::<Duration>();
        Ok((done.iter().all(|(more, _)| *more), waited / cores))
    }

    /// The loop of one core. Returns whether more pieces may come, and how long the core waited for them.
    fn work(&self, states: &Mutex<&mut [TargetState]>, failed: &AtomicBool) -> Result<(bool, Duration)> {
        let mut waited = Duration::ZERO;
        while !failed.load(Ordering::Relaxed) {
            self.loader.feed.go_on()?;
            if self.is_full(lock(states).iter().map(|state| state.bytes).sum()) {
                return Ok((true, waited));
            }
            let clock = Instant::now();
            let message = lock(self.messages).next();
            waited += clock.elapsed();
            let Some(message) = message else { return Ok((false, waited)) };
            let outcome = self.loader.encode_piece(message?, &self.pass.readings, self.works, self.encoders)?;
            self.report(&outcome);
            outcome.put(&self.pass.readings, self.works, &mut lock(states));
        }
        Ok((false, waited))
    }

    /// Whether the memory is full with `waiting` bytes of cells.
    fn is_full(&self, waiting: u64) -> bool {
        let (memory, names) = (self.loader.memory, names_of(self.encoders));
        waiting >= waiting_cells(memory, names) || waiting > 0 && are_too_many(memory, names)
    }

    fn report(&self, outcome: &PieceOutcome) {
        let PieceOutcome::Encoded { parts, .. } = outcome else { return };
        let rows = parts.iter().map(|part| part.counts.accepted + part.counts.filtered).max().unwrap_or_default();
        (self.loader.on_progress)(Progress::Read { bytes: 0, rows });
        let runs = parts.iter().flat_map(|part| part.chunk.windows.values().flatten());
        (self.loader.on_progress)(Progress::Encoded { rows: runs.map(|run| run.len() as u64).sum() });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Approximate bytes of the interned names of all tables.
pub(crate) fn names_of(encoders: &[Encoders<'_>]) -> u64 {
    encoders.iter().map(Encoders::memory).sum()
}

/// Whether names take so much of a budget of `memory` that they are given up with the cells that wait: five sixteenths. Of
/// 20,000 entities they take little, of millions more than the cells.
pub(crate) fn are_too_many(memory: u64, names: u64) -> bool {
    names > memory / 16 * 5
}

/// Bytes of cells that may wait under a budget of `memory`, when interned row keys and qualifiers take `names`.
/// Sorting copies the cells of a window. A piece is taken however little is left.
pub(crate) fn waiting_cells(memory: u64, names: u64) -> u64 {
    let cells = memory.saturating_sub(WORKING_MEMORY).max(memory / 2).saturating_sub(names);
    (cells / 2).max(memory / 16).max(1)
}
