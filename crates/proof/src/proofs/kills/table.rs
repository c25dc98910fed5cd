//! The table between the processes, and its check.

use std::sync::Arc;

use tidetable_blobs::Blobs;

use super::said::Said;
use super::script::{Scripted, kind_of};
use crate::cells::same;
use crate::finding::{Finding, Result};
use crate::model::Model;
use crate::proofs::kept::{Shown, tidy, whole};
use crate::step::Step;
use crate::world::{Done, World, offer, tell};

/// A table whose processes are killed, with its model.
pub(in crate::proofs) struct Table {
    blobs: Arc<dyn Blobs>,
    seed: u64,
    model: Model,
    /// Number of steps done, by all processes together.
    pub steps: u64,
    /// Number of the newest version; 0 before the first commit.
    pub version: u64,
    shown: Shown,
}

impl Table {
    /// An empty table in `blobs`, for the script of `seed`.
    ///
    /// # Errors
    /// If the rule of its cells does not parse.
    pub fn new(blobs: Arc<dyn Blobs>, seed: u64) -> Result<Self> {
        let model = World::model(kind_of(seed))?;
        Ok(Self { blobs, seed, model, steps: 0, version: 0, shown: Shown::default() })
    }

    /// Checks the table after a process that reported the version and logical time after each step; one more step may
    /// have committed.
    ///
    /// # Errors
    /// What does not match.
    pub fn check(&mut self, run: u64, done: &[Said]) -> Result<()> {
        let world = World::new(Arc::clone(&self.blobs), kind_of(self.seed), u64::MAX - run)?;
        let found = world.table().latest_number()?;
        let mut script = Scripted::new(self.seed);
        for _ in 0..self.steps {
            script.offer();
        }

        let said = done.last().map_or(self.version, |said| said.version);
        // Acknowledged commits must exist, and at most one more.
        if found != said && found != said + 1 {
            return Err(Finding::new(format!("version {said} was committed, version {found} is there")));
        }
        let unsaid = match found > said {
            true => Some(Said { version: found, now: world.table().version(found)?.now }),
            false => None,
        };

        let mut kept = u64::MAX;
        for Said { version, now } in done.iter().copied().chain(unsaid) {
            let step = script.offer();
            offer(&mut self.model, &step);
            if let Step::Vacuum(versions) = step {
                kept = kept.min(versions);
            }
            let outcome = if version > self.version { Done::Committed(version) } else { Done::Nothing };
            tell(&mut self.model, &step, outcome, now);
            self.shown.put(version, self.model.cells());
            self.version = version;
            self.steps += 1;
        }

        same(&format!("version {found} after {} steps", self.steps), &world.cells()?, self.model.cells())?;
        if found == 0 {
            return Ok(());
        }
        // The interrupted step may be a vacuum.
        if let Step::Vacuum(versions) = script.offer() {
            kept = kept.min(versions);
        }
        self.shown.vacuumed(world.table(), kept)?;
        whole(world.table(), true)?;
        let numbers = self.shown.numbers();
        numbers.iter().rev().take(4).try_for_each(|number| self.shown.check(world.table(), *number))
    }

    /// A vacuum removes what killed processes left.
    ///
    /// # Errors
    /// What is left, or does not match.
    pub fn finish(&self) -> Result<()> {
        let world = World::new(Arc::clone(&self.blobs), kind_of(self.seed), u64::MAX / 2)?;
        world.vacuum(2, Some(i64::MAX))?;
        if self.version > 0 {
            tidy(world.table())?;
            whole(world.table(), true)?;
            same("after a vacuum", &world.cells()?, self.model.cells())?;
        }
        Ok(())
    }
}
