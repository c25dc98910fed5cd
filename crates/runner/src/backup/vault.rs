//! The place of backups.

use std::collections::HashSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidetable_blobs::{BlobError, Blobs, ReadAt};
use tidetable_source::Location;
use tidetable_store::{Store, StoreError};
use xxhash_rust::xxh3::Xxh3;

use crate::backup::catalog::{Backup, Held};
use crate::backup::error::BackupError;
use crate::fault::error::RunError;
use crate::fault::stop::Stop;
use crate::lock::lease::LeaseTimes;
use crate::lock::{IfLocked, Lock, LockRequest, take};

/// The file that marks a vault.
const MARK: &str = "vault.json";
/// The name of the lease of a vault in a bucket.
const LEASE: &str = "vault";
/// Bytes copied at a time.
const CHUNK: usize = 1 << 20;

/// A place of backups: a directory, or a prefix of a bucket.
#[derive(Debug)]
pub struct Vault {
    pub(crate) blobs: Arc<dyn Blobs>,
    /// Held while the vault is in use.
    _lock: Option<VaultLock>,
}

/// The lock of a vault: of the operating system in a directory, a lease in a bucket.
#[derive(Debug)]
enum VaultLock {
    File { _file: File },
    Lease { _lease: Lock },
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
    /// Files that backups lack, because they were damaged in the store when the backup was taken.
    pub missing: Vec<String>,
}

/// The result of copying a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Copied {
    /// It was copied now.
    New,
    /// A file of this length and checksum is there already.
    Known,
    /// The source file does not exist.
    Missing,
    /// Its content differs from its entry.
    Differs,
}

impl Copied {
    /// What is wrong with the file at `path`, which `named_by` names: a list or a manifest. `None` if nothing is.
    pub(crate) fn damage(&self, path: &str, named_by: &str) -> Option<String> {
        match self {
            Self::New | Self::Known => None,
            Self::Missing => Some(format!("{path} is missing")),
            Self::Differs => Some(format!("{path} is not what its {named_by} says")),
        }
    }
}

/// A file in a storage.
#[derive(Clone, Copy)]
pub(crate) struct FileAt<'a> {
    pub(crate) blobs: &'a dyn Blobs,
    /// Path in the storage.
    pub(crate) path: &'a str,
}

impl Vault {
    /// Opens the vault in a storage for backups of `root`, or creates it if that is missing or empty. `id` names its holder in a
    /// bucket.
    ///
    /// # Errors
    /// If the storage lies in the root, or the root in it; if it holds something else, is in use, or cannot be written.
    pub fn make(blobs: Arc<dyn Blobs>, root: &dyn Blobs, id: &str, stop: &Stop) -> Result<Self, BackupError> {
        if is_inside(blobs.as_ref(), root) {
            return Err(BackupError::Inside { folder: blobs.display(), root: root.display() });
        }

        let is_empty = match blobs.directory() {
            Some(folder) => is_empty(folder)?,
            None => blobs.list("")?.is_empty(),
        };

        let is_marked = blobs.stat(MARK)?.is_some();
        // A process that was killed may have left the lock alone.
        let is_begun = blobs.directory().is_some_and(|folder| folder.join("vault.lock").is_file())
            || blobs.directory().is_none() && blobs.list("")?.iter().all(|name| name == "locks");
        if !is_empty && !is_marked && !is_begun {
            return Err(BackupError::Taken { folder: blobs.display() });
        }

        let (blobs, lock) = locked(blobs, id, stop)?;
        if !is_marked {
            blobs.replace(MARK, b"{\"format\":1}\n")?;
        }
        Ok(Self { blobs, _lock: lock })
    }

    /// Opens the existing vault in a storage. `id` names its holder in a bucket.
    ///
    /// # Errors
    /// If it is not a vault, or in use.
    pub fn open(blobs: Arc<dyn Blobs>, id: &str, stop: &Stop) -> Result<Self, BackupError> {
        if blobs.stat(MARK)?.is_none() {
            // The reply about an object does not tell whether its bucket is there; that about a list does.
            blobs.list("backups")?;
            return Err(BackupError::NoVault { folder: blobs.display() });
        }
        let (blobs, lock) = locked(blobs, id, stop)?;
        Ok(Self { blobs, _lock: lock })
    }

    /// Its path or URL, for messages.
    pub(crate) fn name(&self) -> String {
        self.blobs.display()
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
        let bytes = self.blobs.read(&path)?;
        let bytes = bytes.ok_or_else(|| BackupError::NoBackup { folder: self.name(), asked: id.to_owned() })?;
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
            (_, asked) => {
                Err(BackupError::NoBackup { folder: self.name(), asked: asked.unwrap_or("at all").to_owned() })
            }
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
            report.missing.extend(backup.damaged.iter().map(|damage| format!("not in backup {name}: {damage}")));
            for file in backup.files {
                if seen.insert(file.object()) {
                    report.objects += 1;
                    report.damaged.extend(self.damage_of(&file, &name)?);
                }
            }
        }
        Ok(report)
    }

    /// What is wrong with the content of a file of the backup `name`; `None` if nothing is.
    fn damage_of(&self, file: &Held, name: &str) -> Result<Option<String>, BackupError> {
        let object = file.object();
        Ok(match hash(self.blobs.as_ref(), &object)? {
            Some((bytes, checksum)) if (bytes, checksum.as_str()) == (file.bytes, &file.checksum) => None,
            Some(_) => Some(format!("{object}: it does not hold {} of backup {name}", file.path)),
            None => Some(format!("{object} is missing: {} of backup {name}", file.path)),
        })
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

/// Copies a file to a place, if it has the length and checksum of `held`. A file that is there is not copied again: with
/// `trusts_name` its name and length suffice, since contents are named after verification.
///
/// # Errors
/// If something cannot be read or written. Then there is no new file.
pub(crate) fn copy(from: FileAt<'_>, to: FileAt<'_>, held: &Held, trusts_name: bool) -> Result<Copied, BackupError> {
    let is_there = to.blobs.stat(to.path)?.is_some_and(|found| found.bytes == held.bytes);
    if is_there && (trusts_name || hash(to.blobs, to.path)?.is_some_and(|(_, checksum)| checksum == held.checksum)) {
        return Ok(Copied::Known);
    }

    let Some(file) = open_existing(from)? else { return Ok(Copied::Missing) };
    if file.len() != held.bytes {
        return Ok(Copied::Differs);
    }

    let mut out = to.blobs.overwrite_writer(to.path)?;
    let mut hash = Xxh3::new();
    let mut offset = 0;
    while offset < held.bytes {
        let length = usize::try_from(held.bytes - offset).unwrap_or(CHUNK).min(CHUNK);
        let bytes = match file.read_at(offset, length) {
            Ok(bytes) => bytes,
            // The file became shorter.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Copied::Differs),
            Err(source) => return Err(BackupError::Io { action: "read", path: from.path.to_owned(), source }),
        };

        hash.update(&bytes);
        let written = out.write_all(&bytes);
        written.map_err(|source| BackupError::Io { action: "write", path: to.path.to_owned(), source })?;
        offset += length as u64;
    }

    if format!("{:032x}", hash.digest128()) != held.checksum {
        // Dropping an unfinished writer leaves no file.
        return Ok(Copied::Differs);
    }
    out.finish()?;
    Ok(Copied::New)
}

/// Opens a file to read it; `None` if it does not exist.
fn open_existing(file: FileAt<'_>) -> Result<Option<Arc<dyn ReadAt>>, BackupError> {
    match file.blobs.open(file.path) {
        Ok(open) => Ok(Some(open)),
        Err(BlobError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Length and checksum of a file; `None` if it does not exist.
pub(crate) fn hash(blobs: &dyn Blobs, path: &str) -> Result<Option<(u64, String)>, BackupError> {
    let Some(file) = open_existing(FileAt { blobs, path })? else { return Ok(None) };

    let mut hash = Xxh3::new();
    let mut offset = 0;
    while offset < file.len() {
        let length = usize::try_from(file.len() - offset).unwrap_or(CHUNK).min(CHUNK);
        let bytes = file.read_at(offset, length);
        hash.update(&bytes.map_err(|source| BackupError::Io { action: "read", path: path.to_owned(), source })?);
        offset += length as u64;
    }
    Ok(Some((file.len(), format!("{:032x}", hash.digest128()))))
}

/// Whether one of two storages lies in the other.
fn is_inside(vault: &dyn Blobs, root: &dyn Blobs) -> bool {
    match (vault.directory(), root.directory()) {
        (Some(vault), Some(root)) => {
            let (vault, root) = (resolved(vault), resolved(root));
            vault.starts_with(&root) || root.starts_with(&vault)
        }
        (None, None) => match (Location::parse(&vault.display()), Location::parse(&root.display())) {
            (Ok(Location::Bucket(vault)), Ok(Location::Bucket(root))) => vault.holds(&root) || root.holds(&vault),
            _ => false,
        },
        _ => false,
    }
}

/// A path without links, as far as it exists.
fn resolved(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let found = absolute.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match found {
        Some((above, canonical)) => match absolute.strip_prefix(above) {
            Ok(below) if !below.as_os_str().is_empty() => canonical.join(below),
            _ => canonical,
        },
        None => absolute,
    }
}

/// Whether a directory, made if it is not there, holds nothing.
fn is_empty(folder: &Path) -> Result<bool, BackupError> {
    let io = |action, source| BackupError::Io { action, path: folder.display().to_string(), source };
    std::fs::create_dir_all(folder).map_err(|source| io("make", source))?;
    Ok(std::fs::read_dir(folder).map_err(|source| io("list", source))?.next().is_none())
}

/// Locks a vault for one process. A vault that can only be read is used without a lock.
fn locked(blobs: Arc<dyn Blobs>, id: &str, stop: &Stop) -> Result<(Arc<dyn Blobs>, Option<VaultLock>), BackupError> {
    if let Some(folder) = blobs.directory() {
        let lock = lock_folder(folder)?;
        return Ok((blobs, Some(VaultLock::File { _file: lock })));
    }

    let request = LockRequest { job: LEASE, run: id, if_locked: IfLocked::Fail, times: LeaseTimes::default() };
    match take(&blobs, request, stop) {
        Ok(Some(lock)) => {
            let store = lock.over(Store::new(Arc::clone(&blobs)));
            Ok((Arc::clone(store.blobs()), Some(VaultLock::Lease { _lease: lock })))
        }
        Ok(None) | Err(RunError::Locked { .. }) => Err(BackupError::Busy { folder: blobs.display() }),
        Err(RunError::Store(StoreError::Blob(BlobError::Io { source, .. })))
            if source.kind() == ErrorKind::PermissionDenied =>
        {
            Ok((blobs, None))
        }
        Err(error) => Err(error.into()),
    }
}

fn lock_folder(folder: &Path) -> Result<File, BackupError> {
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
