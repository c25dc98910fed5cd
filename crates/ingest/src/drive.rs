//! Drives a load: plans its units, has them run, and makes an edit of their results.

use std::collections::BTreeMap;

use tidetable_store::Result;
use tidetable_store::version::{Sst, VersionEdit};

use crate::input::plan::InputPlan;
use crate::pass::passes;
use crate::rebuild;
use crate::spec::{LoadTarget, Loaded, Loader, Progress};
use crate::stats::{EmptyRow, LoadStats};
use crate::unit::{Answers, LoadUnit, RunLoadUnits, bytes, split};
use crate::work::Work;

/// What a load is to do, before any of it is done.
struct LoadPlan<'a> {
    targets: Vec<PlannedTarget<'a>>,
    /// The parts into which the load is split, each with work for all targets.
    units: Vec<LoadUnit>,
}

/// A target with its edit as far as that is known before reading.
struct PlannedTarget<'a> {
    target: LoadTarget<'a>,
    edit: VersionEdit,
}

/// A target with what was loaded into it.
struct LoadedTarget<'a> {
    target: LoadTarget<'a>,
    loaded: Loaded,
    /// The SSTs of each unit by window, if there are several units.
    units: Vec<BTreeMap<i64, Vec<Sst>>>,
}

/// A row without cells, with the sequence number of its input.
#[derive(Clone, Copy)]
struct PlacedEmptyRow<'a> {
    input_seqno: u64,
    row: &'a EmptyRow,
}

impl<'a> Loader<'a> {
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
        let mut targets = self.load_once(runner, None)?;
        for_each_or_discard(&mut targets, LoadedTarget::find_overtaken)?;
        if let Err(error) = self.keep_overtaken_alone(runner, &mut targets) {
            discard(&targets);
            return Err(error);
        }

        if targets.iter().any(|target| !target.loaded.overtaken.is_empty()) {
            return self.reload_rebuilding(runner, targets);
        }
        with_replaced(targets)
    }

    /// Keeps those overtaken inputs whose own rows would hide cells of later inputs. An SST of the first try holds the rows
    /// of all inputs of its window, also those of new inputs, which replace cells rightly. So rows of overtaken inputs are
    /// loaded once more without the others: first together, then each alone.
    fn keep_overtaken_alone(&self, runner: &dyn RunLoadUnits, targets: &mut [LoadedTarget<'_>]) -> Result<()> {
        for (index, LoadedTarget { target, loaded, .. }) in targets.iter_mut().enumerate() {
            let suspects = std::mem::take(&mut loaded.overtaken);
            if suspects.is_empty() || target.plan.loads_only(&suspects) {
                loaded.overtaken = suspects;
                continue;
            }

            loaded.overtaken = self.overtaken_among(runner, index, &suspects, &loaded.edit)?;
            if loaded.overtaken.is_empty() || suspects.len() == 1 {
                continue;
            }
            let mut alone = Vec::new();
            for suspect in suspects.chunks(1) {
                alone.extend(self.overtaken_among(runner, index, suspect, &loaded.edit)?);
            }
            // Together they may hide what none hides alone.
            if !alone.is_empty() {
                loaded.overtaken = alone;
            }
        }
        Ok(())
    }

    /// Those of the grown inputs `paths` of the target at `index` that would hide cells of later inputs if the load brought
    /// nothing else. `edit` is that of the whole load. What is written for this is removed.
    fn overtaken_among(
        &self,
        runner: &dyn RunLoadUnits,
        index: usize,
        paths: &[String],
        edit: &VersionEdit,
    ) -> Result<Vec<String>> {
        // Units name tables by their place, so that all targets stay.
        let mut plans = vec![InputPlan::default(); self.targets.len()];
        plans[index] = self.targets[index].plan.only_grown(paths);
        let targets = self.targets.iter().zip(&plans).map(|(target, plan)| LoadTarget { plan, ..*target }).collect();
        let only_these = Loader { targets, ..*self };

        let mut tried = only_these.load_once(runner, Some(&only_these))?;
        let LoadedTarget { target, loaded, .. } = &mut tried[index];
        loaded.edit.rebuilt.clone_from(&edit.rebuilt);
        let overtaken = target.overtaken(&loaded.edit);
        discard(&tried);
        overtaken
    }

    /// Discards a first try, and loads once more with the overtaken inputs that it found as changed ones, so that their
    /// windows are rebuilt.
    fn reload_rebuilding(&self, runner: &dyn RunLoadUnits, first_try: Vec<LoadedTarget<'_>>) -> Result<Vec<Loaded>> {
        discard(&first_try);

        let mut plans = Vec::new();
        for first in &first_try {
            let mut plan = first.target.plan.clone();
            plan.rebuild_grown(&first.loaded.overtaken);
            plans.push(plan);
        }
        let targets = self.targets.iter().zip(&plans).map(|(target, plan)| LoadTarget { plan, ..*target }).collect();
        let rebuilding = Loader { targets, ..*self };

        let mut rebuilt = rebuilding.load_once(runner, Some(self))?;
        for (target, first) in rebuilt.iter_mut().zip(first_try) {
            target.loaded.overtaken = first.loaded.overtaken;
        }
        with_replaced(rebuilt)
    }

    /// Loads by the plans of the targets, without looking for overtaken inputs. On a second try, `first_try` is the
    /// loader of the first.
    ///
    /// # Errors
    /// As [`Self::load_by`].
    fn load_once(&self, runner: &dyn RunLoadUnits, first_try: Option<&Loader<'_>>) -> Result<Vec<LoadedTarget<'a>>> {
        let plan = self.plan(runner, first_try)?;
        let tables = self.targets.iter().map(|target| target.table).collect();
        let mut answers = Answers { tables, done: plan.units.iter().map(|_| None).collect() };

        let loaded = run_and_settle(plan, runner, &mut answers);
        if loaded.is_err() {
            answers.discard_all();
        }
        loaded
    }

    /// Plans the edits and the units of a load, and reports the bytes to read.
    fn plan(&self, runner: &dyn RunLoadUnits, first_try: Option<&Loader<'_>>) -> Result<LoadPlan<'a>> {
        let mut targets = Vec::new();
        let mut works: Vec<Work> = Vec::new();
        for (target, planned) in self.targets.iter().zip(rebuild::plan(self)?) {
            targets.push(PlannedTarget { target: *target, edit: planned.edit });
            works.push(planned.work);
        }

        if let Some(first_try) = first_try {
            // The first try reported all rejected rows but those that the grown inputs had before.
            for (work, target) in works.iter_mut().zip(&first_try.targets) {
                work.report_only_held(&target.plan.grown);
            }
        }

        let passes = passes(&works);
        (self.on_progress)(Progress::ToRead { bytes: bytes(&passes) });
        let units = split(works, passes, &|total| runner.unit_bytes(total));
        Ok(LoadPlan { targets, units })
    }
}

impl LoadedTarget<'_> {
    /// Finds the grown inputs whose new cells would hide cells of later inputs.
    fn find_overtaken(&mut self) -> Result<()> {
        self.loaded.overtaken = self.target.overtaken(&self.loaded.edit)?;
        Ok(())
    }

    /// Counts the cells that units replace in each other, and those of earlier loads that this one replaces.
    fn count_replaced(&mut self) -> Result<()> {
        let between = self.target.replaced_between(&self.units)?;
        self.loaded.stats.overwritten += between.cells;
        self.loaded.stats.overwritten_changed += between.changed;
        let changed_in_row = &mut self.loaded.stats.changed_in_row;
        *changed_in_row = changed_in_row.take().or(between.changed_in_row);
        self.loaded.stats.replaced = self.target.replaced(&self.loaded.edit)?;
        Ok(())
    }
}

impl PlacedEmptyRow<'_> {
    /// Whether it comes before `other` in the order in which inputs were first seen.
    fn is_before(&self, other: &Self) -> bool {
        (self.input_seqno, self.row.line) < (other.input_seqno, other.row.line)
    }
}

/// The results of a load that is complete but for the count of replaced cells.
fn with_replaced(mut targets: Vec<LoadedTarget<'_>>) -> Result<Vec<Loaded>> {
    for_each_or_discard(&mut targets, LoadedTarget::count_replaced)?;
    Ok(targets.into_iter().map(|target| target.loaded).collect())
}

/// Takes a step for each target. If it fails for one, the SSTs of all are removed.
fn for_each_or_discard<'a>(
    targets: &mut [LoadedTarget<'a>],
    step: fn(&mut LoadedTarget<'a>) -> Result<()>,
) -> Result<()> {
    let done = targets.iter_mut().try_for_each(step);
    if done.is_err() {
        discard(targets);
    }
    done
}

/// Removes the SSTs of edits that will not be committed.
fn discard(targets: &[LoadedTarget<'_>]) {
    for LoadedTarget { target, loaded, .. } in targets {
        target.table.discard(&loaded.edit);
    }
}

/// Runs the units of a plan, and makes the edit of each target of their results. After an error the SSTs of `answers`
/// are the caller's to remove.
fn run_and_settle<'a>(
    plan: LoadPlan<'a>,
    runner: &dyn RunLoadUnits,
    answers: &mut Answers<'_>,
) -> Result<Vec<LoadedTarget<'a>>> {
    let LoadPlan { targets, units } = plan;
    runner.run(&units, &mut |unit, done| answers.take(unit, done))?;

    let mut settled = Vec::new();
    for (index, PlannedTarget { target, edit }) in targets.into_iter().enumerate() {
        check_inputs(answers, &units, index)?;
        let mut loaded = collect(edit, answers, &units, index)?;
        loaded.owed = target.plan.owed_after(target.base, &loaded.edit);
        let mut by_unit = Vec::new();
        for answer in answers.of_target(&units, index).filter(|_| units.len() > 1) {
            by_unit.push(answer?.1.ssts.clone());
        }
        settled.push(LoadedTarget { target, loaded, units: by_unit });
    }
    Ok(settled)
}

/// Checks that the inputs of the target at index `target` had their expected content.
fn check_inputs(answers: &Answers<'_>, units: &[LoadUnit], target: usize) -> Result<()> {
    for answer in answers.of_target(units, target) {
        let (work, done) = answer?;
        for (to_read, read) in work.inputs.iter().zip(&done.read) {
            to_read.check(read)?;
        }
    }
    Ok(())
}

/// Completes the edit of the target at index `target` by what its units wrote and read, and adds up their counts.
fn collect(mut edit: VersionEdit, answers: &Answers<'_>, units: &[LoadUnit], target: usize) -> Result<Loaded> {
    let mut stats = LoadStats::default();
    // Rows read of windows that stay as they are and hold these rows already.
    let mut rows_held = 0;
    let mut first_empty: Option<PlacedEmptyRow<'_>> = None;

    for answer in answers.of_target(units, target) {
        let (work, done) = answer?;

        for (to_read, read) in work.inputs.iter().zip(&done.read) {
            // `counts`: the input is new or has changed. `settles`: windows that it owed are rebuilt now. Any other
            // input is only read again for the rebuilt windows, and its record stays.
            if !to_read.counts && to_read.settles.is_empty() {
                continue;
            }
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
        if let Some((input_seqno, row)) = &done.first_empty {
            let empty = PlacedEmptyRow { input_seqno: *input_seqno, row };
            if first_empty.is_none_or(|first| empty.is_before(&first)) {
                first_empty = Some(empty);
            }
        }
    }

    // The load that built those windows counted them.
    stats.rows_read -= rows_held;
    stats.rows_owed -= rows_held;
    stats.first_empty = first_empty.map(|empty| empty.row.clone());
    Ok(Loaded { edit, stats, overtaken: Vec::new(), owed: Vec::new() })
}
