//! The load stage: the inputs of each source into its tables.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use tidetable_layout::window_name;
use tidetable_source::{InputFile, SourceError, SourceSpec, Storage};
use tidetable_store::{
    Edit, Ids, InputPlan, LoadStats, Loaded, Loader, Prepare, Progress, RejectedRow, Store, StoreError,
    Table as StoredTable, TableIdentity, Version,
};

use super::RunOptions;
use super::error::RunError;
use super::record::{InputRecord, LoadRecord};
use crate::job::{Job, Source, Table};
use crate::observe::{Event, Observer};

/// A load that is done but for its commit.
pub(super) struct Pending {
    table: StoredTable,
    base: Version,
    edit: Edit,
    pub(super) record: LoadRecord,
}

/// What the load stage works with.
pub(super) struct LoadStage<'a> {
    pub(super) job: &'a Job,
    pub(super) store: &'a Store,
    pub(super) storage: &'a Storage,
    pub(super) options: &'a RunOptions,
    pub(super) ids: &'a dyn Ids,
    pub(super) observer: &'a dyn Observer,
    pub(super) on_reject: &'a (dyn Fn(&RejectedRow) + Sync),
}

impl LoadStage<'_> {
    /// Loads one table, up to its commit.
    pub(super) fn load(&self, table: &Table) -> Result<Pending, RunError> {
        let Some(source) = self.job.source(&table.source) else {
            return Err(RunError::NoSource { table: table.spec.name.clone(), source_name: table.source.clone() });
        };
        let stored = self.store.table(&table.spec.name);
        let Base { version: base, latest, reset, gc } = self.base(&stored, table, source)?;
        let found = self.discover(&source.spec, latest.as_ref())?;
        let mut plan = InputPlan::new(&base, found, |file| self.storage.hash(file)).map_err(StoreError::from)?;
        match (&latest, &reset) {
            (Some(latest), Some(_)) => self.keep_order(&mut plan, latest)?,
            // A rebuilt table holds all its inputs, whatever days are to be published.
            (None, Some(_)) => {}
            (_, None) => within(&mut plan.new, self.options.days.as_ref()),
        }
        let total = plan.new.iter().chain(plan.changed.iter().map(|(file, _)| file)).map(|file| file.size).sum();
        self.observer.event(Event::Stage { name: format!("load {}", table.spec.name), total });
        let mut record = LoadRecord {
            table: table.spec.name.clone(),
            source: table.source.clone(),
            before: base.number,
            version: base.number,
            inputs: self.inputs_of(&plan),
            rebuilt: Vec::new(),
            ssts: Vec::new(),
            stats: LoadStats::default(),
        };
        if plan.is_empty() && reset.is_none() {
            let edit = Edit { base: base.number, gc, ..Edit::default() };
            return Ok(Pending { table: stored, base, edit, record });
        }
        let on_progress = |progress: Progress| {
            self.observer.event(match progress {
                Progress::Read { bytes, rows } => Event::Read { bytes, rows },
                Progress::Wrote { bytes } => Event::Wrote { bytes },
            });
        };
        let loader = Loader {
            storage: self.storage,
            source: &source.spec,
            table: &stored,
            layout: &table.layout,
            prepare: Some(&table.preparation as &dyn Prepare).filter(|_| !table.preparation.is_empty()),
            ids: self.ids,
            memory: self.options.memory,
            without: &self.options.without,
            on_reject: self.on_reject,
            on_progress: &on_progress,
        };
        let Loaded { mut edit, stats } = loader.load(&base, &plan)?;
        edit.reset = reset;
        edit.gc = gc;
        record.rebuilt = edit.rebuilt.iter().map(|start| window_name(table.spec.window, *start)).collect();
        record.ssts = edit.ssts.values().flatten().map(|sst| sst.id.clone()).collect();
        record.stats = stats;
        Ok(Pending { table: stored, base, edit, record })
    }

    /// The files of the source. None is no mistake of a source whose files were loaded before: what
    /// they brought stays.
    fn discover(&self, source: &SourceSpec, latest: Option<&Version>) -> Result<Vec<InputFile>, StoreError> {
        match self.storage.discover(source) {
            Err(SourceError::NoMatch { .. }) if latest.is_some_and(|latest| !latest.inputs.is_empty()) => {
                Ok(Vec::new())
            }
            found => Ok(found?),
        }
    }

    /// Inputs of a rebuild keep the order they had; one that is gone must be given up by name.
    fn keep_order(&self, plan: &mut InputPlan, latest: &Version) -> Result<(), RunError> {
        let sequences: HashMap<&str, u64> =
            latest.inputs.iter().map(|input| (input.path.as_str(), input.sequence)).collect();
        plan.new.sort_by_key(|file| sequences.get(file.path.as_str()).copied().unwrap_or(u64::MAX));
        let there = |path: &String| {
            plan.new.iter().any(|file| file.path == *path) || plan.same.iter().any(|(file, _)| file.path == *path)
        };
        let gone =
            latest.inputs.iter().find(|input| !there(&input.path) && !self.options.without.contains(&input.path));
        match gone {
            Some(gone) => {
                let (table, gone) = (latest.table.spec.name.clone(), gone.path.clone());
                Err(RunError::RebuildGone { table, gone })
            }
            None => Ok(()),
        }
    }

    /// The version to load upon. For a rebuild: one without inputs or windows, and the identity to
    /// give the table.
    fn base(&self, stored: &StoredTable, table: &Table, source: &Source) -> Result<Base, RunError> {
        let identity = TableIdentity {
            job: self.job.name.clone(),
            spec: table.spec.clone(),
            source: table.layout.source().clone(),
            layout: table.fingerprint(source),
            gc: table.gc.iter().cloned().collect(),
        };
        let latest = stored.latest()?;
        let held = stored.base(&identity);
        if let (true, Some(latest)) = (self.options.rebuild, &latest)
            && !matches!(held, Err(StoreError::Owned { .. }))
        {
            let mut version = Version::empty(identity.clone());
            version.number = latest.number;
            version.born.clone_from(&latest.born);
            return Ok(Base { version, latest: Some(latest.clone()), reset: Some(identity), gc: None });
        }
        let version = held?;
        let gc = (version.table.gc != identity.gc).then_some(identity.gc);
        Ok(Base { version, latest, reset: None, gc })
    }

    fn inputs_of(&self, plan: &InputPlan) -> Vec<InputRecord> {
        let record = |path: &str, state| InputRecord { path: path.to_owned(), state, same_as: None };
        let mut inputs: Vec<InputRecord> = plan.new.iter().map(|file| record(&file.path, "new")).collect();
        inputs.extend(plan.changed.iter().map(|(file, _)| record(&file.path, "changed")));
        inputs.extend(plan.unchanged.iter().map(|(file, _)| record(&file.path, "unchanged")));
        for (file, other) in &plan.same {
            inputs.push(InputRecord { same_as: Some(other.clone()), ..record(&file.path, "same content") });
        }
        for input in &plan.vanished {
            let left_out = self.options.without.contains(&input.path);
            inputs.push(record(&input.path, if left_out { "left out" } else { "gone" }));
        }
        inputs
    }
}

/// What a load goes upon.
struct Base {
    version: Version,
    /// The newest version, if there is one.
    latest: Option<Version>,
    /// The identity a rebuild gives the table.
    reset: Option<TableIdentity>,
    /// Rules of garbage collection, if they changed.
    gc: Option<BTreeMap<String, String>>,
}

/// Whether more rows of a load were rejected than its source allows.
pub(super) fn check_rejected(job: &Job, run: &str, record: &LoadRecord) -> Result<(), RunError> {
    let Some(source) = job.source(&record.source).map(|source| &source.spec) else { return Ok(()) };
    let (rejected, read) = (record.stats.rows_rejected, record.stats.rows_read);
    if !source.max_rejected.exceeded(rejected, read) {
        return Ok(());
    }
    Err(RunError::TooManyRejected {
        source_name: source.name.clone(),
        rejected,
        read,
        limit: source.max_rejected.to_string(),
        log: super::rejects::log_path(run),
    })
}

impl Pending {
    /// Removes what was written for a commit that will not be.
    pub(super) fn discard(&self) {
        self.table.discard(&self.edit);
    }

    /// Commits what was loaded, if it changes anything.
    pub(super) fn commit(self, ids: &dyn Ids, now: i64) -> Result<LoadRecord, StoreError> {
        let mut record = self.record;
        if !self.edit.is_empty() {
            let base = if self.edit.reset.is_some() { self.table.latest()?.unwrap_or(self.base) } else { self.base };
            record.version = self.table.commit(base, &self.edit, ids, now)?.number;
        }
        Ok(record)
    }
}

/// New inputs whose path names a day outside `days` are not for this run. Changed ones always are: a
/// window is built from all its inputs as they stand.
fn within(new: &mut Vec<InputFile>, days: Option<&RangeInclusive<NaiveDate>>) {
    if let Some(days) = days {
        new.retain(|file| file.day.is_none_or(|day| days.contains(&day)));
    }
}
