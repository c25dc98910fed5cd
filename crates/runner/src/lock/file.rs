//! The lock of a job in a directory: a lock of the operating system on a file, whose content only informs.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidetable_record::{Holder, lock_path, read_holder};

use super::look::Look;
use crate::fault::error::RunError;

/// Attempts before a lock counts as held by a run: `status` holds it briefly to test it.
const LOOKS: u32 = 3;
/// Wait between two attempts.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

/// The locked file of a job, and what was written into it.
#[derive(Debug)]
pub(crate) struct FileLock {
    file: File,
    pub(super) holder: Holder,
}

impl FileLock {
    /// Writes its holder. Errors are ignored.
    pub(super) fn tell(&mut self, holder: Holder) {
        self.holder = holder;
        let _ = self.holder.write(&mut self.file);
    }
}

/// Repeated looks at a lock file.
pub(super) struct FileAttempt {
    path: PathBuf,
    file: Option<File>,
    looks: u32,
}

impl FileAttempt {
    pub(super) fn new(root: &Path, job: &str) -> Self {
        Self { path: lock_path(root, job), file: None, looks: 0 }
    }

    pub(super) fn look(&mut self) -> Result<Look<FileLock>, RunError> {
        let path = self.path.clone();
        let failed = |source| RunError::Lock { path: path.clone(), source };
        let mut file = match self.file.take() {
            Some(file) => file,
            None => {
                path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(failed)?;
                OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?
            }
        };

        match file.try_lock() {
            Ok(()) => return Ok(Look::Taken(FileLock { file, holder: Holder::default() })),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
            Err(TryLockError::WouldBlock) => self.looks += 1,
        }

        let holder = read_holder(&mut file).unwrap_or_default();
        self.file = Some(file);
        Ok(Look::Held { holder, lives: self.looks >= LOOKS, left: None })
    }
}
