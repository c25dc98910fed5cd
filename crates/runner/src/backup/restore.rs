//! Restores a backup; verifies the checksum of every file as it is copied.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::Path;

use tidetable_blobs::{Blobs, LocalBlobs};
use tidetable_record::holder;

use crate::backup::catalog::{Backup, FOLDERS};
use crate::backup::error::BackupError;
use crate::backup::marker::{RESTORING, RestoreMarker};
use crate::backup::vault::{Copied, FileAt, Vault, copy};
use crate::fault::stop::Stop;

/// The result of a restore.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Restored {
    /// The backup that was restored.
    pub backup: Backup,
    /// Files that were copied.
    pub copied: u64,
    /// Files that an interrupted restore had copied already.
    pub known: u64,
    /// Files that are missing or damaged in the vault.
    pub damaged: Vec<String>,
}

impl Vault {
    /// Restores a backup into `root`, which must not hold a store. Continues an interrupted restore.
    ///
    /// # Errors
    /// If `root` is not empty, or a file cannot be read or written. Damaged files are left out and reported.
    pub fn restore(&self, backup: Backup, root: &Path, stop: &Stop) -> Result<Restored, BackupError> {
        let _marker = mark(root, &self.marker(&backup.id), &self.name())?;
        let restored = self.copy_all(backup, &LocalBlobs::new(root.to_owned()), stop)?;

        let marker = root.join(RESTORING);
        let removed = std::fs::remove_file(&marker).and_then(|()| File::open(root)?.sync_all());
        removed.map_err(|source| BackupError::Io { action: "remove", path: marker.display().to_string(), source })?;
        Ok(restored)
    }

    /// As [`Self::restore`], into a bucket. Nothing excludes readers meanwhile, so what names files comes after them, and
    /// records of runs come last: until then no run begins there.
    ///
    /// # Errors
    /// As [`Self::restore`].
    pub fn restore_into_bucket(
        &self,
        mut backup: Backup,
        to: &dyn Blobs,
        stop: &Stop,
    ) -> Result<Restored, BackupError> {
        self.mark_bucket(&backup.id, to)?;

        backup.files.sort_by_key(|file| (rank(&file.path), file.path.clone()));
        let restored = self.copy_all(backup, to, stop)?;
        to.delete(RESTORING)?;
        Ok(restored)
    }

    /// Marks a bucket as being restored into, unless it holds a store, or another restore has begun.
    fn mark_bucket(&self, id: &str, to: &dyn Blobs) -> Result<(), BackupError> {
        let marked = to.read(RESTORING)?;
        match marked.as_deref().map(String::from_utf8_lossy).map(|text| RestoreMarker::parse(&text)) {
            Some(Some(before)) if before.id == id => Ok(()),
            Some(before) => {
                let id = before.map(|before| before.id).unwrap_or_default();
                Err(BackupError::OtherRestore { root: to.display(), id })
            }
            None => {
                if to.list("")?.iter().any(|name| name != "locks") || is_locked(to)? {
                    let (root, folder) = (to.display(), self.name());
                    return Err(BackupError::RootTaken { root, folder });
                }
                if !to.create_new(RESTORING, self.marker(id).text().as_bytes())? {
                    return Err(BackupError::Busy { folder: to.display() });
                }
                Ok(())
            }
        }
    }

    /// The marker of a root into which the backup `id` is restored.
    fn marker(&self, id: &str) -> RestoreMarker {
        RestoreMarker { id: id.to_owned(), vault: Some(self.name()) }
    }

    /// Copies the files of a backup, in their order.
    fn copy_all(&self, backup: Backup, to: &dyn Blobs, stop: &Stop) -> Result<Restored, BackupError> {
        let mut restored = Restored::default();
        for file in &backup.files {
            stop.check()?;
            let object = file.object();
            let from = FileAt { blobs: self.blobs.as_ref(), path: &object };
            match copy(from, FileAt { blobs: to, path: &file.path }, file, false)? {
                Copied::New => restored.copied += 1,
                Copied::Known => restored.known += 1,
                Copied::Missing => restored.damaged.push(format!("{}: {object} is missing", file.path)),
                Copied::Differs => restored.damaged.push(format!("{}: {object} is damaged", file.path)),
            }
        }
        restored.backup = backup;
        Ok(restored)
    }
}

/// The place of a file in the order of restoring: what names others comes after them.
fn rank(path: &str) -> u8 {
    let parts: Vec<&str> = path.split('/').collect();
    match parts.as_slice() {
        ["tables", _, "manifest", _] => 2,
        ["tables", _, "checkpoint", _] => 1,
        ["exports", _] => 3,
        ["runs", ..] => 4,
        _ => 0,
    }
}

/// Whether a job holds its lock. A run that found the store gone leaves a lock that is free.
fn is_locked(root: &dyn Blobs) -> Result<bool, BackupError> {
    for name in root.list("locks")? {
        let Some(job) = name.strip_suffix(".lock") else { continue };
        if holder(root, job)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a directory holds files of a store, or a lock that is held.
fn holds_store(root: &Path) -> Result<bool, BackupError> {
    Ok(FOLDERS.iter().any(|folder| root.join(folder).exists()) || is_locked(&LocalBlobs::new(root.to_owned()))?)
}

/// Marks a root as being restored, unless it holds a store.
fn mark(root: &Path, marker: &RestoreMarker, vault: &str) -> Result<File, BackupError> {
    let path = root.join(RESTORING);
    let io = |action, source| BackupError::Io { action, path: path.display().to_string(), source };

    if !path.is_file() && holds_store(root)? {
        return Err(BackupError::RootTaken { root: root.display().to_string(), folder: vault.to_owned() });
    }

    std::fs::create_dir_all(root).map_err(|source| io("make the folder of", source))?;
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|source| io("write", source))?;

    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(BackupError::Busy { folder: root.display().to_string() }),
        Err(TryLockError::Error(source)) => return Err(io("lock", source)),
    }

    let mut before = String::new();
    file.read_to_string(&mut before).map_err(|source| io("read", source))?;
    match RestoreMarker::parse(&before) {
        None => {
            let written = file.write_all(marker.text().as_bytes()).and_then(|()| file.sync_all());
            written.map_err(|source| io("write", source))?;
        }
        Some(before) if before.id == marker.id => {}
        Some(before) => return Err(BackupError::OtherRestore { root: root.display().to_string(), id: before.id }),
    }
    Ok(file)
}
