//! The load stage: the inputs of each source into its tables, each input read once.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use tidetable_layout::window_name;
use tidetable_source::{InputFile, SourceError, SourceSpec, Storage};
use tidetable_store::{
    Edit, Feed, FileFeed, Ids, Input, InputPlan, LoadStats, Loaded, Loader, Prepare, Progress, RejectedRow, Store,
    StoreError, Table as StoredTable, TableIdentity, Target, Version,
};

use super::RunOptions;
use super::columns::{Looking, OtherColumns};
use super::error::RunError;
use super::stop::Stoppable;
use crate::job::{From, Job, Source, Table};
use crate::observe::{Event, Observer, Unit};
use tidetable_record::{InputRecord, InputState, LoadRecord, Seen};

/// A load that is done but for its commit.
pub(super) struct Pending {
    table: StoredTable,
    base: Version,
    edit: Edit,
    /// Rows that the version before had rejected of inputs that were to be read again.
    pub(super) let_pass: u64,
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
    /// What the last run of the job found gone or copied.
    pub(super) seen: &'a Seen,
    /// Files that turned out to have other columns than declared.
    pub(super) others: OtherColumns,
}

/// A table about to be loaded: what there is of it, and what it lacks.
pub(super) struct Planned<'a> {
    pub(super) table: &'a Table,
    pub(super) stored: StoredTable,
    pub(super) base: Base,
    pub(super) plan: InputPlan,
}

/// A source about to be loaded into its tables.
pub(super) struct PlannedSource<'a> {
    pub(super) source: &'a Source,
    pub(super) tables: Vec<Planned<'a>>,
}

impl<'a> LoadStage<'a> {
    /// What the tables that are made from sources lack, by source, in the order of the job file.
    pub(super) fn plan(&self) -> Result<Vec<PlannedSource<'a>>, RunError> {
        let job: &'a Job = self.job;
        let mut sources = Vec::with_capacity(job.sources.len());
        for source in &job.sources {
            self.options.stop.check()?;
            let own = |table: &&'a Table| table.from == From::Source(source.spec.name.clone());
            let tables: Vec<&'a Table> = job.tables.iter().filter(own).collect();
            if !tables.is_empty() {
                sources.push(PlannedSource { source, tables: self.plan_source(source, &tables)? });
            }
        }
        Ok(sources)
    }

    /// What the tables of one source lack.
    fn plan_source(&self, source: &Source, tables: &[&'a Table]) -> Result<Vec<Planned<'a>>, RunError> {
        let mut bases = Vec::with_capacity(tables.len());
        for table in tables {
            let stored = self.store.table(&table.spec.name);
            let base = self.base(&stored, table, Some(source))?;
            bases.push((stored, base));
        }
        let found = self.discover(&source.spec, bases.iter().map(|(_, base)| base))?;
        let mut planned = Vec::with_capacity(tables.len());
        let mut hashes: HashMap<String, tidetable_source::ContentHash> = HashMap::new();
        for (table, (stored, base)) in tables.iter().zip(bases) {
            let hash = |file: &InputFile| -> Result<_, SourceError> {
                if let Some(known) = hashes.get(&file.path) {
                    return Ok(*known);
                }
                let hash = self.storage.hash(file)?;
                hashes.insert(file.path.clone(), hash);
                Ok(hash)
            };
            let mut plan = InputPlan::new(&base.version, found.clone(), hash).map_err(StoreError::from)?;
            plan.read_again(&self.options.reread);
            match (&base.latest, &base.reset) {
                (Some(latest), Some(_)) => self.keep_order(&mut plan, latest)?,
                // A rebuilt table holds all its inputs, whatever days are to be published.
                (None, Some(_)) => {}
                (_, None) => within(&mut plan.new, self.options.days.as_ref()),
            }
            planned.push(Planned { table, stored, base, plan });
        }
        Ok(planned)
    }

    /// Loads what was planned, up to the commits, in the order of the job file.
    pub(super) fn load(&self, sources: Vec<PlannedSource<'_>>) -> Result<Vec<Pending>, RunError> {
        let mut pending: Vec<Pending> = Vec::new();
        for PlannedSource { source, tables } in sources {
            let derive = Some(&source.preparation as &dyn Prepare).filter(|_| !source.preparation.is_empty());
            let feed = FileFeed { storage: self.storage, source: &source.spec };
            let feed = Looking { feed, others: &self.others };
            match self.load_planned(&source.spec.name, &feed, derive, tables) {
                Ok(loaded) => pending.extend(loaded),
                Err(error) => {
                    pending.iter().for_each(Pending::discard);
                    return Err(error);
                }
            }
        }
        let place = |load: &Pending| self.job.tables.iter().position(|table| table.spec.name == load.record.table);
        pending.sort_by_key(place);
        Ok(pending)
    }

    /// Loads what tables of one feed lack.
    pub(super) fn load_planned(
        &self,
        source: &str,
        feed: &dyn Feed,
        derive: Option<&dyn Prepare>,
        planned: Vec<Planned<'_>>,
    ) -> Result<Vec<Pending>, RunError> {
        let names: Vec<&str> = planned.iter().map(|planned| planned.table.spec.name.as_str()).collect();
        let name = format!("load {}", names.join(", "));
        let on_progress = |progress: Progress| {
            self.observer.event(match progress {
                Progress::ToRead { bytes } => Event::Stage { name: name.clone(), unit: Unit::Bytes, total: bytes },
                Progress::Read { bytes, rows } => Event::Read { bytes, rows },
                Progress::Laid { rows } => Event::Laid { rows },
                Progress::Wrote { rows } => Event::Wrote { rows },
            });
        };
        let targets = planned.iter().filter(|planned| planned.has_work()).map(|planned| Target {
            table: &planned.stored,
            layout: &planned.table.layout,
            filter: Some(&planned.table.preparation as &dyn Prepare).filter(|_| !planned.table.preparation.is_empty()),
            base: &planned.base.version,
            plan: &planned.plan,
        });
        let loader = Loader {
            feed: &Stoppable { feed, stop: &self.options.stop },
            derive,
            targets: targets.collect(),
            ids: self.ids,
            memory: self.options.memory,
            without: &self.options.without,
            on_reject: self.on_reject,
            on_progress: &on_progress,
        };
        let loaded = loader.load();
        // What was asked to stop fails for that reason, whatever it said first.
        if loaded.is_err() {
            self.options.stop.check()?;
        }
        let mut loaded = loaded?.into_iter();
        let mut pending = Vec::with_capacity(planned.len());
        for planned in planned {
            let loaded = if planned.has_work() { loaded.next() } else { None };
            let found = self.seen.changes(
                &planned.table.spec.name,
                self.inputs_of(&planned.plan),
                planned.plan.unchanged.len() as u64,
            );
            let let_pass = planned.rejected_before(&self.options.reread);
            let loaded = loaded.map(|loaded| planned.unless_the_same(loaded, &self.options.reread));
            pending.push(Pending { let_pass, ..planned.pending(source, loaded, found) });
        }
        Ok(pending)
    }

    /// The files of the source. None is no mistake of a source whose files were loaded before: what
    /// they brought stays.
    fn discover<'b>(
        &self,
        source: &SourceSpec,
        mut bases: impl Iterator<Item = &'b Base>,
    ) -> Result<Vec<InputFile>, StoreError> {
        match self.storage.discover(source) {
            Err(SourceError::NoMatch { .. })
                if bases.any(|base| base.latest.as_ref().is_some_and(|latest| !latest.inputs.is_empty())) =>
            {
                Ok(Vec::new())
            }
            found => Ok(found?),
        }
    }

    /// Inputs of a rebuild keep the order they had, and with it the drops that hold for them; one that is
    /// gone must be given up by name.
    pub(super) fn keep_order(&self, plan: &mut InputPlan, latest: &Version) -> Result<(), RunError> {
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
            None => {
                plan.order_as_in(latest);
                Ok(())
            }
        }
    }

    /// The version to load upon. For a rebuild: one without inputs or windows, and the identity to
    /// give the table.
    pub(super) fn base(&self, stored: &StoredTable, table: &Table, source: Option<&Source>) -> Result<Base, RunError> {
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
            version.drops.clone_from(&latest.drops);
            return Ok(Base { version, latest: Some(latest.clone()), reset: Some(identity), gc: None });
        }
        let version = held?;
        let gc = (version.table.gc != identity.gc).then_some(identity.gc);
        Ok(Base { version, latest, reset: None, gc })
    }

    /// What becomes of each input that does not stay as it is.
    pub(super) fn inputs_of(&self, plan: &InputPlan) -> Vec<InputRecord> {
        let record = |path: &str, state| InputRecord { path: path.to_owned(), state, same_as: None };
        let mut inputs: Vec<InputRecord> = plan.new.iter().map(|file| record(&file.path, InputState::New)).collect();
        inputs.extend(plan.changed.iter().map(|(file, old)| record(&file.path, self.options.state_of(file, old))));
        inputs.extend(plan.grown.iter().map(|(file, _)| record(&file.path, InputState::Grown)));
        for (file, other) in &plan.same {
            inputs.push(InputRecord { same_as: Some(other.clone()), ..record(&file.path, InputState::SameContent) });
        }
        let copies = |input: &&Input| plan.same.iter().any(|(file, _)| file.path == input.path);
        let given_up = plan.given_up.iter().filter(|input| !copies(input));
        inputs.extend(given_up.map(|input| record(&input.path, InputState::TakenOut)));
        for input in &plan.vanished {
            let left_out = self.options.without.contains(&input.path);
            inputs.push(record(&input.path, if left_out { InputState::LeftOut } else { InputState::Gone }));
        }
        inputs
    }
}

/// What a load goes upon.
pub(super) struct Base {
    pub(super) version: Version,
    /// The newest version, if there is one.
    pub(super) latest: Option<Version>,
    /// The identity a rebuild gives the table.
    pub(super) reset: Option<TableIdentity>,
    /// Rules of garbage collection, if they changed.
    pub(super) gc: Option<BTreeMap<String, String>>,
}

impl Planned<'_> {
    /// Whether there is anything to load.
    pub(super) fn has_work(&self) -> bool {
        !self.plan.is_empty() || self.base.reset.is_some()
    }

    /// Rows that the table has rejected, up to now, of the inputs to be read again.
    fn rejected_before(&self, reread: &[String]) -> u64 {
        let again = self.plan.changed.iter().filter(|(file, _)| reread.contains(&file.path));
        again.map(|(_, old)| old.rejected).sum()
    }

    /// What was loaded, but nothing to commit if inputs were read again and gave what the table holds already.
    fn unless_the_same(&self, mut loaded: Loaded, reread: &[String]) -> Loaded {
        let same = |input: &Input| {
            let held = self.plan.changed.iter().find(|(file, _)| file.path == input.path);
            let alike = held.is_some_and(|(_, old)| {
                (old.hash, old.read, old.rejected, &old.days) == (input.hash, input.read, input.rejected, &input.days)
            });
            reread.contains(&input.path) && alike
        };
        let Edit { inputs, removed, .. } = &loaded.edit;
        if self.base.reset.is_some() || inputs.is_empty() || !removed.is_empty() || !inputs.iter().all(same) {
            return loaded;
        }
        self.stored.discard(&loaded.edit);
        loaded.edit = Edit { base: loaded.edit.base, ..Edit::default() };
        let LoadStats { rows_written, cells, overwritten, bytes_out, .. } = &mut loaded.stats;
        (*rows_written, *cells, *overwritten, *bytes_out) = (0, 0, 0, 0);
        loaded
    }

    /// What is to be committed, with its record; `found` says what became of the inputs.
    fn pending(self, source: &str, loaded: Option<Loaded>, found: LoadRecord) -> Pending {
        let Self { table, stored, base: Base { version: base, reset, gc, .. }, .. } = self;
        let Loaded { edit, stats } = loaded.unwrap_or_else(|| Loaded {
            edit: Edit { base: base.number, ..Edit::default() },
            stats: LoadStats::default(),
        });
        let record = LoadRecord {
            source: source.to_owned(),
            before: base.number,
            version: base.number,
            rebuilt: edit.rebuilt.iter().map(|start| window_name(table.spec.window, *start)).collect(),
            ssts: edit.ssts.values().flatten().map(|sst| sst.id.clone()).collect(),
            stats,
            ..found
        };
        Pending { table: stored, base, edit: Edit { reset, gc, ..edit }, let_pass: 0, record }
    }
}

/// Whether more rows of a load were rejected than its source allows.
pub(super) fn check_rejected(job: &Job, run: &str, load: &Pending) -> Result<(), RunError> {
    let record = &load.record;
    let Some(source) = job.source(&record.source).map(|source| &source.spec) else { return Ok(()) };
    let (rejected, read) = (record.stats.rows_rejected, record.stats.rows_read);
    if !source.max_rejected.exceeded(rejected.saturating_sub(load.let_pass), read) {
        return Ok(());
    }
    Err(RunError::TooManyRejected {
        source_name: source.name.clone(),
        rejected,
        read,
        limit: source.max_rejected.to_string(),
        log: tidetable_record::rejects_path(run, None),
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
        // A table of a job is there after its first run, even if nothing came.
        if !self.edit.is_empty() || self.base.number == 0 {
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
