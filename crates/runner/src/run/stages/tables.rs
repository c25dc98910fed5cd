//! The stages that bring tables up to date: load, derive, compact.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::error::Error;
use std::time::Instant;

use tidetable_ingest::RejectedRow;
use tidetable_job::{Stage, Table, several, shell_word};
use tidetable_record::{
    Added, CompactionRecord, InputRecord, InputState, LoadRecord, RunRecord, rejected_rows, rejects_path,
};
use tidetable_store::StoreError;
use tidetable_upkeep::compaction::{CompactionExtent, CompactionPlan};

use crate::compact::{compact, compact_by};
use crate::fault::error::RunError;
use crate::observe::{Event, Unit};
use crate::options::run_options::RunOptions;
use crate::options::without::Without;
use crate::plan::{HeldBack, Plan, overtaken_note, owed_notes, ranges, rows_of, up_to};
use crate::run::context::{Run, took};
use crate::run::damage::{damage_in, explained};
use crate::run::publish::ComparedExports;
use crate::run::reject_log::RejectLog;
use crate::run::stages::allowed::check_rejected;
use crate::run::stages::derived::{DerivedQuery, check_query_rejected};
use crate::run::stages::load::{LoadStage, Pending, PlannedSource, idle_notes, pulls};
use crate::run::stages::pulled;
use crate::run::stages::reading_notes::reading_notes;
use crate::run::stages::unfinished::LeftOut;
use crate::run::stages::unread::{
    expired_notes, folder_notes, former_inputs, future_note, hidden_versions_notes, lost_rows_notes,
    replaced_before_notes, replaced_notes, rowless_notes, split_groups_notes, unmatched_notes, unread_notes,
    withdrawn_note,
};
use crate::run::stages::value_notes::{epoch_notes, new_key_notes};
use crate::units::compact::CarriedMerges;

/// What the attempts of a load share.
#[derive(Default)]
struct LoadAttempt<'a> {
    /// The plan that was told, of the first attempt.
    told: Option<Plan>,
    /// The exports compared for it.
    compared: ComparedExports<'a>,
    /// Whether lost versions were looked for: no attempt of this run loses one.
    is_checked: bool,
    left: LeftOut,
}

impl Run<'_> {
    /// Loads the tables of sources and commits them. Returns the plan of the run, the exports compared
    /// for it, and the first rejected rows.
    ///
    /// A file whose end is missing does not keep the others from being loaded, nor does an incomplete dump the other sources.
    pub(crate) fn load(
        &self,
        record: &mut RunRecord,
    ) -> Result<(Plan, ComparedExports<'_>, Vec<RejectedRow>), RunError> {
        let names: Vec<&str> = self.job.sources.iter().map(|source| source.spec.name.as_str()).collect();
        let mut attempt = LoadAttempt::default();
        let (plan, rejected) = self.attempts(Stage::Load, &names.join(", "), record, |record| {
            loop {
                let done = self.load_once(&mut attempt, record);
                match &done {
                    Err(error) if self.leaves_out(error, &mut attempt.left, record) => {}
                    _ => return done,
                }
            }
        })?;
        Ok((plan, attempt.compared, rejected))
    }

    /// One attempt to load the tables of sources and to commit them. Returns the plan of the run and the first rejected rows.
    fn load_once<'b>(
        &'b self,
        attempt: &mut LoadAttempt<'b>,
        record: &mut RunRecord,
    ) -> Result<(Plan, Vec<RejectedRow>), RunError> {
        // Loads that an earlier attempt committed are kept.
        record.loads.retain(|load| load.version != load.before);
        if !attempt.is_checked {
            self.check_versions()?;
            attempt.is_checked = true;
        }

        let clock = Instant::now();
        let earlier = self.rejected_earlier(record)?;
        let rejects = RejectLog::new(self.store.blobs().as_ref(), &self.options.run, None).after(earlier);
        let on_reject = |row: &RejectedRow| rejects.keep(row);
        let mut stage = self.stage(&on_reject);
        stage.left.clone_from(&attempt.left);
        let sources = stage.plan()?;
        let plan = self.told_plan(attempt, &sources)?;
        took(record, "plan", clock);

        let clock = Instant::now();
        let loaded = self.load_sources(&stage, sources, record);
        took(record, "load", clock);
        // Rejected rows are durable before anything is committed without them.
        let kept = rejects.finish();
        if let Ok(Some(kept)) = &kept {
            record.rejected = Some(kept.path.clone());
            record.rows_rejected = kept.rows;
        }
        let pending = loaded?;
        let committed = record.loads.clone();
        record.loads.extend(pending.iter().map(Pending::uncommitted));

        let first = kept.as_ref().ok().and_then(Option::as_ref).map_or(&[][..], |kept| kept.of_files.as_slice());
        let allowed = pending.iter().try_for_each(|load| check_rejected(self.job, &self.options.run, load, first));
        let allowed = allowed.and_then(|()| self.options.stop.check());
        let rejected = match (allowed, kept) {
            (Ok(()), Ok(kept)) => kept.map(|kept| kept.first).unwrap_or_default(),
            (allowed, kept) => {
                pending.iter().for_each(Pending::discard);
                allowed?;
                return Err(kept.err().map_or(RunError::RejectLog, RunError::from));
            }
        };

        self.note_all(record, replaced_notes(self.job, &pending));
        self.note_all(record, replaced_before_notes(&pending));
        self.note_all(record, hidden_versions_notes(&pending));
        self.note_all(record, expired_notes(self.job, &pending, self.options.now));

        let clock = Instant::now();
        record.loads = committed;
        let done = self.commit(pending, &mut record.loads);
        took(record, "commit", clock);
        if record.loads.iter().any(|load| load.version != load.before) {
            self.keep_committed(record);
        }
        done.map(|()| (plan, rejected))
    }

    /// The plan of the run: made and told by the first attempt.
    fn told_plan<'b>(&'b self, attempt: &mut LoadAttempt<'b>, sources: &[PlannedSource<'_>]) -> Result<Plan, RunError> {
        if let Some(plan) = &attempt.told {
            return Ok(plan.clone());
        }
        let (plan, compared) = self.plan(sources)?;
        self.observer.event(Event::Plan(plan.clone()));
        attempt.compared = compared;
        Ok(attempt.told.insert(plan).clone())
    }

    /// Saves the record with the loads that are committed by now, for the lineage of a run that is killed before its end.
    fn keep_committed(&self, record: &RunRecord) {
        // If it cannot be stored, nor can the record at the end, and the run fails by that.
        let _ = record.save(self.store.blobs().as_ref());
    }

    /// Commits loads one after the other, up to the first that fails.
    fn commit(&self, pending: Vec<Pending>, loads: &mut Vec<LoadRecord>) -> Result<(), RunError> {
        let known: HashSet<String> = loads.iter().map(|load| load.table.clone()).collect();
        let mut pending = pending.into_iter();
        while let Some(load) = pending.next() {
            match load.commit(self.ids, self.options.now) {
                // Its load of an earlier attempt is already recorded.
                Ok(done) if done.version == done.before && known.contains(&done.table) => {}
                Ok(done) => loads.push(done),
                Err(error) => {
                    pending.for_each(|load| load.discard());
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    /// The rows that earlier attempts rejected, if something was committed without them. Otherwise they are all read
    /// again.
    fn rejected_earlier(&self, record: &mut RunRecord) -> Result<Vec<RejectedRow>, StoreError> {
        let blobs = self.store.blobs().as_ref();
        let rows = if record.loads.is_empty() { Vec::new() } else { rejected_rows(blobs, record)? };
        record.rows_rejected = 0;
        match record.rejected.take() {
            Some(path) if rows.is_empty() => blobs.delete(&path)?,
            _ => {}
        }
        Ok(rows)
    }

    /// Loads the tables of sources, without committing.
    fn load_sources(
        &self,
        stage: &LoadStage<'_>,
        sources: Vec<PlannedSource<'_>>,
        record: &mut RunRecord,
    ) -> Result<Vec<Pending>, RunError> {
        let notes = [unmatched_notes(&sources), unread_notes(&sources), folder_notes(&sources)];
        self.note_all(record, notes.concat());

        let before = former_inputs(&sources);
        let idle = idle_notes(&self.options.without, &sources);
        pulled::save(pulled::origins(self.job, &pulls(&sources), self.store)?, self.store)?;

        let pending = stage.load(sources);
        // Also if the load failed, as this may be the cause.
        let loads = pending.iter().flatten().map(|load| &load.record);
        let first = loads.filter(|load| load.before == 0).map(|load| load.source.as_str()).collect();
        self.note_all(record, stage.others.notes(self.seen, &first));
        let mut pending = pending?;
        for load in &mut pending {
            load.record.left_out = stage.others.left_out(&load.record.source);
        }

        self.note_all(record, rowless_notes(&pending));
        self.note_all(record, lost_rows_notes(&before, &pending));
        self.note_all(record, reading_notes(&pending));
        self.note_all(record, epoch_notes(&pending));
        self.note_all(record, new_key_notes(&mut pending, self.seen));
        self.note_all(record, future_note(&pending, (self.options.clock)()));
        self.note_all(record, idle);
        self.note_loads(record, &pending);
        Ok(pending)
    }

    /// The gone inputs that were parts of exports of this store.
    fn withdrawn<'r>(&self, loads: &[&'r LoadRecord]) -> BTreeSet<&'r str> {
        let exports = format!("{}/exports/", self.root.trim_end_matches('/'));
        let inputs = loads.iter().flat_map(|load| &load.inputs);
        let gone = inputs.filter(|input| input.state == InputState::Gone).map(|input| input.path.as_str());
        gone.filter(|path| self.project.resolve(path).starts_with(&exports)).collect()
    }

    fn note_all(&self, record: &mut RunRecord, notes: impl IntoIterator<Item = String>) {
        for note in notes {
            self.note(record, note);
        }
    }

    /// Notes what became of inputs, rows and owed windows.
    fn note_loads(&self, record: &mut RunRecord, pending: &[Pending]) {
        let loads: Vec<&LoadRecord> = pending.iter().map(|load| &load.record).collect();
        let missing = self.rows_of_missing(&loads);
        let withdrawn = self.withdrawn(&loads);
        self.note_all(record, withdrawn_note(&withdrawn));
        self.note_all(record, input_notes(&loads, self.options, &missing, &withdrawn));
        // A rebuild reads what was deleted, too.
        for load in loads.iter().filter(|load| load.stats.rows_hidden > 0 && !self.options.rebuilds(&load.table)) {
            self.note(record, hidden_note(load));
        }

        for (LoadRecord { table, owed, to_remove, stats, .. }, pending) in loads.into_iter().zip(pending) {
            let rows = to_remove.iter().filter_map(|path| missing.get(path)).sum();
            self.note_all(record, owed_notes(table, owed, to_remove, rows));
            self.note_all(record, overtaken_note(table, owed, &pending.overtaken));
            match stats.rows_settled {
                0 => {}
                1 => self.note(record, format!("{table}: 1 row that was owed is read")),
                rows => self.note(record, format!("{table}: {rows} rows that were owed are read")),
            }
        }
    }

    /// Brings derived tables up to date, in the order of the job file. Each is
    /// committed before the next, which may read it.
    pub(crate) fn derive(&self, record: &mut RunRecord) -> Result<(), RunError> {
        let derived = self.job.tables.iter().filter_map(|table| Some((table, DerivedQuery::of(table)?)));
        let mut derived = derived.peekable();
        if derived.peek().is_none() {
            return Ok(());
        }

        let clock = Instant::now();
        for (table, query) in derived {
            self.derive_one(table, query, record)?;
        }
        took(record, "derive", clock);
        Ok(())
    }

    /// Brings a derived table up to date. Windows of damaged files are left out, one after the other as they are found.
    fn derive_one(&self, table: &Table, query: DerivedQuery<'_>, record: &mut RunRecord) -> Result<(), RunError> {
        let name = table.spec.name.as_str();
        let held_back = self.held_back(table, &query.shape.reads)?;
        self.note_all(record, held_back.map(|held_back| format!("warning: {}", held_back.note)));

        let mut unread = BTreeSet::new();
        loop {
            let done = self
                .attempts(Stage::Derive, name, record, |record| self.derive_readable(table, query, &unread, record));
            let error = match done {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let Some(window) = unread_window(&error).filter(|window| !unread.contains(window)) else {
                return Err(error);
            };
            self.leave_undone(record, format!("derive {name} from {window}"), error);
            unread.insert(window);
        }
    }

    /// What keeps the derived `table`, which `reads` others, from being brought up to date.
    pub(crate) fn held_back(&self, table: &Table, reads: &[String]) -> Result<Option<HeldBack>, RunError> {
        let mut read = Vec::new();
        for name in reads {
            read.extend(self.store.table(name).latest()?.map(|version| (name.clone(), version)));
        }
        Ok(HeldBack::of(table, &read))
    }

    /// Brings a derived table up to date, except for the windows `unread` of the tables that it reads.
    fn derive_readable(
        &self,
        table: &Table,
        query: DerivedQuery<'_>,
        unread: &BTreeSet<String>,
        record: &mut RunRecord,
    ) -> Result<(), RunError> {
        self.options.stop.check()?;
        let name = &table.spec.name;
        if !unread.is_empty() || record.attempts.iter().any(|attempt| attempt.name == *name) {
            // Rows that an attempt before this one rejected.
            self.store.blobs().delete(&rejects_path(&self.options.run, Some(name)))?;
        }

        let rejects = RejectLog::new(self.store.blobs().as_ref(), &self.options.run, Some(name));
        let on_reject = |row: &RejectedRow| rejects.keep(row);
        let stage = self.stage(&on_reject);
        let loaded = stage.load_derived(table, query, self.runtime, unread);
        let kept = rejects.finish();

        let pending = loaded?;
        let first = kept.as_ref().ok().and_then(Option::as_ref).map_or(&[][..], |kept| kept.of_files.as_slice());
        let mut loads = pending.iter();
        let checked = loads.try_for_each(|load| check_query_rejected(&self.job.name, &self.options.run, load, first));
        let rejected = match (checked, kept) {
            (Ok(()), Ok(kept)) => kept.map(|kept| kept.path),
            (checked, kept) => {
                pending.iter().for_each(Pending::discard);
                checked?;
                kept?;
                return Ok(());
            }
        };

        self.note_all(record, split_groups_notes(table, &pending));
        self.note_all(record, hidden_versions_notes(&pending));
        self.note_all(record, expired_notes(self.job, &pending, self.options.now));
        for mut load in pending {
            load.record.rejected.clone_from(&rejected);
            let done = load.commit(self.ids, self.options.now)?;
            let is_new = done.version != done.before;
            record.loads.push(done);
            if is_new {
                self.keep_committed(record);
            }
        }
        Ok(())
    }

    /// Records that `undone` was left, because `error` is of a damaged file.
    pub(crate) fn leave_undone(&self, record: &mut RunRecord, undone: String, error: RunError) {
        self.tell_undone(record, undone, explained(self.store, error).to_string());
    }

    /// Compacts the loaded tables where that is due. After a concurrent commit it is left
    /// to the next run.
    pub(crate) fn compact(&self, record: &mut RunRecord) -> Result<(), RunError> {
        let clock = Instant::now();
        let changed = record.loads.iter().filter(|load| load.version != load.before);
        let tables: BTreeSet<String> = changed.map(|load| load.table.clone()).collect();
        for table in tables {
            match self.attempts(Stage::Compact, &table, record, |record| self.compact_one(&table, record)) {
                // The data is loaded and published without it.
                Err(error) if damage_in(&error).is_some() => {
                    self.leave_undone(record, format!("compact {table}"), error);
                }
                done => done?,
            }
        }
        if !record.compactions.is_empty() {
            took(record, "compact", clock);
        }
        Ok(())
    }

    /// By path, the rows that the tables hold at most of missing inputs. Nothing is asked of a store where none is missing.
    fn rows_of_missing(&self, loads: &[&LoadRecord]) -> BTreeMap<String, u64> {
        let mut rows = BTreeMap::new();
        for load in loads {
            let missing =
                load.inputs.iter().filter(|input| matches!(input.state, InputState::Gone | InputState::Empty));
            let missing: BTreeSet<&String> = missing.map(|input| &input.path).chain(&load.to_remove).collect();
            if missing.is_empty() {
                continue;
            }

            let Ok(Some(version)) = self.store.table(&load.table).latest() else { continue };
            for path in missing {
                let most: &mut u64 = rows.entry(path.clone()).or_default();
                *most = rows_of(&version, std::slice::from_ref(path)).max(*most);
            }
        }
        rows
    }

    fn compact_one(&self, table: &str, record: &mut RunRecord) -> Result<(), RunError> {
        self.options.stop.check()?;
        let snapshot = self.store.snapshot(table)?;
        let plan = CompactionPlan::of_extent(&snapshot, self.options.now, CompactionExtent::Due)?;
        if plan.is_empty() {
            return Ok(());
        }

        self.observer.event(Event::Stage { name: format!("compact {table}"), unit: Unit::None, total: 0 });
        match self.compact_due(plan) {
            Ok(done) => record.compactions.push(done),
            Err(error) if self.options.stop.asked().is_some() => {
                self.options.stop.check()?;
                return Err(error.into());
            }
            // The data is loaded and readable without it.
            Err(
                error @ (StoreError::Conflict { .. } | StoreError::SumOverflow { .. } | StoreError::RowTooLarge { .. }),
            ) => self.observer.event(Event::Note(error.to_string())),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Does a compaction of what is due, here or by other processes.
    fn compact_due(&self, plan: CompactionPlan) -> Result<CompactionRecord, StoreError> {
        let (store, extent, stop) = (self.store, CompactionExtent::Due, &self.options.stop);
        match &self.options.carrier {
            None => compact(store, plan, extent, self.ids, stop),
            Some(carrier) => {
                let (carrier, root, tally) = (carrier.as_ref(), self.root, &self.tally);
                let note = &|note| self.observer.event(Event::Note(note));
                compact_by(store, plan, extent, self.ids, &CarriedMerges { carrier, root, stop, tally, note })
            }
        }
    }
}

/// The window of a derived table's sources that could not be read, if `error` is of a damaged file in it.
fn unread_window(error: &RunError) -> Option<String> {
    match error {
        RunError::Store(StoreError::Feed { input, source }) => {
            damage_in(source.as_ref() as &(dyn Error + 'static)).map(|_| input.clone())
        }
        _ => None,
    }
}

/// Most inputs of a state that get a note each.
const NOTES: usize = 5;

/// Notes on inputs that are neither new nor unchanged, nor told of already: one each, or one for all of a state if they are many.
/// The record lists them.
fn input_notes(
    loads: &[&LoadRecord],
    options: &RunOptions,
    missing: &BTreeMap<String, u64>,
    told: &BTreeSet<&str>,
) -> Vec<String> {
    let notes = InputNotes { options, owed: OwedOfInputs::of(loads), missing };
    let inputs = loads.iter().flat_map(|load| &load.inputs);

    let mut by_state: Vec<(InputState, Vec<&InputRecord>)> = Vec::new();
    // Tables of a source have the same inputs.
    let mut seen = BTreeSet::new();
    for input in inputs.filter(|input| !told.contains(input.path.as_str())) {
        if notes.note(input).is_none() || !seen.insert((input.state, input.path.as_str())) {
            continue;
        }
        match by_state.iter_mut().find(|(state, _)| *state == input.state) {
            Some((_, of_state)) => of_state.push(input),
            None => by_state.push((input.state, vec![input])),
        }
    }
    by_state.into_iter().flat_map(|(state, inputs)| notes.of_state(state, inputs)).collect()
}

/// What notes on inputs tell besides their records.
struct InputNotes<'a> {
    options: &'a RunOptions,
    owed: OwedOfInputs<'a>,
    /// By path of a missing input, the rows that the tables hold at most of it.
    missing: &'a BTreeMap<String, u64>,
}

impl InputNotes<'_> {
    /// The notes on all inputs of a state: one each, or one for all if they are many.
    fn of_state(&self, state: InputState, mut inputs: Vec<&InputRecord>) -> Vec<String> {
        // Files that are rotated away are no news.
        let most = if state == InputState::Gone { 1 } else { NOTES };
        if inputs.len() <= most {
            return inputs.into_iter().filter_map(|input| self.note(input)).collect();
        }

        inputs.sort_by_key(|input| &input.path);
        let first = inputs.first().map_or("", |input| input.path.as_str());
        let last = inputs.last().map_or("", |input| input.path.as_str());
        let what = match state {
            InputState::SameContent => "have the same content as others: they are not loaded again",
            InputState::Renamed => "have other names than before: they are not loaded again",
            InputState::LeftOut => "are left out: the run removes their rows for good",
            InputState::Empty => {
                "have no rows any more: their cells stay in the table; run with --without FILE to take the rows of one out"
            }
            InputState::Gone if !self.owed.lost.is_empty() => {
                "are gone: their cells stay in the table, except those lost with a window named below"
            }
            InputState::Gone => "are gone: their cells stay in the table",
            InputState::ReadAgain => "are read again, as requested",
            InputState::Grown => "grew: their new rows are appended",
            _ if self.owed.is_empty() => "changed: the windows they touch are rebuilt",
            _ => "changed: the windows they touch are rebuilt, except those named below",
        };
        vec![format!("{} inputs, from {first} to {last}, {what}; --verbose names each", inputs.len())]
    }

    /// The note on an input that is neither new nor unchanged. Another note names the windows that cannot be rebuilt, so this
    /// one does not say that they are.
    fn note(&self, input: &InputRecord) -> Option<String> {
        let owed = &self.owed;

        match (input.state, &input.same_as) {
            (InputState::SameContent, Some(other)) => {
                Some(format!("{} has the same content as {other}: it is not loaded again", input.path))
            }
            (InputState::Renamed, Some(before)) => {
                Some(format!("{} is {before} under another name: it is not loaded again", input.path))
            }
            (InputState::LeftOut, _) if !Without::new(&self.options.without).takes(&input.path) => {
                Some(format!("{} is no longer part of the pull or the dump: its rows are removed", input.path))
            }
            (InputState::LeftOut, _) => {
                let except = owed.of_input(&input.path).map(|windows| format!(", except from window {windows}"));
                Some(format!("{} is gone: the run removes its rows for good{}", input.path, except.unwrap_or_default()))
            }
            (InputState::Gone, _) => {
                let except =
                    owed.lost_of(&input.path).map(|windows| format!(", except those lost with window {windows}"));
                Some(format!(
                    "{0} is gone: its cells stay in the table{1}; run with --without {2} to take them out{3}",
                    input.path,
                    except.unwrap_or_default(),
                    shell_word(&input.path),
                    self.rows_of(&input.path)
                ))
            }
            (InputState::Empty, _) => Some(format!(
                "warning: {0} has no rows any more: the cells of those that it had stay in the table; put its content back, or run with \
                 --without {1} to take them out{2}",
                input.path,
                shell_word(&input.path),
                self.rows_of(&input.path)
            )),
            (InputState::ReadAgain, _) => Some(format!("{} is read again, as requested", input.path)),
            (InputState::Grown, _) => input.added.map(|Added { bytes, rows }| {
                let rows = if rows == 1 { "1 row is".to_owned() } else { format!("{rows} rows are") };
                let before = input.same_as.as_ref().map(|before| format!("is {before} under another name and "));
                format!(
                    "{} {}grew by {}: {rows} appended",
                    input.path,
                    before.unwrap_or_default(),
                    several(bytes, "byte")
                )
            }),
            (InputState::Changed, _) => match owed.of_input(&input.path) {
                None => Some(format!("{} changed: the windows it touches are rebuilt", input.path)),
                Some(windows) if owed.rebuilds => {
                    Some(format!("{} changed: the windows it touches are rebuilt, except {windows}", input.path))
                }
                Some(_) => None,
            },
            _ => None,
        }
    }

    /// The rows of a missing input that --without would delete, in parentheses.
    fn rows_of(&self, path: &str) -> String {
        self.missing.get(path).map(|rows| format!(" ({})", up_to(*rows))).unwrap_or_default()
    }
}

/// The windows that inputs owe after a load.
struct OwedOfInputs<'a> {
    /// By path, the names of the windows.
    windows: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// By path of a missing input, the windows that lost cells and cannot be rebuilt without it.
    lost: BTreeMap<&'a str, BTreeSet<&'a str>>,
    /// Whether the load rebuilt other windows.
    rebuilds: bool,
}

impl<'a> OwedOfInputs<'a> {
    fn of(loads: &[&'a LoadRecord]) -> Self {
        let mut windows: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut lost: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for owed in loads.iter().flat_map(|load| &load.owed) {
            for input in &owed.inputs {
                windows.entry(&input.path).or_default().insert(&owed.window);
            }
            for gone in owed.gone.iter().filter(|_| owed.lost) {
                lost.entry(gone).or_default().insert(&owed.window);
            }
        }
        Self { windows, lost, rebuilds: loads.iter().any(|load| !load.rebuilt.is_empty()) }
    }

    fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// Names of the windows that the input `path` owes; `None` if it owes none.
    fn of_input(&self, path: &str) -> Option<String> {
        Self::names(self.windows.get(path)?)
    }

    /// Names of the windows that lost cells of the missing input `path`; `None` if there are none.
    fn lost_of(&self, path: &str) -> Option<String> {
        Self::names(self.lost.get(path)?)
    }

    fn names(windows: &BTreeSet<&str>) -> Option<String> {
        Some(ranges(&windows.iter().copied().collect::<Vec<_>>()))
    }
}

/// The warning about rows of changed inputs that stay hidden.
fn hidden_note(load: &LoadRecord) -> String {
    let LoadRecord { table, stats, .. } = load;
    let (rows, stay) = (several(stats.rows_hidden, "row"), if stats.rows_hidden == 1 { "stays" } else { "stay" });
    format!(
        "warning: {table}: {rows} of inputs that changed or grew {stay} hidden, as a whole or in part, by deletes that were made after the \
         inputs came first; to show {them}, put {them} into a new file",
        them = if stats.rows_hidden == 1 { "it" } else { "them" }
    )
}
