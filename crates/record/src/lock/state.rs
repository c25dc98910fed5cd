//! Who holds the lock of a job, and what that tells of its last run.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::Path;

use tidetable_blobs::{BlobError, Blobs};
use tidetable_store::StoreError;

use crate::lock::holder::{Holder, LOCKS, lock_name, lock_path, read_holder};
use crate::lock::lease::Lease;
use crate::part::ExportRecord;
use crate::run::{FORMAT, Outcome, RunRecord};

/// The record of the last run of `job`, if it failed and the record could not be written.
pub fn unrecorded(blobs: &dyn Blobs, job: &str) -> Option<RunRecord> {
    let held = match blobs.directory() {
        Some(root) => read_holder(&mut File::open(lock_path(root, job)).ok()?)?,
        None => Lease::load(blobs, job).ok()??.0.holder,
    };
    let failed = held.failed?;
    let of_export = |(export, labels): (&String, &Vec<String>)| {
        let part = |label: &String| ExportRecord::failed(export, label);
        labels.iter().map(part).collect::<Vec<_>>()
    };
    let exports = failed.parts.iter().flat_map(of_export).collect();
    Some(RunRecord {
        format: FORMAT,
        run: held.run,
        job: job.to_owned(),
        now: failed.now,
        started: failed.started,
        finished: Some(failed.finished),
        outcome: if failed.interrupted { Outcome::Interrupted } else { Outcome::Failed },
        error: Some(failed.error),
        exports,
        ..RunRecord::default()
    })
}

/// The last runs of jobs that failed without a written record, oldest first.
pub fn all_unrecorded(blobs: &dyn Blobs) -> Vec<RunRecord> {
    let names = blobs.list(LOCKS).unwrap_or_default();
    let jobs = names.iter().filter_map(|name| name.strip_suffix(".lock"));
    let mut found: Vec<RunRecord> = jobs.filter_map(|job| unrecorded(blobs, job)).collect();
    found.sort_unstable_by(|a, b| a.run.cmp(&b.run));
    found
}

/// The run that took the lock of `job` last, dead or alive; `None` if none ever did. The lock itself is not touched.
///
/// # Errors
/// If it cannot be read.
pub fn last_holder(blobs: &dyn Blobs, job: &str) -> Result<Option<Holder>, StoreError> {
    let Some(root) = blobs.directory() else {
        return Ok(Lease::load(blobs, job)?.map(|(lease, _)| lease.holder));
    };
    let path = lock_path(root, job);
    match File::open(&path) {
        Ok(mut file) => Ok(read_holder(&mut file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => {
            Err(StoreError::Blob(BlobError::Io { action: "read", path: path.display().to_string(), source }))
        }
    }
}

/// The holder of the lock of `job`; `None` if it is free. In a bucket that is whoever took it last and did not give it
/// back, dead or alive: see [`state_of`].
///
/// # Errors
/// If the lock cannot be tested.
pub fn holder(blobs: &dyn Blobs, job: &str) -> Result<Option<Holder>, StoreError> {
    let Some(root) = blobs.directory() else {
        let lease = Lease::load(blobs, job)?.map(|(lease, _)| lease);
        return Ok(lease.filter(|lease| !lease.free).map(|lease| lease.holder));
    };
    let path = lock_path(root, job);
    let holder = file_holder(&path);
    holder
        .map_err(|source| StoreError::Blob(BlobError::Io { action: "lock", path: path.display().to_string(), source }))
}

/// The holder of a lock file; `None` if it is free or does not exist.
fn file_holder(path: &Path) -> io::Result<Option<Holder>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(read_holder(&mut file).unwrap_or_default())),
        Err(TryLockError::Error(source)) => Err(source),
    }
}

/// The outcome of a run, or `running`; `killed` if its record has no outcome and its lock is free. In a bucket a killed run
/// counts as running until its lease is abandoned at `clock`, microseconds.
///
/// # Errors
/// If the lock cannot be tested.
pub fn state_of(blobs: &dyn Blobs, record: &RunRecord, clock: i64) -> Result<&'static str, StoreError> {
    if record.outcome != Outcome::Running {
        return Ok(record.outcome.name());
    }
    // If another run of the job holds the lock, this one has ended.
    let mut goes_on = holder(blobs, &record.job)?.is_some_and(|holder| holder.run == record.run);
    if goes_on && blobs.directory().is_none() {
        let lease = Lease::load(blobs, &record.job)?.map(|(lease, _)| lease).unwrap_or_default();
        let modified = blobs.stat(&lock_name(&record.job))?.and_then(|found| found.modified);
        goes_on = modified.is_none_or(|modified| !lease.is_abandoned(modified, clock));
    }
    Ok(if goes_on { "running" } else { "killed" })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tidetable_blobs::LocalBlobs;

    use super::*;

    #[test]
    fn a_run_goes_on_while_it_holds_its_lock() {
        let root = tempfile::tempdir().unwrap();
        let record = |run: &str, outcome| RunRecord {
            run: run.to_owned(),
            job: "j".to_owned(),
            outcome,
            ..RunRecord::default()
        };
        let blobs = LocalBlobs::new(root.path().to_owned());
        let state = |run, outcome| state_of(&blobs, &record(run, outcome), 0).unwrap();
        assert_eq!(state("a", Outcome::Running), "killed");
        std::fs::create_dir(root.path().join("locks")).unwrap();
        let mut file = File::create(lock_path(root.path(), "j")).unwrap();
        file.lock().unwrap();
        file.write_all(b"{\"run\":\"b\",\"process\":7}").unwrap();
        assert_eq!((state("a", Outcome::Running), state("b", Outcome::Running)), ("killed", "running"));
        assert_eq!(state("a", Outcome::Failed), "failed");
        drop(file);
        assert_eq!(state("b", Outcome::Running), "killed");
    }

    #[test]
    fn a_failure_that_has_no_record_stands_in_the_lock() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("locks")).unwrap();
        let mut file = File::create(lock_path(root.path(), "j")).unwrap();
        let blobs = LocalBlobs::new(root.path().to_owned());
        let holder = Holder { run: "b".to_owned(), process: 7, ..Holder::default() };
        holder.write(&mut file).unwrap();
        let length = file.metadata().unwrap().len();
        assert_eq!(unrecorded(&blobs, "j"), None);
        let error = Some("no space \u{1f4be} ".repeat(1_000));
        let parts = (0..1_000).map(|day| ExportRecord::failed("E", &format!("day-{day:03}")));
        let exports: Vec<ExportRecord> = parts.collect();
        let record = RunRecord {
            now: 1,
            started: 2,
            finished: Some(3),
            outcome: Outcome::Failed,
            error,
            exports: exports.clone(),
            ..RunRecord::default()
        };
        holder.clone().failing(&record).write(&mut file).unwrap();
        assert_eq!(file.metadata().unwrap().len(), length, "a full disk has room for no more");
        let told = unrecorded(&blobs, "j").unwrap();
        assert_eq!((told.run.as_str(), told.now, told.finished, told.outcome), ("b", 1, Some(3), Outcome::Failed));
        assert!(told.error.as_ref().unwrap().starts_with("no space"));
        let kept = told.exports.len();
        assert!(kept > 100 && told.exports[..] == exports[..kept], "{kept} parts");
        assert_eq!(all_unrecorded(&blobs), std::slice::from_ref(&told));
        // Its record may already have some results.
        let mut begun = RunRecord { run: "b".to_owned(), rows_rejected: 7, ..RunRecord::default() };
        begun.end_as(&told);
        assert_eq!((begun.outcome, begun.finished, begun.rows_rejected), (Outcome::Failed, Some(3), 7));
        assert_eq!(begun.exports.len(), kept);
        holder.write(&mut file).unwrap();
        assert_eq!(unrecorded(&blobs, "j"), None);
    }
}
