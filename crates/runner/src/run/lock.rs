//! One run of a job at a time: `locks/<job>.lock` is locked while it goes on.
//!
//! The lock is the operating system's, so it goes with the process that holds it, however that ends: none is ever stale.
//! What the file holds only tells people who it is.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::error::RunError;
use super::stop::Stop;

/// Between two looks at a lock that another holds.
const PAUSE: Duration = Duration::from_millis(100);

/// What to do if another run of the job goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IfLocked {
    /// Fail.
    #[default]
    Fail,
    /// Do nothing: the other one does it.
    Skip,
    /// Wait for its end, so long at most.
    Wait(Option<Duration>),
}

/// Who holds a lock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The run.
    pub run: String,
    /// Its process.
    pub process: u32,
}

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// Takes the lock of `job` in the store at `root`. `None`: another run holds it, and is to be left alone.
///
/// # Errors
/// [`RunError::Locked`] if another run holds it, and those of the file system.
pub(super) fn take(
    root: &Path,
    job: &str,
    holder: &Holder,
    if_locked: IfLocked,
    stop: &Stop,
) -> Result<Option<Lock>, RunError> {
    let path = path(root, job);
    let failed = |source| RunError::Lock { path: path.clone(), source };
    std::fs::create_dir_all(root.join(FOLDER)).map_err(failed)?;
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
    let clock = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(source)) => return Err(failed(source)),
            Err(TryLockError::WouldBlock) => {}
        }
        let waits = match if_locked {
            IfLocked::Skip => return Ok(None),
            IfLocked::Fail => false,
            IfLocked::Wait(most) => most.is_none_or(|most| clock.elapsed() < most),
        };
        if !waits {
            let holder = read(&mut file).unwrap_or_default();
            return Err(RunError::Locked { job: job.to_owned(), run: holder.run, process: holder.process });
        }
        stop.check()?;
        std::thread::sleep(PAUSE);
    }
    let text = serde_json::to_vec(holder).map_err(|error| failed(error.into()))?;
    let written = file.seek(SeekFrom::Start(0)).and_then(|_| file.set_len(0)).and_then(|()| file.write_all(&text));
    written.map_err(failed)?;
    Ok(Some(Lock { _file: file }))
}

/// Who runs `job` now, in the store at `root`; `None` if nobody does.
///
/// # Errors
/// If the lock cannot be looked at.
pub fn holder(root: &Path, job: &str) -> Result<Option<Holder>, RunError> {
    let path = path(root, job);
    let failed = |source| RunError::Lock { path: path.clone(), source };
    let mut file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(read(&mut file).unwrap_or_default())),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

const FOLDER: &str = "locks";

fn path(root: &Path, job: &str) -> PathBuf {
    root.join(FOLDER).join(format!("{job}.lock"))
}

fn read(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text)).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(root: &Path, run: &str, if_locked: IfLocked) -> Result<Option<Lock>, RunError> {
        take(root, "j", &Holder { run: run.to_owned(), process: 7 }, if_locked, &Stop::default())
    }

    #[test]
    fn one_holds_it_until_it_lets_go() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(holder(root.path(), "j").unwrap(), None);
        let first = lock(root.path(), "first and long", IfLocked::Fail).unwrap();
        assert!(first.is_some());
        assert_eq!(holder(root.path(), "j").unwrap().unwrap().run, "first and long");
        let Err(RunError::Locked { run, process, .. }) = lock(root.path(), "second", IfLocked::Fail) else { panic!() };
        assert_eq!((run.as_str(), process), ("first and long", 7));
        assert!(lock(root.path(), "second", IfLocked::Skip).unwrap().is_none());
        assert!(lock(root.path(), "second", IfLocked::Wait(Some(Duration::ZERO))).is_err());
        drop(first);
        assert_eq!(holder(root.path(), "j").unwrap(), None);
        let second = lock(root.path(), "second", IfLocked::Wait(None)).unwrap();
        assert!(second.is_some());
        assert_eq!(holder(root.path(), "j").unwrap().unwrap().run, "second");
    }
}
