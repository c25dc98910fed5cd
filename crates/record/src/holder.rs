//! Who runs a job now: `locks/<job>.lock` is locked by the process that does, and says which it is.

use std::fs::{File, TryLockError};
use std::io::{ErrorKind, Read, Result, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

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

/// What a lock file says.
pub fn read_holder(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text)).ok()?;
    serde_json::from_str(&text).ok()
}
