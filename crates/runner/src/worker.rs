//! Runs units that another process planned.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tidetable_blobs::Blobs;
use tidetable_ingest::{Feed, FileFeed, LoadUnit, LoadUnitDone, Prepare, RejectedRow, TableTarget, UnitLoader};
use tidetable_job::{Job, Project, Table};
use tidetable_record::last_holder;
use tidetable_source::panics::catch;
use tidetable_sql::{Session, SessionOptions, TableVersions};
use tidetable_store::{Ids, Store, StoreError, Table as StoredTable, ulid_text};
use tokio::runtime::Handle;

use crate::checks::checker::Checker;
use crate::fault::error::RunError;
use crate::fault::stop::Stop;
use crate::fault::stop::Stoppable;
use crate::fault::transient::is_transient;
use crate::fault::unit_failure::UnitFailure;
use crate::ids::UlidIds;
use crate::root::open_root;
use crate::run::stages::derived::{DerivedQuery, QueryFeed};
use crate::secrets::source_storage;
use crate::units::build::build;
use crate::units::columns::{ColumnDiffFeed, OtherColumns};
use crate::units::compact;
use crate::units::publish::PartContext;
use crate::units::rejects::RejectBuffer;
use crate::units::wire::{Answer, Done, JobReference, Unit, Work};
use crate::units::work::{LoadAnswer, LoadFrom, LoadWork, ParkedPart, PublishWork, Versions};

/// How long a unit is kept that this executor cannot do: sent back at once, it would come again before others have room.
const UNFIT_HOLD: Duration = Duration::from_secs(2);
/// Poll interval of a unit that waits.
const PAUSE: Duration = Duration::from_millis(5);

/// What a worker runs units by.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// Its name in answers and records.
    pub name: String,
    /// Memory of a unit, bytes.
    pub memory: u64,
    /// As `temp_dir` of [`Loader`](tidetable_ingest::Loader).
    pub temp_dir: Option<PathBuf>,
}

/// Runs units in this process: of the jobs of one project, in one root.
#[derive(Debug)]
pub struct Worker {
    options: WorkerOptions,
    project: Project,
    blobs: Arc<dyn Blobs>,
    runtime: Handle,
    ids: UlidIds,
    clock: fn() -> i64,
    jobs: Mutex<HashMap<JobReference, Arc<Job>>>,
    /// The session of the export that was published last: its parts share it, as in one process.
    last: Mutex<Option<(SessionKey, Session)>>,
}

/// What a session depends on.
#[derive(Debug, PartialEq, Eq)]
struct SessionKey {
    /// Name of the run.
    run: String,
    export: String,
    /// The versions that it reads.
    versions: Versions,
}

/// Why a unit gave no answer. It may be run again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkerError {
    /// A transient error: of the disk, the network or the object store of an executor.
    #[error("executor {executor}: {reason}")]
    Transient {
        /// The name of the executor.
        executor: String,
        /// What failed, in words.
        reason: String,
    },
    /// The unit was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The answer cannot be encoded.
    #[error("the answer cannot be encoded: {0}")]
    Encode(#[from] serde_json::Error),
}

impl WorkerError {
    /// The same as an I/O error, which engines retry.
    pub fn into_io(self) -> io::Error {
        let kind = match &self {
            Self::Cancelled => io::ErrorKind::Interrupted,
            Self::Transient { .. } | Self::Encode(_) => io::ErrorKind::Other,
        };
        io::Error::new(kind, self)
    }
}

impl Worker {
    /// A worker of `project`. Queries and requests run on `runtime`, whose threads must not call [`Self::run`].
    ///
    /// # Errors
    /// If the settings of the root are missing or wrong, or this program cannot be told from others.
    pub fn open(
        project: Project,
        options: WorkerOptions,
        runtime: Handle,
        clock: fn() -> i64,
    ) -> Result<Self, RunError> {
        build().map_err(RunError::Build)?;
        let blobs = open_root(&project)?;
        let (ids, jobs, last) = (UlidIds::default(), Mutex::default(), Mutex::default());
        Ok(Self { options, project, blobs, runtime, ids, clock, jobs, last })
    }

    /// Runs a unit, until `stop` is asked for, and returns its answer. An error that no retry mends is an answer, too.
    ///
    /// # Errors
    /// [`WorkerError`]: the unit may be run again, here or elsewhere.
    pub fn run(&self, unit: &[u8], stop: &Stop) -> Result<Vec<u8>, WorkerError> {
        let clock = Instant::now();
        let this_build = build().map_err(|error| self.transient(error.to_string()))?;

        let done = match Unit::decode(unit, this_build) {
            Err(error) => Err(self.refused(error.to_string(), error.is_unfit(), stop)),
            Ok(unit) => match catch(|| self.work(&unit, stop)).unwrap_or_else(|panicked| Err(panicked.into())) {
                Ok(done) => Ok(done),
                Err(_) if stop.asked().is_some() => return Err(WorkerError::Cancelled),
                Err(error) if is_transient(&error) => return Err(self.transient(error.to_string())),
                Err(error) => Err(self.refused(error.to_string(), error.is_unfit(), stop)),
            },
        };
        Ok(Answer { executor: self.options.name.clone(), seconds: clock.elapsed().as_secs_f64(), done }.encode()?)
    }

    /// The failure of a unit that no retry here mends. If this executor does not fit the run, its log says so, too.
    fn refused(&self, message: String, unfit: bool, stop: &Stop) -> UnitFailure {
        if unfit {
            tracing::warn!("executor {} takes no part in a run: {message}", self.options.name);
            // A unit that is stopped meanwhile is answered all the same.
            let _ = self.wait(UNFIT_HOLD, stop);
        }
        UnitFailure { message, executor: self.options.name.clone(), transient: false, unfit }
    }

    /// The failure of a unit that may go better elsewhere, which is told in the log of this executor, too.
    fn transient(&self, reason: String) -> WorkerError {
        tracing::warn!(executor = self.options.name, "a unit failed and is tried again, on any executor: {reason}");
        WorkerError::Transient { executor: self.options.name.clone(), reason }
    }

    fn work(&self, unit: &Unit, stop: &Stop) -> Result<Done, RunError> {
        if unit.root != self.project.root {
            let (theirs, own) = (unit.root.clone(), self.project.root.clone());
            return Err(RunError::OtherRoot { theirs, own });
        }

        let store = Store::new(Arc::clone(&self.blobs));
        match &unit.work {
            Work::Wait(millis) => self.wait(Duration::from_millis(*millis), stop),
            Work::Compact(work) => compact::run(&store, work, &self.ids, stop).map(Done::Compact),
            Work::Load(work) => {
                let job = self.job(unit, &store)?;
                self.load(unit, &job, work, &store, stop).map(Done::Load)
            }
            Work::Publish(work) => {
                let job = self.job(unit, &store)?;
                self.publish(unit, &job, work, &store, stop).map(|part| Done::Publish(Box::new(part)))
            }
        }
    }

    fn wait(&self, time: Duration, stop: &Stop) -> Result<Done, RunError> {
        let clock = Instant::now();
        while clock.elapsed() < time {
            stop.check()?;
            std::thread::sleep(PAUSE.min(time.saturating_sub(clock.elapsed())));
        }
        Ok(Done::Wait)
    }

    /// The job of a unit. It is read from the project of this machine, and must be the one that the driver has; its lock
    /// must name the run, which no lock of another root does.
    fn job(&self, unit: &Unit, store: &Store) -> Result<Arc<Job>, RunError> {
        let asked = unit.job.as_ref().ok_or_else(|| self.unknown_job(""))?;
        let holder = last_holder(store.blobs().as_ref(), &asked.name)?;
        if holder.is_none_or(|holder| holder.run != unit.run) {
            return Err(RunError::NotHere { run: unit.run.clone(), root: self.project.root.clone() });
        }

        if let Some(job) = self.jobs().get(asked) {
            return Ok(Arc::clone(job));
        }

        let job = Job::load(&self.project, &asked.path).map_err(|error| RunError::JobElsewhere {
            job: asked.name.clone(),
            dir: self.project.dir.clone(),
            reason: error.to_string(),
        })?;
        if JobReference::of(&self.project, &job) != *asked {
            return Err(RunError::OtherJob { job: asked.name.clone(), dir: self.project.dir.clone() });
        }

        let job = Arc::new(job);
        self.jobs().retain(|known, _| known.name != asked.name);
        self.jobs().insert(asked.clone(), Arc::clone(&job));
        Ok(job)
    }

    fn jobs(&self) -> MutexGuard<'_, HashMap<JobReference, Arc<Job>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error of a unit that names a job, table, source or export that is not here.
    fn unknown_job(&self, name: &str) -> RunError {
        RunError::UnknownJob { job: name.to_owned(), dir: self.project.dir.clone() }
    }

    /// A session over pinned versions.
    fn session(&self, store: &Store, versions: &Versions) -> Result<Session, RunError> {
        let numbers = versions.iter().map(|(table, (number, _))| (table.clone(), *number)).collect();
        for (table, (number, commit)) in versions {
            if store.table(table).version(*number)?.commit != *commit {
                return Err(RunError::NotHere {
                    run: format!("version {number} of {table}"),
                    root: self.project.root.clone(),
                });
            }
        }
        let versions = TableVersions { numbers, as_of: None };

        let session = Session::open(store, &SessionOptions { versions, ..SessionOptions::default() });
        session.map_err(|error| RunError::Query { export: "a unit".to_owned(), source: Box::new(error) })
    }

    /// The session of an export in a run, opened once.
    fn shared_session(&self, store: &Store, key: SessionKey) -> Result<Session, RunError> {
        if let Some((_, session)) = self.last_session().as_ref().filter(|(known, _)| *known == key) {
            return Ok(session.clone());
        }

        let session = self.session(store, &key.versions)?;
        *self.last_session() = Some((key, session.clone()));
        Ok(session)
    }

    fn last_session(&self) -> MutexGuard<'_, Option<(SessionKey, Session)>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn load(
        &self,
        unit: &Unit,
        job: &Job,
        work: &LoadWork,
        store: &Store,
        stop: &Stop,
    ) -> Result<LoadAnswer, RunError> {
        let tables = work.tables.iter().map(|name| job.table(name).ok_or_else(|| self.unknown_job(name)));
        let tables: Vec<&Table> = tables.collect::<Result<_, _>>()?;
        let token = ulid_text(self.ids.next());
        let rejects = RejectBuffer::new(store.blobs().as_ref(), &token);
        let others = OtherColumns::default();

        let done = match &work.from {
            LoadFrom::Source(name) => {
                let source = job.source(name).ok_or_else(|| self.unknown_job(name))?;
                let storage = source_storage(&self.project, job, &self.runtime, stop)?.with_clock(self.clock);
                let placed = work.unit.clone().with_files(&|file| storage.resolve(&source.spec, file));
                let placed = placed.map_err(StoreError::from)?;

                let derive = Some(&source.preparation as &dyn Prepare).filter(|_| !source.preparation.is_empty());
                let feed = FileFeed { storage: &storage, source: &source.spec };
                let feed = ColumnDiffFeed { feed, others: &others };
                self.load_from(&Stoppable { feed: &feed, stop }, derive, &tables, store, &rejects, &placed)?
            }
            LoadFrom::Query { versions, times } => {
                let query = tables.iter().find_map(|table| DerivedQuery::of(table));
                let query = query.ok_or_else(|| self.unknown_job(&unit.run))?;
                let session = self.session(store, versions)?;
                let times: HashMap<String, Range<i64>> =
                    times.iter().map(|(path, (start, end))| (path.clone(), *start..*end)).collect();

                let feed = QueryFeed::new(&session, query, times, &self.runtime, stop);
                self.load_from(&Stoppable { feed: &feed, stop }, None, &tables, store, &rejects, &work.unit)?
            }
        };
        Ok(LoadAnswer { done, rejected: rejects.finish()?, others: others.into_files() })
    }

    /// Loads what `feed` gives for `unit` into tables, after it is prepared by `derive`.
    fn load_from(
        &self,
        feed: &dyn Feed,
        derive: Option<&dyn Prepare>,
        tables: &[&Table],
        store: &Store,
        rejects: &RejectBuffer<'_>,
        unit: &LoadUnit,
    ) -> Result<LoadUnitDone, RunError> {
        let stored: Vec<StoredTable> = tables.iter().map(|table| store.table(&table.spec.name)).collect();
        let targets = tables.iter().zip(&stored).map(|(table, stored)| TableTarget {
            table: stored,
            layout: &table.layout,
            filter: Some(&table.preparation as &dyn Prepare).filter(|_| !table.preparation.is_empty()),
            gc: &table.gc,
        });

        let loader = UnitLoader {
            feed,
            derive,
            tables: targets.collect(),
            ids: &self.ids,
            memory: self.options.memory,
            temp_dir: self.options.temp_dir.as_deref(),
            on_reject: &|row: &RejectedRow| rejects.keep(row),
            on_progress: &|_| {},
        };
        Ok(loader.run(unit)?)
    }

    fn publish(
        &self,
        unit: &Unit,
        job: &Job,
        work: &PublishWork,
        store: &Store,
        stop: &Stop,
    ) -> Result<ParkedPart, RunError> {
        let export = job.export(&work.export).ok_or_else(|| self.unknown_job(&work.export))?;
        let period = work.period(export).ok_or_else(|| self.unknown_job(&work.export))?;

        let tables: Vec<String> = work.versions.keys().cloned().collect();
        let (run, versions) = (unit.run.clone(), work.versions.clone());
        let key = SessionKey { run, export: work.export.clone(), versions };
        let session = self.shared_session(store, key)?.restricted(period.bounds(job.timezone));
        let params = work.params(&period, job, unit.now);

        let token = ulid_text(self.ids.next());
        let checker = Checker::new(job, &unit.run);
        let context = PartContext { job, store, export, now: unit.now, run: &unit.run, apart: Some(&token) };
        let written = self.runtime.block_on(async {
            tokio::select! {
                written = work.write(context, &session, &params, &checker, &tables) => written,
                stopped = stop.wait() => Err(stopped),
            }
        })?;
        written.park(checker.failing())
    }
}
