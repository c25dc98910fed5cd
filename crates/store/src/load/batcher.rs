//! Laying out pieces on all cores until enough cells have come.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Loader, Progress, waiting_cells};
use crate::error::Result;
use crate::load::encode::Outcome;
use crate::load::pass::Pass;
use crate::load::read::ReadMessage;
use crate::load::rebuild::Work;
use crate::load::state::{Encoders, TargetState};

/// What the cores share while they lay out.
pub(crate) struct Gather<'a, 'l, M> {
    pub(crate) loader: &'a Loader<'l>,
    pub(crate) pass: &'a Pass,
    pub(crate) works: &'a [Work],
    pub(crate) encoders: &'a [Encoders<'l>],
    /// What is read, for whoever comes first.
    pub(crate) messages: &'a Mutex<M>,
}

impl<M: Iterator<Item = Result<ReadMessage>> + Send> Gather<'_, '_, M> {
    /// Puts pieces away until the memory for them is full or there are no more: whether there may be, and how long the
    /// cores waited for one, on average.
    pub(crate) fn until_full(&self, states: &mut [TargetState]) -> Result<(bool, Duration)> {
        let names = self.encoders.iter().map(Encoders::memory).sum();
        let full = waiting_cells(self.loader.memory, names);
        let states = Mutex::new(states);
        let failed = AtomicBool::new(false);
        // Each core takes the next piece as soon as it is done with one: no round waits for its slowest.
        let done = rayon::broadcast(|_| {
            let done = self.work(&states, full, &failed);
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

    /// What one core does.
    fn work(&self, states: &Mutex<&mut [TargetState]>, full: u64, failed: &AtomicBool) -> Result<(bool, Duration)> {
        let mut waited = Duration::ZERO;
        while !failed.load(Ordering::Relaxed) {
            self.loader.feed.go_on()?;
            if lock(states).iter().map(|state| state.bytes).sum::<u64>() >= full {
                return Ok((true, waited));
            }
            let clock = Instant::now();
            let message = lock(self.messages).next();
            waited += clock.elapsed();
            let Some(message) = message else { return Ok((false, waited)) };
            let outcome = self.loader.lay_out(message?, &self.pass.readings, self.works, self.encoders)?;
            self.tell(&outcome);
            outcome.put(&self.pass.readings, self.works, &mut lock(states));
        }
        Ok((false, waited))
    }

    fn tell(&self, outcome: &Outcome) {
        let Outcome::Laid { parts, .. } = outcome else { return };
        let rows = parts.iter().map(|part| part.counts.accepted + part.counts.filtered).max().unwrap_or_default();
        (self.loader.on_progress)(Progress::Read { bytes: 0, rows });
        let runs = parts.iter().flat_map(|part| part.chunk.windows.values().flatten());
        (self.loader.on_progress)(Progress::Laid { rows: runs.map(|run| run.len() as u64).sum() });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
