//! Who runs a job now: `locks/<job>.lock` is locked by the process that does, and says which it is.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Result, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::run::{Outcome, RunRecord};

/// Who holds a lock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The run.
    pub run: String,
    /// Its process.
    pub process: u32,
}

/// The lock of `job` in the store at `root`.
pub fn lock_path(root: &Path, job: &str) -> PathBuf {
    root.join("locks").join(format!("{job}.lock"))
}

/// Who runs `job` now, in the store at `root`; `None` if nobody does.
///
/// # Errors
/// If the lock cannot be looked at.
pub fn holder(root: &Path, job: &str) -> Result<Option<Holder>> {
    let mut file = match File::open(lock_path(root, job)) {
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

/// How a run ended, or `running`; `killed` if its record says that it goes on and nobody holds its lock.
///
/// # Errors
/// If the lock cannot be looked at.
pub fn state_of(root: &Path, record: &RunRecord) -> Result<&'static str> {
    if record.outcome != Outcome::Running {
        return Ok(record.outcome.name());
    }
    // Another run of the job has begun since: this one has ended, whoever holds the lock.
    let goes_on = holder(root, &record.job)?.is_some_and(|holder| holder.run == record.run);
    Ok(if goes_on { "running" } else { "killed" })
}

/// What a lock file says.
pub fn read_holder(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text)).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

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
        let state = |run, outcome| state_of(root.path(), &record(run, outcome)).unwrap();
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
}
