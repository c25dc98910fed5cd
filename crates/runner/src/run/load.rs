//! The load stage: the inputs of each source into its tables.

use std::ops::RangeInclusive;

use chrono::NaiveDate;
use tidetable_layout::window_name;
use tidetable_source::{InputFile, Storage};
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
        let (base, reset) = self.base(&stored, table, source)?;
        let found = self.storage.discover(&source.spec).map_err(StoreError::from)?;
        let found = within(found, self.options.days.as_ref());
        let plan = InputPlan::new(&base, found, |file| self.storage.hash(file)).map_err(StoreError::from)?;
        let total = plan.new.iter().chain(plan.changed.iter().map(|(file, _)| file)).map(|file| file.size).sum();
        self.observer.event(Event::Stage { name: format!("load {}", table.spec.name), total });
        let mut record = LoadRecord {
            table: table.spec.name.clone(),
            source: table.source.clone(),
            before: base.number,
            version: base.number,
            inputs: inputs_of(&plan),
            rebuilt: Vec::new(),
            ssts: Vec::new(),
            stats: LoadStats::default(),
        };
        if plan.is_empty() && reset.is_none() {
            let edit = Edit { base: base.number, ..Edit::default() };
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
        record.rebuilt = edit.rebuilt.iter().map(|start| window_name(table.spec.window, *start)).collect();
        record.ssts = edit.ssts.values().flatten().map(|sst| sst.id.clone()).collect();
        record.stats = stats;
        self.check_rejected(&source.spec, &record)?;
        Ok(Pending { table: stored, base, edit, record })
    }

    /// The version to load upon. With a changed layout that may be rebuilt: one without inputs or
    /// windows, and the identity to give the table.
    fn base(
        &self,
        stored: &StoredTable,
        table: &Table,
        source: &Source,
    ) -> Result<(Version, Option<TableIdentity>), RunError> {
        let identity = TableIdentity {
            job: self.job.name.clone(),
            spec: table.spec.clone(),
            source: table.layout.source().clone(),
            layout: table.fingerprint(source),
            gc: table.gc.iter().cloned().collect(),
        };
        match stored.base(&identity) {
            Err(StoreError::LayoutChanged { .. }) if self.options.rebuild => {}
            Ok(base) if !self.options.rebuild || base.number == 0 => return Ok((base, None)),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut base = Version::empty(identity.clone());
        base.number = stored.latest_number()?;
        Ok((base, Some(identity)))
    }

    fn check_rejected(&self, source: &tidetable_source::SourceSpec, record: &LoadRecord) -> Result<(), RunError> {
        let (rejected, read) = (record.stats.rows_rejected, record.stats.rows_read);
        if source.max_rejected.exceeded(rejected, read) {
            return Err(RunError::TooManyRejected {
                source_name: source.name.clone(),
                rejected,
                read,
                limit: source.max_rejected.to_string(),
                log: super::rejects::log_path(&self.options.run),
            });
        }
        Ok(())
    }
}

impl Pending {
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

/// Inputs whose path names a day outside `days` are not for this run.
fn within(found: Vec<InputFile>, days: Option<&RangeInclusive<NaiveDate>>) -> Vec<InputFile> {
    let Some(days) = days else { return found };
    found.into_iter().filter(|file| file.day.is_none_or(|day| days.contains(&day))).collect()
}

fn inputs_of(plan: &InputPlan) -> Vec<InputRecord> {
    let record = |path: &str, state| InputRecord { path: path.to_owned(), state, same_as: None };
    let mut inputs: Vec<InputRecord> = plan.new.iter().map(|file| record(&file.path, "new")).collect();
    inputs.extend(plan.changed.iter().map(|(file, _)| record(&file.path, "changed")));
    inputs.extend(plan.unchanged.iter().map(|(file, _)| record(&file.path, "unchanged")));
    inputs.extend(
        plan.same
            .iter()
            .map(|(file, as_)| InputRecord { same_as: Some(as_.clone()), ..record(&file.path, "same content") }),
    );
    inputs.extend(plan.vanished.iter().map(|input| record(&input.path, "gone")));
    inputs
}
