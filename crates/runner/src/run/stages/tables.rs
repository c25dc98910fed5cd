//! The stages that bring tables up to date: load, derive, compact.

use std::collections::{BTreeSet, HashSet};
use std::time::Instant;

use tidetable_ingest::{LoadStats, RejectedRow};
use tidetable_record::{
    Added, AttemptRecord, InputRecord, InputState, LoadRecord, RunRecord, rejected_rows, rejects_path,
};
use tidetable_sql::QueryShape;
use tidetable_store::StoreError;
use tidetable_upkeep::compaction::{CompactionExtent, CompactionPlan};

use crate::compact::{compact, compact_by};
use crate::job::{Stage, Table, TableInput};
use crate::observe::{Event, Unit};
use crate::plan::{Plan, owed_notes};
use crate::run::error::RunError;
use crate::run::publish::ComparedExports;
use crate::run::rejects::RejectLog;
use crate::run::stages::derived::check_query_rejected;
use crate::run::stages::load::{LoadStage, Pending, PlannedSource, check_rejected, pulls};
use crate::run::stages::pulled;
use crate::run::{Run, RunOptions, took};
use crate::units::compact::CarriedMerges;

impl Run<'_> {
    /// Loads the tables of sources and commits them. Returns the plan of the run, the exports compared
    /// for it, and the first rejected rows.
    pub(crate) fn load(
        &self,
        record: &mut RunRecord,
    ) -> Result<(Plan, ComparedExports<'_>, Vec<RejectedRow>), RunError> {
        let names: Vec<&str> = self.job.sources.iter().map(|source| source.spec.name.as_str()).collect();
        let (mut told, mut compared) = (None, ComparedExports::new());
        let (plan, rejected) = self.attempts((Stage::Load, &names.join(", ")), record, |record| {
            // Loads that an earlier attempt committed are kept.
            record.loads.retain(|load| load.version != load.before);
            self.check_versions()?;
            let clock = Instant::now();
            let earlier = self.rejected_earlier(record)?;
            let rejects = RejectLog::new(self.store.blobs().as_ref(), &self.options.run, None).after(earlier);
            let on_reject = |row: &RejectedRow| rejects.keep(row);
            let stage = self.stage(&on_reject);
            let sources = stage.plan()?;
            let plan = match &told {
                Some(plan) => Plan::clone(plan),
                None => {
                    let (plan, all) = self.plan(&sources)?;
                    compared = all;
                    self.observer.event(Event::Plan(plan.clone()));
                    told.insert(plan).clone()
                }
            };
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
            let allowed = pending.iter().try_for_each(|load| check_rejected(self.job, &self.options.run, load));
            let allowed = allowed.and_then(|()| self.options.stop.check());
            let rejected = match (allowed, kept) {
                (Ok(()), Ok(kept)) => kept.map(|kept| kept.first).unwrap_or_default(),
                (allowed, kept) => {
                    pending.iter().for_each(Pending::discard);
                    allowed?;
                    return Err(kept.err().map_or(RunError::RejectLog, RunError::from));
                }
            };
            let clock = Instant::now();
            record.loads = committed;
            let done = self.commit(pending, &mut record.loads);
            took(record, "commit", clock);
            done.map(|()| (plan, rejected))
        })?;
        Ok((plan, compared, rejected))
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
        for PlannedSource { source, unmatched, .. } in &sources {
            for pattern in unmatched {
                self.note(record, format!("source {}: no file matches \"{pattern}\"", source.spec.name));
            }
        }
        pulled::save(pulled::origins(self.job, &pulls(&sources), self.store)?, self.store)?;
        let pending = stage.load(sources);
        // Also if the load failed, as this may be the cause.
        stage.others.notes().into_iter().for_each(|note| self.note(record, note));
        let pending = pending?;
        time_notes(&pending).into_iter().for_each(|note| self.note(record, note));
        let left_out = |path: &String| {
            self.options.rebuild
                || pending
                    .iter()
                    .flat_map(|load| &load.record.inputs)
                    .any(|input| input.path == *path && input.state == InputState::LeftOut)
        };
        for path in self.options.without.iter().filter(|path| !left_out(path)) {
            self.note(record, format!("--without {path} changed nothing: no such input is gone"));
        }
        for note in input_notes(pending.iter().flat_map(|load| &load.record.inputs), self.options) {
            self.note(record, note);
        }
        for LoadRecord { table, owed, to_remove, stats, .. } in pending.iter().map(|load| &load.record) {
            owed_notes(table, owed, to_remove).into_iter().for_each(|note| self.note(record, note));
            match stats.rows_settled {
                0 => {}
                1 => self.note(record, format!("{table}: 1 row that was owed is loaded")),
                rows => self.note(record, format!("{table}: {rows} rows that were owed are loaded")),
            }
        }
        Ok(pending)
    }

    /// Brings derived tables up to date, in the order of the job file. Each is
    /// committed before the next, which may read it.
    pub(crate) fn derive(&self, record: &mut RunRecord) -> Result<(), RunError> {
        let derived = self.job.tables.iter().filter_map(|table| match &table.from {
            TableInput::Query { sql, shape } => Some((table, sql.as_str(), shape)),
            TableInput::Source(_) => None,
        });
        let mut derived = derived.peekable();
        if derived.peek().is_none() {
            return Ok(());
        }
        let clock = Instant::now();
        for (table, sql, shape) in derived {
            self.attempts((Stage::Derive, &table.spec.name), record, |record| {
                self.derive_one(table, (sql, shape), record)
            })?;
        }
        took(record, "derive", clock);
        Ok(())
    }

    /// Brings a derived table up to date.
    fn derive_one(&self, table: &Table, query: (&str, &QueryShape), record: &mut RunRecord) -> Result<(), RunError> {
        self.options.stop.check()?;
        let tried = |attempt: &AttemptRecord| attempt.name == table.spec.name;
        if record.attempts.iter().any(tried) {
            let path = rejects_path(&self.options.run, Some(&table.spec.name));
            self.store.blobs().delete(&path)?;
        }
        let rejects = RejectLog::new(self.store.blobs().as_ref(), &self.options.run, Some(&table.spec.name));
        let on_reject = |row: &RejectedRow| rejects.keep(row);
        let stage = self.stage(&on_reject);
        let loaded = stage.load_derived(table, query, self.runtime);
        let kept = rejects.finish();
        let pending = loaded?;
        let checked = pending.iter().try_for_each(|load| check_query_rejected(&self.options.run, load));
        match (checked, kept) {
            (Ok(()), Ok(kept)) => {
                for mut load in pending {
                    load.record.rejected = kept.as_ref().map(|kept| kept.path.clone());
                    record.loads.push(load.commit(self.ids, self.options.now)?);
                }
            }
            (checked, kept) => {
                pending.iter().for_each(Pending::discard);
                checked?;
                kept?;
            }
        }
        Ok(())
    }

    /// Compacts the loaded tables where that is due. After a concurrent commit it is left
    /// to the next run.
    pub(crate) fn compact(&self, record: &mut RunRecord) -> Result<(), RunError> {
        let clock = Instant::now();
        let changed = record.loads.iter().filter(|load| load.version != load.before);
        let tables: BTreeSet<String> = changed.map(|load| load.table.clone()).collect();
        for table in tables {
            self.attempts((Stage::Compact, &table), record, |record| self.compact_one(&table, record))?;
        }
        if !record.compactions.is_empty() {
            took(record, "compact", clock);
        }
        Ok(())
    }

    fn compact_one(&self, table: &str, record: &mut RunRecord) -> Result<(), RunError> {
        self.options.stop.check()?;
        let snapshot = self.store.snapshot(table)?;
        let plan = CompactionPlan::of_extent(&snapshot, self.options.now, CompactionExtent::Due)?;
        if plan.is_empty() {
            return Ok(());
        }
        self.observer.event(Event::Stage { name: format!("compact {table}"), unit: Unit::None, total: 0 });
        let (store, extent, stop) = (self.store, CompactionExtent::Due, &self.options.stop);
        let done = match &self.options.carrier {
            None => compact(store, plan, extent, self.ids, stop),
            Some(carrier) => {
                let (carrier, root, tally) = (carrier.as_ref(), self.root, &self.tally);
                let note = &|note| self.observer.event(Event::Note(note));
                compact_by(store, plan, extent, self.ids, &CarriedMerges { carrier, root, stop, tally, note })
            }
        };
        match done {
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
}

/// Most inputs of a state that get a note each.
const NOTES: usize = 5;

/// Notes on inputs that are neither new nor unchanged: one each, or one for all of a state if they are many. The record
/// lists them.
fn input_notes<'a>(inputs: impl Iterator<Item = &'a InputRecord>, options: &RunOptions) -> Vec<String> {
    let mut by_state: Vec<(InputState, Vec<&InputRecord>)> = Vec::new();
    // Tables of a source have the same inputs.
    let mut seen = BTreeSet::new();
    for input in
        inputs.filter(|input| note(input, options).is_some() && seen.insert((input.state, input.path.as_str())))
    {
        match by_state.iter_mut().find(|(state, _)| *state == input.state) {
            Some((_, of_state)) => of_state.push(input),
            None => by_state.push((input.state, vec![input])),
        }
    }
    let notes = |(state, mut inputs): (InputState, Vec<&InputRecord>)| {
        if inputs.len() <= NOTES {
            return inputs.into_iter().filter_map(|input| note(input, options)).collect();
        }
        inputs.sort_by_key(|input| &input.path);
        let first = inputs.first().map_or("", |input| input.path.as_str());
        let last = inputs.last().map_or("", |input| input.path.as_str());
        let what = match state {
            InputState::SameContent => "have the same content as others: they are not loaded again",
            InputState::Renamed => "have other names than before: they are not loaded again",
            InputState::LeftOut => "are left out: their rows are removed for good",
            InputState::Empty => {
                "have no rows any more: their cells stay in the table; run with --without FILE to take the rows of one out"
            }
            InputState::Gone => {
                "are gone: their cells stay in the table; run with --without FILE to take the rows of one out"
            }
            InputState::ReadAgain => "are read again, as requested",
            InputState::Grown => "grew: their new rows are appended",
            _ => "changed: the windows they touch are rebuilt",
        };
        vec![format!("{} inputs, from {first} to {last}, {what}; --verbose names each", inputs.len())]
    };
    by_state.into_iter().flat_map(notes).collect()
}

/// The note on an input that is neither new nor unchanged.
fn note(input: &InputRecord, options: &RunOptions) -> Option<String> {
    match (input.state, &input.same_as) {
        (InputState::SameContent, Some(other)) => {
            Some(format!("{} has the same content as {other}: it is not loaded again", input.path))
        }
        (InputState::Renamed, Some(before)) => {
            Some(format!("{} is {before} under another name: it is not loaded again", input.path))
        }
        (InputState::LeftOut, _) if !options.without.contains(&input.path) => {
            Some(format!("{} is no longer part of the pull: its rows are removed", input.path))
        }
        (InputState::LeftOut, _) => Some(format!("{} is gone: its rows are removed for good", input.path)),
        (InputState::Gone, _) => Some(format!(
            "{0} is gone: its cells stay in the table; run with --without {0} to take them out",
            input.path
        )),
        (InputState::Empty, _) => Some(format!(
            "{0} has no rows any more: the cells of those that it had stay in the table; put its content back, or run with \
             --without {0} to take them out",
            input.path
        )),
        (InputState::ReadAgain, _) => Some(format!("{} is read again, as requested", input.path)),
        (InputState::Grown, _) => input.added.map(|Added { bytes, rows }| {
            let rows = if rows == 1 { "1 row is".to_owned() } else { format!("{rows} rows are") };
            let before = input.same_as.as_ref().map(|before| format!("is {before} under another name and "));
            format!("{} {}grew by {bytes} bytes: {rows} appended", input.path, before.unwrap_or_default())
        }),
        (InputState::Changed, _) => Some(format!("{} changed: the windows it touches are rebuilt", input.path)),
        _ => None,
    }
}

/// Notes on the times that were read, once per source.
fn time_notes(loads: &[Pending]) -> Vec<String> {
    let mut notes = Vec::new();
    let mut sources: Vec<&str> = loads.iter().map(|load| load.record.source.as_str()).collect();
    sources.sort_unstable();
    sources.dedup();
    for source in sources {
        // Tables of a source read the same rows, unless one is behind.
        let most = |count: fn(&LoadStats) -> u64| {
            loads.iter().filter(|load| load.record.source == source).map(|load| count(&load.record.stats)).max()
        };
        if let Some(times @ 1..) = most(|stats| stats.repeated_times) {
            notes.push(format!(
                "source {source}: {times} local times occur twice, because the clocks go back: the first of the two is taken"
            ));
        }
        if let Some(times @ 1..) = most(|stats| stats.cut_times) {
            notes.push(format!("source {source}: {times} times have digits beyond the microsecond, which are cut off"));
        }
    }
    notes
}
