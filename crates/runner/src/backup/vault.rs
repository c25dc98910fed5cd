//! The directory of backups.

use std::collections::HashSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use tidetable_store::{Blobs, LocalBlobs, StoreError};
use xxhash_rust::xxh3::Xxh3;

use crate::backup::catalog::{Backup, Held};
use crate::backup::error::BackupError;

/// The file that marks a vault.
const MARK: &str = "vault.json";
/// Bytes copied at a time.
const CHUNK: usize = 1 << 20;

/// A directory of backups.
#[derive(Debug)]
pub struct Vault {
    pub(crate) folder: PathBuf,
    pub(crate) blobs: LocalBlobs,
    /// Held while the vault is in use.
    _lock: File,
}

/// The result of verifying a vault.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VaultReport {
    /// Number of readable backups.
    pub backups: usize,
    /// Number of contents that were read.
    pub objects: u64,
    /// Descriptions of the damage.
    pub damaged: Vec<String>,
}

/// The result of copying a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Copied {
    /// It was copied.
    New,
    /// It existed already.
    Known,
    /// The source file does not exist.
    Missing,
    /// Its content differs from its entry.
    Differs,
}

impl Vault {
    /// Opens the vault in `folder`, or creates it if the directory is missing or empty.
    ///
    /// # Errors
    /// If the directory holds something else, is in use, or cannot be written.
    pub fn make(folder: &Path) -> Result<Self, BackupError> {
        let io = |action, source| BackupError::Io { action, path: folder.display().to_string(), source };
        std::fs::create_dir_all(folder).map_err(|source| io("make", source))?;
        let is_empty = std::fs::read_dir(folder).map_err(|source| io("list", source))?.next().is_none();
        let mark = folder.join(MARK);
        if !is_empty && !mark.is_file() && !folder.join("vault.lock").is_file() {
            return Err(BackupError::Taken { folder: folder.display().to_string() });
        }
        let lock = lock(folder)?;
        let blobs = LocalBlobs::new(folder.to_owned());
        if !mark.is_file() {
            blobs.replace(MARK, b"{\"format\":1}\n")?;
        }
        Ok(Self { folder: folder.to_owned(), blobs, _lock: lock })
    }

    /// Opens the existing vault in `folder`.
    ///
    /// # Errors
    /// If it is no vault, or in use.
    pub fn open(folder: &Path) -> Result<Self, BackupError> {
        if !folder.join(MARK).is_file() {
            return Err(BackupError::NoVault { folder: folder.display().to_string() });
        }
        let lock = lock(folder)?;
        Ok(Self { folder: folder.to_owned(), blobs: LocalBlobs::new(folder.to_owned()), _lock: lock })
    }

    /// The names of the backups, oldest first.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub fn names(&self) -> Result<Vec<String>, BackupError> {
        let files = self.blobs.list("backups")?;
        Ok(files.iter().filter_map(|file| file.strip_suffix(".json")).map(str::to_owned).collect())
    }

    /// Reads the catalog of the backup `id`.
    ///
    /// # Errors
    /// If it is missing or damaged.
    pub fn load(&self, id: &str) -> Result<Backup, BackupError> {
        let path = format!("backups/{id}.json");
        let missing = || BackupError::NoBackup { folder: self.folder.display().to_string(), asked: id.to_owned() };
        let bytes = self.blobs.read(&path)?.ok_or_else(missing)?;
        Backup::decode(&bytes).map_err(|reason| BackupError::Catalog { path, reason })
    }

    /// The newest backup, or the one whose name starts with `asked`.
    ///
    /// # Errors
    /// If there is none, or several, or it is damaged.
    pub fn find(&self, asked: Option<&str>) -> Result<Backup, BackupError> {
        let mut names = self.names()?;
        names.retain(|name| asked.is_none_or(|asked| name.starts_with(asked)));
        match (names.as_slice(), asked) {
            ([.., newest], None) => self.load(newest),
            ([one], Some(_)) => self.load(one),
            (_, asked) => Err(BackupError::NoBackup {
                folder: self.folder.display().to_string(),
                asked: asked.unwrap_or("at all").to_owned(),
            }),
        }
    }

    /// Verifies all contents that backups name.
    ///
    /// # Errors
    /// If the vault cannot be listed or read.
    pub fn verify(&self) -> Result<VaultReport, BackupError> {
        let mut report = VaultReport::default();
        let mut seen = HashSet::new();
        for name in self.names()? {
            let backup = match self.load(&name) {
                Ok(backup) => backup,
                Err(BackupError::Catalog { path, reason }) => {
                    report.damaged.push(format!("{path}: {reason}"));
                    continue;
                }
                Err(error) => return Err(error),
            };
            report.backups += 1;
            for file in backup.files {
                let object = file.object();
                if !seen.insert(object.clone()) {
                    continue;
                }
                report.objects += 1;
                match hash(&self.blobs, &object)? {
                    Some((bytes, checksum)) if (bytes, checksum.as_str()) == (file.bytes, &file.checksum) => {}
                    Some(_) => {
                        report.damaged.push(format!("{object}: it does not hold {} of backup {name}", file.path))
                    }
                    None => report.damaged.push(format!("{object} is missing: {} of backup {name}", file.path)),
                }
            }
        }
        Ok(report)
    }

    /// Removes all but the newest `keep` backups, and contents that no backup names.
    ///
    /// # Errors
    /// If something cannot be listed or removed; the remaining backups are complete.
    pub(crate) fn prune(&self, keep: usize) -> Result<u64, BackupError> {
        let names = self.names()?;
        for name in names.iter().take(names.len().saturating_sub(keep.max(1))) {
            self.blobs.delete(&format!("backups/{name}.json"))?;
        }
        let mut named = HashSet::new();
        for name in self.names()? {
            match self.load(&name) {
                Ok(backup) => named.extend(backup.files.iter().map(Held::object)),
                // Its contents are unknown, so nothing is removed.
                Err(BackupError::Catalog { .. }) => return Ok(0),
                Err(error) => return Err(error),
            }
        }
        let mut removed = 0;
        for folder in self.blobs.list("objects")? {
            let folder = format!("objects/{folder}");
            let objects = self.blobs.list(&folder)?.into_iter().map(|name| format!("{folder}/{name}"));
            for object in objects.filter(|object| !named.contains(object)).chain(self.blobs.leftovers(&folder)?) {
                self.blobs.delete(&object)?;
                removed += 1;
            }
        }
        for left in self.blobs.leftovers("backups")?.into_iter().chain(self.blobs.leftovers("")?) {
            self.blobs.delete(&left)?;
        }
        Ok(removed)
    }
}

/// Copies `path` of `from` to `to_path` of `to`, if it has the length and checksum of `held`. An existing file is not
/// copied again: with `trusts_name` its name and length suffice, since contents are named after verification.
pub(crate) fn copy(
    (from, path): (&dyn Blobs, &str),
    (to, to_path): (&dyn Blobs, &str),
    held: &Held,
    trusts_name: bool,
) -> Result<Copied, BackupError> {
    let is_there = to.stat(to_path)?.is_some_and(|found| found.bytes == held.bytes);
    if is_there && (trusts_name || hash(to, to_path)?.is_some_and(|(_, checksum)| checksum == held.checksum)) {
        return Ok(Copied::Known);
    }
    let file = match from.open(path) {
        Ok(file) => file,
        Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(Copied::Missing),
        Err(error) => return Err(error.into()),
    };
    if file.len() != held.bytes {
        return Ok(Copied::Differs);
    }
    let mut out = to.overwrite_writer(to_path)?;
    let mut hash = Xxh3::new();
    let mut at = 0;
    while at < held.bytes {
        let length = usize::try_from(held.bytes - at).unwrap_or(CHUNK).min(CHUNK);
        let bytes = match file.read_at(at, length) {
            Ok(bytes) => bytes,
            // The file became shorter.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Copied::Differs),
            Err(source) => return Err(BackupError::Io { action: "read", path: path.to_owned(), source }),
        };
        hash.update(&bytes);
        let write = |source| BackupError::Io { action: "write", path: to_path.to_owned(), source };
        out.write_all(&bytes).map_err(write)?;
        at += length as u64;
    }
    if format!("{:032x}", hash.digest128()) != held.checksum {
        // Dropping an unfinished writer leaves no file.
        return Ok(Copied::Differs);
    }
    out.finish()?;
    Ok(Copied::New)
}

/// Length and checksum of a file; `None` if it does not exist.
pub(crate) fn hash(blobs: &dyn Blobs, path: &str) -> Result<Option<(u64, String)>, BackupError> {
    let file = match blobs.open(path) {
        Ok(file) => file,
        Err(StoreError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut hash = Xxh3::new();
    let mut at = 0;
    while at < file.len() {
        let length = usize::try_from(file.len() - at).unwrap_or(CHUNK).min(CHUNK);
        let read = |source| BackupError::Io { action: "read", path: path.to_owned(), source };
        hash.update(&file.read_at(at, length).map_err(read)?);
        at += length as u64;
    }
    Ok(Some((file.len(), format!("{:032x}", hash.digest128()))))
}

/// Locks the vault for one process.
fn lock(folder: &Path) -> Result<File, BackupError> {
    let path = folder.join("vault.lock");
    let io = |source| BackupError::Io { action: "lock", path: path.display().to_string(), source };
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
    let file = match file {
        // A backup on a read-only disk can still be restored.
        Err(error) if matches!(error.kind(), ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied) => {
            File::open(folder.join(MARK)).map_err(io)?
        }
        file => file.map_err(io)?,
    };
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(BackupError::Busy { folder: folder.display().to_string() }),
        Err(TryLockError::Error(source)) => Err(io(source)),
    }
}
