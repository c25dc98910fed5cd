//! The lock of a job, `locks/<job>.lock`, allows one run at a time.
//!
//! It is a lock of the operating system, which ends with the process, so there are no stale locks.
//! The content of the file only informs.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use tidetable_record::{Holder, RunRecord, lock_path, read_holder};

use crate::run::error::RunError;
use crate::run::stop::Stop;

/// Attempts before a lock counts as held by a run: `status` holds it briefly to test it.
const LOOKS: u32 = 3;
/// Wait between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// What to do if another run of the job holds the lock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IfLocked {
    /// Fail.
    #[default]
    Fail,
    /// Do nothing.
    Skip,
    /// Wait until it ends, up to a limit.
    Wait(Option<Duration>),
}

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    holder: Holder,
}

impl Lock {
    /// Writes the name of the run. Errors are ignored: the content only informs.
    pub(crate) fn tell(&mut self, run: &str) {
        self.holder = Holder { run: run.to_owned(), process: std::process::id(), failed: None };
        let _ = self.holder.write(&mut self.file);
    }

    /// Writes that the run failed and that its record could not be written.
    pub(crate) fn tell_failure(&mut self, record: &RunRecord) {
        let _ = self.holder.clone().failing(record).write(&mut self.file);
    }
}

/// Takes the lock of `job` in the store at `root`. `None`: another run holds it, and the option says to skip.
///
/// # Errors
/// [`RunError::Locked`] if another run holds it, and those of the file system.
pub(crate) fn take(root: &Path, job: &str, if_locked: IfLocked, stop: &Stop) -> Result<Option<Lock>, RunError> {
    let path = lock_path(root, job);
    let failed = |source| RunError::Lock { path: path.clone(), source };
    path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
    let clock = Instant::now();
    let mut looks = 0;
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(source)) => return Err(failed(source)),
            Err(TryLockError::WouldBlock) => {}
        }
        looks += 1;
        let waits = match if_locked {
            _ if looks < LOOKS => true,
            IfLocked::Skip => return Ok(None),
            IfLocked::Fail => false,
            IfLocked::Wait(most) => most.is_none_or(|most| clock.elapsed() < most),
        };
        if !waits {
            let holder = read_holder(&mut file).unwrap_or_default();
            return Err(RunError::Locked { job: job.to_owned(), run: holder.run, process: holder.process });
        }
        stop.check()?;
        std::thread::sleep(PAUSE);
    }
    Ok(Some(Lock { file, holder: Holder::default() }))
}

/// Takes the locks of all jobs that ever ran in the store at `root`, to exclude runs until they are dropped.
///
/// # Errors
/// [`RunError::Running`] if one runs, and those of the file system.
pub(crate) fn take_all(root: &Path) -> Result<Vec<File>, RunError> {
    let folder = root.join("locks");
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| RunError::Lock { path, source }
    };
    let entries = match std::fs::read_dir(&folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(failed(&folder))?,
    };
    let mut held = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed(&folder))?.path();
        if path.extension().is_none_or(|ending| ending != "lock") {
            continue;
        }
        let mut file = OpenOptions::new().read(true).write(true).open(&path).map_err(failed(&path))?;
        let mut looks = 0;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(source)) => return Err(failed(&path)(source)),
                Err(TryLockError::WouldBlock) => looks += 1,
            }
            if looks >= LOOKS {
                let job = path.file_stem().map(|job| job.to_string_lossy().into_owned()).unwrap_or_default();
                let holder = read_holder(&mut file).unwrap_or_default();
                return Err(RunError::Running { job, run: holder.run, process: holder.process });
            }
            std::thread::sleep(PAUSE);
        }
        held.push(file);
    }
    Ok(held)
}

#[cfg(test)]
mod tests {
    use tidetable_record::holder;

    use super::*;

    fn lock(root: &Path, run: &str, if_locked: IfLocked) -> Result<Option<Lock>, RunError> {
        let mut lock = take(root, "j", if_locked, &Stop::default())?;
        lock.iter_mut().for_each(|lock| lock.tell(run));
        Ok(lock)
    }

    #[test]
    fn one_holds_it_until_it_lets_go() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(holder(root.path(), "j").unwrap(), None);
        let first = lock(root.path(), "first and long", IfLocked::Fail).unwrap();
        assert!(first.is_some());
        assert_eq!(holder(root.path(), "j").unwrap().unwrap().run, "first and long");
        let Err(RunError::Locked { run, process, .. }) = lock(root.path(), "second", IfLocked::Fail) else { panic!() };
        assert_eq!((run.as_str(), process), ("first and long", std::process::id()));
        assert!(lock(root.path(), "second", IfLocked::Skip).unwrap().is_none());
        assert!(lock(root.path(), "second", IfLocked::Wait(Some(Duration::ZERO))).is_err());
        drop(first);
        assert_eq!(holder(root.path(), "j").unwrap(), None);
        let second = lock(root.path(), "second", IfLocked::Wait(None)).unwrap();
        assert!(second.is_some());
        assert_eq!(holder(root.path(), "j").unwrap().unwrap().run, "second");
    }
}
