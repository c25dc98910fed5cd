//! Drives a load: plans its units, has them run, and makes an edit of their results.

use tidetable_store::Result;
use tidetable_store::version::VersionEdit;

use crate::input::plan::{Grown, InputPlan};
use crate::pass::passes;
use crate::rebuild;
use crate::spec::{LoadTarget, Loaded, Loader, Progress};
use crate::stats::{EmptyRow, LoadStats, ReplacedCells};
use crate::unit::{Answers, LoadUnit, RunLoadUnits, bytes, split};
use crate::work::{ToRead, Work};

impl Loader<'_> {
    /// Loads the new and changed inputs of each target's plan. Returns an edit for each target.
    ///
    /// A window that must be rebuilt stays as it is if one of its inputs is gone; see [`Loaded::owed`].
    ///
    /// Rows of a grown input are appended to its windows, unless they would hide cells of later inputs: then the load
    /// starts over and rebuilds those windows.
    ///
    /// # Errors
    /// Those of reading, encoding and writing. The SSTs written so far are removed.
    pub fn load(&self) -> Result<Vec<Loaded>> {
        self.load_by(&self.worker())
    }

    /// As [`Self::load`]; `runner` runs the units.
    ///
    /// # Errors
    /// As [`Self::load`], and [`StoreError::Unanswered`](tidetable_store::StoreError::Unanswered) if the runner left a unit out.
    pub fn load_by(&self, runner: &dyn RunLoadUnits) -> Result<Vec<Loaded>> {
        let loaded = self.load_once(runner, &[])?;
        let discard =
            || self.targets.iter().zip(&loaded).for_each(|(target, loaded)| target.table.discard(&loaded.edit));
        let overtaken = self.targets.iter().zip(&loaded).map(|(target, loaded)| target.overtaken(&loaded.edit));
        let overtaken: Vec<Vec<String>> = overtaken.collect::<Result<_>>().inspect_err(|_| discard())?;
        if overtaken.iter().all(Vec::is_empty) {
            return self.with_replaced(loaded);
        }
        discard();
        let plans = self.targets.iter().zip(&overtaken).map(|(target, paths)| {
            let mut plan = target.plan.clone();
            plan.rebuild_grown(paths);
            plan
        });
        let plans: Vec<InputPlan> = plans.collect();
        let targets = self.targets.iter().zip(&plans).map(|(target, plan)| LoadTarget { plan, ..*target }).collect();
        let again = Loader { targets, ..*self };
        let reported: Vec<&[Grown]> = self.targets.iter().map(|target| target.plan.grown.as_slice()).collect();
        let loaded = again.with_replaced(again.load_once(runner, &reported)?)?;
        Ok(loaded.into_iter().zip(overtaken).map(|(loaded, overtaken)| Loaded { overtaken, ..loaded }).collect())
    }

    /// Counts the cells of earlier loads that `loaded` replaces.
    fn with_replaced(&self, mut loaded: Vec<Loaded>) -> Result<Vec<Loaded>> {
        let replaced: Result<Vec<Option<ReplacedCells>>> =
            self.targets.iter().zip(&loaded).map(|(target, loaded)| target.replaced(&loaded.edit)).collect();
        let replaced = replaced.inspect_err(|_| {
            self.targets.iter().zip(&loaded).for_each(|(target, loaded)| target.table.discard(&loaded.edit));
        })?;
        for (loaded, replaced) in loaded.iter_mut().zip(replaced) {
            loaded.stats.overwritten += replaced.as_ref().map_or(0, |replaced| replaced.cells);
            loaded.stats.replaced = replaced;
        }
        Ok(loaded)
    }

    /// As [`Self::load_by`], for inputs that are not overtaken. On a second try, `reported` are the inputs of each target
    /// that had grown at the first: all rejected rows except those of their old content were reported then.
    fn load_once(&self, runner: &dyn RunLoadUnits, reported: &[&[Grown]]) -> Result<Vec<Loaded>> {
        let planned = rebuild::plan(self)?;
        let (edits, mut works): (Vec<VersionEdit>, Vec<Work>) = planned.into_iter().unzip();
        for (work, grown) in works.iter_mut().zip(reported) {
            work.report_only_held(grown);
        }
        let passes = passes(&works);
        (self.on_progress)(Progress::ToRead { bytes: bytes(&passes) });
        let units = split(works, passes, &|total| runner.unit_bytes(total));
        let tables = self.targets.iter().map(|target| target.table).collect();
        let mut answers = Answers { tables, done: units.iter().map(|_| None).collect() };
        let done = runner.run(&units, &mut |at, done| answers.take(at, done));
        let edits = edits.into_iter().enumerate();
        let loaded: Result<Vec<Loaded>> =
            done.and_then(|()| edits.map(|(target, edit)| settle(edit, &answers, &units, target)).collect());
        let mut loaded = loaded.inspect_err(|_| answers.discard_all())?;
        for (target, loaded) in self.targets.iter().zip(&mut loaded) {
            loaded.owed = target.plan.owed_after(target.base, &loaded.edit);
        }
        Ok(loaded)
    }
}

/// Completes the edit of a target by what its units wrote and read, after checking the inputs.
fn settle(mut edit: VersionEdit, answers: &Answers<'_>, units: &[LoadUnit], target: usize) -> Result<Loaded> {
    let mut stats = LoadStats::default();
    let mut rows_held = 0;
    let mut first_empty: Option<&(u64, EmptyRow)> = None;
    for answer in answers.of_target(units, target) {
        let (work, done) = answer?;
        for (to_read, read) in work.inputs.iter().zip(&done.read) {
            to_read.check(read)?;
        }
    }
    for answer in answers.of_target(units, target) {
        let (work, done) = answer?;
        let has_record = |to_read: &ToRead| to_read.counts || !to_read.settles.is_empty();
        for (to_read, read) in work.inputs.iter().zip(&done.read).filter(|(to_read, _)| has_record(to_read)) {
            edit.inputs.push(to_read.record(read, &edit.rebuilt)?);
            stats.rows_settled += to_read.rows_settled();
            rows_held += to_read.rows_held(read);
            for (window, days) in read.days.iter().chain(&read.settled) {
                edit.days.entry(*window).or_default().extend(days);
            }
        }
        for (window, ssts) in &done.ssts {
            edit.ssts.entry(*window).or_default().extend(ssts.iter().cloned());
        }
        stats.add(&done.stats);
        let place = |(input_seqno, row): &&(u64, EmptyRow)| (*input_seqno, row.line);
        first_empty = first_empty.into_iter().chain(&done.first_empty).min_by_key(place);
    }
    // They were counted by the run that loaded them.
    stats.rows_read -= rows_held;
    stats.rows_owed -= rows_held;
    stats.first_empty = first_empty.map(|(_, row)| row.clone());
    Ok(Loaded { edit, stats, overtaken: Vec::new(), owed: Vec::new() })
}
