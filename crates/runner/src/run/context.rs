//! What the stages of a run share: the job, the store, the options and the observer.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use tidetable_job::{Job, Project, Stage};
use tidetable_record::{Failures, KnownVersions, RunRecord, Seen};
use tidetable_source::Storage;
use tidetable_store::{Ids, Store};

use crate::fault::error::RunError;
use crate::observe::{Event, Observer};
use crate::options::run_options::RunOptions;
use crate::run::retry::Retry;
use crate::units::tally::Tally;
use crate::units::wire::JobReference;

/// Records of runs that are asked for the versions that they name, the newest first.
const RECORDS: usize = 16;

/// What the stages of a run share.
pub(crate) struct Run<'a> {
    pub(crate) project: &'a Project,
    pub(crate) job: &'a Job,
    pub(crate) options: &'a RunOptions,
    pub(crate) ids: &'a dyn Ids,
    pub(crate) observer: &'a dyn Observer,
    pub(crate) store: &'a Store,
    pub(crate) storage: &'a Storage,
    pub(crate) runtime: &'a tokio::runtime::Handle,
    /// Gone and copied inputs that the last run of the job saw.
    pub(crate) seen: &'a Seen,
    /// The tables that exports read, cached because finding them plans the queries.
    pub(crate) reads: Mutex<HashMap<String, Vec<String>>>,
    /// What is still to be done for the job as it was read; `None` before.
    pub(crate) failures: Mutex<Option<Failures>>,
    /// The root as the project names it.
    pub(crate) root: &'a str,
    /// The job as other processes find it; `None` without a carrier.
    pub(crate) reference: Option<&'a JobReference>,
    /// Counts what other processes do for the run.
    pub(crate) tally: Tally,
}

impl Run<'_> {
    /// Refuses tables of the job whose newest manifests were lost: loading upon what is left would hide it. Each export of the job
    /// is asked when its list is read; in a bucket, it alone.
    pub(crate) fn check_versions(&self) -> Result<(), RunError> {
        let blobs = self.store.blobs().as_ref();
        if blobs.capabilities().round_trips {
            return Ok(());
        }
        let tables: Vec<String> = self.job.tables.iter().map(|table| table.spec.name.clone()).collect();
        let known = KnownVersions::of_records(blobs, &tables, RECORDS)?;
        for table in &tables {
            if let Some(newest) = self.store.table(table).latest()? {
                known.check(self.store, table, &newest)?;
            }
        }
        Ok(())
    }

    /// Does `work`, a unit of `stage` called `name`, and retries it after transient errors as the job file
    /// allows. What a failed attempt has committed stays, so `work` starts from the current state.
    pub(crate) fn attempts<T>(
        &self,
        stage: Stage,
        name: &str,
        record: &mut RunRecord,
        mut work: impl FnMut(&mut RunRecord) -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        let mut retry = Retry::new(stage, self.job, self.options, self.observer);
        loop {
            match work(record) {
                Ok(done) => return Ok(done),
                Err(error) => {
                    self.store.read_anew();
                    retry.after(name, error, &mut record.attempts)?;
                }
            }
        }
    }

    /// The tables that its exports read and that other jobs make, as far as the run asked for them.
    pub(crate) fn tables_of_others(&self) -> BTreeSet<String> {
        let reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let others =
            reads.values().flatten().filter(|name| !self.job.tables.iter().any(|table| table.spec.name == **name));
        others.cloned().collect()
    }

    /// Reports a note and adds it to the record.
    pub(crate) fn note(&self, record: &mut RunRecord, note: String) {
        if !record.notes.contains(&note) {
            self.observer.event(Event::Note(note.clone()));
            record.notes.push(note);
        }
    }
}

/// Adds the time since `clock` to the duration of a part of the run.
pub(crate) fn took(record: &mut RunRecord, part: &str, clock: Instant) {
    *record.seconds.entry(part.to_owned()).or_default() += clock.elapsed().as_secs_f64();
}
