//! Rebuild planning: which inputs a load reads, and which windows it rebuilds.
//!
//! A changed input rebuilds the windows that its old or new content touches, from all live inputs of those windows.
//! These inputs are read again, for those windows only. A window that holds rows of a vanished input cannot be rebuilt:
//! it stays as it is, and the inputs that changed owe it ([`OwedWindow`]) until a later load can rebuild it.
//!
//! A window is named by its start, in microseconds since the epoch. Days are UTC days since the epoch.

use std::collections::BTreeSet;
use std::mem;

use tidetable_source::InputFile;
use tidetable_store::Result;
use tidetable_store::version::days_in;
use tidetable_store::version::{Input, OwedWindow, VersionEdit};

use crate::encode::PieceOutcome;
use crate::encoders::Encoders;
use crate::input::read::read_ahead;
use crate::pass::passes;
use crate::spec::{LoadTarget, Loader};
use crate::work::{HeldInput, ToRead, Work};

pub(crate) struct TablePlan {
    /// The edit as far as it is known before reading.
    pub(crate) edit: VersionEdit,
    pub(crate) work: Work,
}

/// The windows that the changed and resumed inputs of one target touch now.
struct Survey {
    /// For each input: the changed inputs of the target's plan, then the resumed ones.
    windows_by_input: Vec<BTreeSet<i64>>,
}

/// An input whose content is not that of its windows.
struct ChangedInput {
    to_read: ToRead,
    /// What the windows of its old and new content hold of it.
    windows: Vec<OwedWindow>,
}

/// An input whose rows the table gives up.
struct RemovedInput<'a> {
    record: &'a Input,
    /// What its windows hold of it.
    windows: Vec<OwedWindow>,
}

/// Gathers the edit and the inputs to read of one table, once the windows to rebuild are known.
struct TablePlanner<'a> {
    target: LoadTarget<'a>,
    rebuilt: BTreeSet<i64>,
    edit: VersionEdit,
    to_read: Vec<ToRead>,
}

/// Plans each table, in the order of the loader's targets.
///
/// # Errors
/// Those of reading and encoding the changed and resumed inputs.
pub(crate) fn plan(loader: &Loader<'_>) -> Result<Vec<TablePlan>> {
    let surveys = survey(loader)?;
    Ok(loader.targets.iter().zip(&surveys).map(|(target, survey)| plan_target(target, survey)).collect())
}

fn plan_target(target: &LoadTarget<'_>, survey: &Survey) -> TablePlan {
    let changed = changed_inputs(target, survey);
    let removed = removed_inputs(target);
    let rebuilt = rebuilt_windows(target, &changed, &removed);

    let mut planner = TablePlanner { target: *target, rebuilt, edit: first_edit(target), to_read: Vec::new() };
    planner.add_changed(changed);
    planner.remove(removed);
    planner.settle_names();
    planner.add_grown();
    planner.add_new();
    planner.add_unchanged();
    planner.finish()
}

/// What an edit takes from the input plan as it is.
fn first_edit(target: &LoadTarget<'_>) -> VersionEdit {
    let LoadTarget { base, plan, .. } = target;
    let mut edit = VersionEdit { base: base.number, ..VersionEdit::default() };
    if !tidetable_sstable::failpoint!(ForgetCopies) {
        edit.names.clone_from(&plan.names);
    }
    edit.removed.extend(plan.forgotten.iter().cloned());
    edit.removed.extend(plan.given_up.iter().map(|record| record.path.clone()));
    edit.inputs.extend(plan.restated.iter().cloned());
    edit
}

/// The inputs whose windows have to be rebuilt: changed ones, and resumed ones.
fn changed_inputs(target: &LoadTarget<'_>, survey: &Survey) -> Vec<ChangedInput> {
    let LoadTarget { base, plan, .. } = target;
    let (touched_by_changed, touched_by_resumed) = survey.windows_by_input.split_at(plan.changed.len());
    let mut inputs = Vec::new();

    for ((file, record), touched) in plan.changed.iter().zip(touched_by_changed) {
        let cut = plan.prefixes.get(&file.path).copied();
        let prefix = cut.map(|end| (end, record.hash));
        let to_read = ToRead { changed: true, prefix, cut, ..ToRead::new(file, record.input_seqno) };
        inputs.push(ChangedInput { to_read, windows: with_touched(held_windows(target, record), touched) });
    }

    for ((input_seqno, file), touched) in plan.resumed.iter().zip(touched_by_resumed) {
        let to_read = ToRead { changed: true, ..ToRead::new(file, *input_seqno) };
        let name = base.names.iter().find(|name| name.input_seqno == *input_seqno);
        let owed = name.map(|name| name.owed.clone()).unwrap_or_default();
        inputs.push(ChangedInput { to_read, windows: with_touched(owed, touched) });
    }
    inputs
}

/// The inputs that the table gives up.
fn removed_inputs<'a>(target: &LoadTarget<'a>) -> Vec<RemovedInput<'a>> {
    let mut removed = Vec::new();
    for record in &target.plan.given_up {
        let mut windows = held_windows(target, record);
        if tidetable_sstable::failpoint!(TakeOutOfOneWindow) {
            windows.truncate(1);
        }
        removed.push(RemovedInput { record, windows });
    }
    removed
}

/// What each window of a recorded input holds of it.
fn held_windows(target: &LoadTarget<'_>, record: &Input) -> Vec<OwedWindow> {
    let window = target.layout.spec().window;
    record.holds(|days, start| days_in(days, window, start))
}

/// The windows that hold rows of an input, and those that its present content touches.
fn with_touched(mut held: Vec<OwedWindow>, touched: &BTreeSet<i64>) -> Vec<OwedWindow> {
    let known: BTreeSet<i64> = held.iter().map(|window| window.start).collect();
    for start in touched.difference(&known) {
        held.push(OwedWindow { start: *start, rows: 0, days: Vec::new(), held: None, lost: false });
    }
    held
}

/// The windows to rebuild: those of changed and removed inputs and those that are owed, except the stuck ones, which hold
/// rows of vanished inputs.
fn rebuilt_windows(target: &LoadTarget<'_>, changed: &[ChangedInput], removed: &[RemovedInput<'_>]) -> BTreeSet<i64> {
    let mut rebuilt = target.plan.owing.clone();
    for input in changed {
        rebuilt.extend(input.windows.iter().map(|window| window.start));
    }
    for input in removed {
        rebuilt.extend(input.windows.iter().map(|window| window.start));
    }

    let stuck = target.plan.stuck();
    rebuilt.retain(|start| !stuck.contains(start));
    rebuilt
}

impl TablePlanner<'_> {
    fn add_changed(&mut self, changed: Vec<ChangedInput>) {
        for ChangedInput { to_read, windows } in changed {
            let left = self.without_rebuilt(windows);
            self.to_read.push(ToRead { left, ..to_read });
        }
    }

    /// Removed inputs are not read: their names owe the windows that still hold their rows.
    fn remove(&mut self, removed: Vec<RemovedInput<'_>>) {
        for RemovedInput { record, windows } in removed {
            let left = self.without_rebuilt(windows);
            if let Some(name) = self.edit.names.iter_mut().find(|name| name.input_seqno == record.input_seqno) {
                name.owed = left;
            }
        }
    }

    /// Removes rebuilt windows from what names without rows owe.
    fn settle_names(&mut self) {
        let LoadTarget { base, plan, .. } = self.target;
        let mut names = mem::take(&mut self.edit.names);

        // The edit has a newer record of these names, or will have one.
        let mut replaced: BTreeSet<u64> = names.iter().map(|name| name.input_seqno).collect();
        replaced.extend(plan.resumed.iter().map(|(input_seqno, _)| *input_seqno));
        for name in base.names.iter().filter(|name| !replaced.contains(&name.input_seqno)) {
            if name.owed.iter().any(|owed| self.rebuilt.contains(&owed.start)) {
                names.push(name.clone());
            }
        }

        for name in &mut names {
            name.owed = self.without_rebuilt(mem::take(&mut name.owed));
        }
        self.edit.names = names;
    }

    /// Grown inputs: their new rows are appended. Their old rows are read only for rebuilt windows.
    fn add_grown(&mut self) {
        let plan = self.target.plan;
        for grown in &plan.grown {
            let record = &grown.held;
            let held = HeldInput { input: record.clone(), end: grown.from, again: self.touches_rebuilt(record) };
            // At offset 0 all rows of the file are new.
            let held = Some(held).filter(|held| held.end > 0);
            let cut = held.as_ref().map(|held| held.end);
            let to_read = ToRead { expected: grown.hash, held, cut, ..ToRead::new(&grown.file, record.input_seqno) };
            self.to_read.push(to_read.owing(&record.owed, &self.rebuilt, &mut self.edit));
        }
    }

    fn add_new(&mut self) {
        let plan = self.target.plan;
        for (input_seqno, file) in &plan.new {
            self.to_read.push(ToRead::new(file, *input_seqno));
        }
    }

    /// Unchanged inputs are read again where they have rows in rebuilt windows.
    fn add_unchanged(&mut self) {
        let plan = self.target.plan;
        for (file, record) in &plan.unchanged {
            if !self.touches_rebuilt(record) {
                continue;
            }
            let to_read =
                ToRead { counts: false, expected: Some(record.hash), ..ToRead::new(file, record.input_seqno) };
            let mut to_read = to_read.owing(&record.owed, &self.rebuilt, &mut self.edit);
            if !to_read.settles.is_empty() {
                // Its new record follows when it has been read.
                self.edit.inputs.retain(|restated| restated.input_seqno != record.input_seqno);
                to_read.held = Some(HeldInput { input: Input::clone(record), end: u64::MAX, again: true });
            }
            self.to_read.push(to_read);
        }
    }

    fn finish(mut self) -> TablePlan {
        self.to_read.sort_by_key(|to_read| to_read.input_seqno);
        self.edit.rebuilt = self.rebuilt.into_iter().collect();

        let tombstones = self.target.base.tombstones.clone();
        let work = Work { rebuilt: self.edit.rebuilt.clone(), tombstones, inputs: self.to_read };
        TablePlan { edit: self.edit, work }
    }

    /// Whether a recorded input has or owes rows in a rebuilt window.
    fn touches_rebuilt(&self, record: &Input) -> bool {
        record.touches().any(|start| self.rebuilt.contains(&start))
    }

    /// Those of `windows` that stay as they are. The days that the others hold change: they are added to the edit.
    fn without_rebuilt(&mut self, windows: Vec<OwedWindow>) -> Vec<OwedWindow> {
        let mut left = Vec::new();
        for window in windows {
            if self.rebuilt.contains(&window.start) {
                self.edit.days.entry(window.start).or_default().extend(window.days);
            } else {
                left.push(window);
            }
        }
        left
    }
}

/// Reads the changed and resumed inputs of each target's plan, to find the windows that each touches.
fn survey(loader: &Loader<'_>) -> Result<Vec<Survey>> {
    let worker = loader.worker();
    let works: Vec<Work> = loader.targets.iter().map(survey_work).collect();
    let encoders = loader.targets.iter().zip(&works).map(|(target, work)| Encoders::new(target.layout, work));
    let encoders: Vec<Encoders<'_>> = encoders.collect();
    let mut surveys: Vec<Survey> = Vec::new();
    for work in &works {
        surveys.push(Survey { windows_by_input: vec![BTreeSet::new(); work.inputs.len()] });
    }

    for pass in passes(&works) {
        read_ahead(loader.feed, &pass.files(&works), 2, &|_| {}, |messages| {
            for message in messages {
                let outcome = worker.encode_piece(message?, &pass.readings, &works, &encoders)?;
                let PieceOutcome::Encoded { input, parts, .. } = outcome else { continue };
                for (used, part) in pass.readings[input].uses.iter().zip(parts) {
                    let touched = &mut surveys[used.target].windows_by_input[used.input];
                    touched.extend(part.chunk.windows.into_keys());
                }
            }
            Ok(())
        })?;
    }
    Ok(surveys)
}

/// The inputs that a survey reads for a target: see [`Survey::windows_by_input`].
fn survey_work(target: &LoadTarget<'_>) -> Work {
    let mut inputs = Vec::new();
    for (file, record) in &target.plan.changed {
        inputs.push(survey_input(file, record.input_seqno));
    }
    for (input_seqno, file) in &target.plan.resumed {
        inputs.push(survey_input(file, *input_seqno));
    }
    Work { rebuilt: Vec::new(), tombstones: target.base.tombstones.clone(), inputs }
}

/// An input of which all rows are wanted and none is counted.
fn survey_input(file: &InputFile, input_seqno: u64) -> ToRead {
    ToRead { counts: false, changed: true, ..ToRead::new(file, input_seqno) }
}
