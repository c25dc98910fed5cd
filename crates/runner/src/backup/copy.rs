//! Makes a backup.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tidetable_blobs::BlobError;
use tidetable_blobs::Blobs;
use tidetable_export::TableLog;
use tidetable_record::Runs;
use tidetable_store::published::Published;
use tidetable_store::{Store, StoreError};
use tidetable_upkeep::Pins;

use crate::backup::catalog::{Backup, Held};
use crate::backup::error::BackupError;
use crate::backup::vault::{Copied, Vault, copy, hash};
use crate::fault::stop::Stop;

/// Attempts to read an export that is being published, before changed parts are left out.
const ROUNDS: usize = 3;
/// Interval of renewing pins, which expire after an hour.
const RENEW: Duration = Duration::from_secs(300);

/// The result of a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupDone {
    /// The backup.
    pub backup: Backup,
    /// Number of files copied.
    pub copied: u64,
    /// Their bytes.
    pub copied_bytes: u64,
    /// Notes.
    pub notes: Vec<String>,
}

impl Vault {
    /// Copies the contents of `store`, and keeps the newest `keep` backups. `id` is the name of the backup, `taken` the
    /// clock in microseconds since the epoch. Jobs may run meanwhile. Damaged files are left out and reported; then no
    /// older backup is removed.
    ///
    /// # Errors
    /// If something cannot be read or written. Then there is no new backup, but the next one reuses the copied files.
    pub fn backup(
        &self,
        store: &Store,
        (id, taken): (&str, i64),
        keep: usize,
        stop: &Stop,
    ) -> Result<BackupDone, BackupError> {
        let root = store.blobs().display();
        let mut making = Making { vault: self, store, stop, done: BackupDone::default() };
        making.done.backup = Backup { id: id.to_owned(), taken, root, ..Backup::default() };
        making.runs()?;
        for name in store.blobs().list("exports")? {
            if let Some(export) = name.strip_suffix(".json") {
                making.export(export)?;
            }
        }
        making.tables(id)?;
        let mut done = making.done;
        done.backup.files.sort_unstable();
        let path = format!("backups/{id}.json");
        let encoded = done.backup.encode();
        let bytes = encoded.map_err(|error| BackupError::Catalog { path: path.clone(), reason: error.to_string() })?;
        self.blobs.replace(&path, &bytes)?;
        if done.backup.damaged.is_empty() {
            self.prune(keep)?;
        }
        Ok(done)
    }
}

/// A backup in progress.
struct Making<'a> {
    vault: &'a Vault,
    store: &'a Store,
    stop: &'a Stop,
    done: BackupDone,
}

impl Making<'_> {
    fn blobs(&self) -> &dyn Blobs {
        self.store.blobs().as_ref()
    }

    /// Copies run records, rejected rows and rows that failed checks.
    fn runs(&mut self) -> Result<(), BackupError> {
        let mut paths: Vec<String> =
            Runs::of(self.blobs()).names()?.into_iter().map(|run| format!("runs/{run}.json")).collect();
        for folder in ["rejected", "failing"] {
            let files = self.blobs().list(folder)?.into_iter().filter(|file| file.ends_with(".jsonl"));
            paths.extend(files.map(|file| format!("{folder}/{file}")));
        }
        for path in paths {
            self.file(&path)?;
        }
        Ok(())
    }

    /// Copies the published files of an export. A list that changes meanwhile is read again; if it keeps changing,
    /// a part with other files is left out.
    fn export(&mut self, export: &str) -> Result<(), BackupError> {
        let list_path = format!("exports/{export}.json");
        for round in 1..=ROUNDS {
            let Some(before) = self.blobs().read(&list_path)? else { return Ok(()) };
            let mut list = match Published::load(self.blobs(), export) {
                Ok(list) => list,
                Err(error @ StoreError::Blob(BlobError::Io { .. })) => return Err(error.into()),
                Err(error) => {
                    self.done.backup.damaged.push(error.to_string());
                    return Ok(());
                }
            };
            let (mut held, mut wrong) = (Vec::new(), Vec::new());
            for (label, part) in &list.parts {
                let mut files = Vec::new();
                for (path, file) in part.paths().into_iter().zip(part.files()) {
                    let file = Held { path, bytes: file.bytes, checksum: file.checksum };
                    match self.object(&file)? {
                        Copied::New | Copied::Known => files.push(file),
                        Copied::Missing => wrong.push((label.clone(), format!("{} is missing", file.path))),
                        Copied::Differs => {
                            wrong.push((label.clone(), format!("{} is not what its list says", file.path)));
                        }
                    }
                }
                held.extend(files);
            }
            let logs = self.logs(&list)?;
            let is_settled = self.blobs().read(&list_path)?.as_ref() == Some(&before);
            if !is_settled && round < ROUNDS {
                continue;
            }
            let mut bytes = before.to_vec();
            if is_settled {
                self.done.backup.damaged.extend(wrong.into_iter().map(|(_, reason)| reason));
            } else if !wrong.is_empty() {
                let parts: BTreeSet<String> = wrong.into_iter().map(|(label, _)| label).collect();
                let gone: Vec<String> =
                    parts.iter().filter_map(|label| list.parts.remove(label)).flat_map(|part| part.paths()).collect();
                held.retain(|file| !gone.contains(&file.path));
                self.done.notes.push(format!(
                    "{} of {export} were published meanwhile and are not in this backup: a run after it is restored publishes \
                     them again",
                    parts.into_iter().collect::<Vec<_>>().join(", ")
                ));
                let wrong = |error: serde_json::Error| BackupError::Catalog {
                    path: list_path.clone(),
                    reason: error.to_string(),
                };
                bytes = serde_json::to_vec_pretty(&list).map_err(wrong)?;
            }
            self.done.backup.files.extend(held);
            self.done.backup.files.extend(logs);
            return self.bytes(&list_path, &bytes);
        }
        Ok(())
    }

    /// The files of the logs of the tables of a list, as far as they are of use elsewhere.
    fn logs(&mut self, list: &Published) -> Result<Vec<Held>, BackupError> {
        let folders: BTreeSet<&str> = list.parts.values().filter_map(|part| part.folder.split('/').next()).collect();
        let mut held = Vec::new();
        for folder in folders {
            for log in TableLog::ALL.into_iter().filter(|log| log.moves_with_files()) {
                let log = log.path(folder);
                for name in self.blobs().list(&log)? {
                    let path = format!("{log}/{name}");
                    let Some(bytes) = self.blobs().read(&path)? else { continue };
                    held.push(self.put(&path, &bytes)?);
                }
            }
        }
        Ok(held)
    }

    /// Copies the newest versions of the tables.
    fn tables(&mut self, id: &str) -> Result<(), BackupError> {
        let pins = Pins::all(self.store, id)?;
        self.done.backup.damaged.extend(pins.damaged.iter().map(ToString::to_string));
        if !pins.are_held {
            let note = "the versions that are copied cannot be pinned, since nothing can be written there: no vacuum may run meanwhile";
            self.done.notes.push(note.to_owned());
        }
        let mut renewed = Instant::now();
        for (name, number) in &pins.numbers {
            let table = self.store.table(name);
            let version = match table.version(*number) {
                Ok(version) => version,
                Err(error @ StoreError::Blob(BlobError::Io { .. })) => return Err(error.into()),
                Err(error) => {
                    self.done.backup.damaged.push(error.to_string());
                    continue;
                }
            };
            for sst in version.ssts() {
                let file = Held { path: table.sst_path(&sst.id), bytes: sst.bytes, checksum: sst.checksum.clone() };
                match self.object(&file)? {
                    Copied::New | Copied::Known => self.done.backup.files.push(file),
                    Copied::Missing => self.done.backup.damaged.push(format!("{} is missing", file.path)),
                    Copied::Differs => {
                        let reason = format!("{} is not what its manifest says", file.path);
                        self.done.backup.damaged.push(reason);
                    }
                }
                if renewed.elapsed() > RENEW {
                    pins.renew()?;
                    renewed = Instant::now();
                }
            }
            for (path, bytes) in table.metadata_files(&version)? {
                self.bytes(&path, &bytes)?;
            }
            self.done.backup.tables.insert(name.clone(), *number);
        }
        Ok(())
    }

    /// Copies the content of a file with known length and checksum.
    fn object(&mut self, file: &Held) -> Result<Copied, BackupError> {
        if let Some(stopped) = self.stop.asked() {
            return Err(crate::fault::error::RunError::from(stopped).into());
        }
        let copied = copy((self.blobs(), &file.path), (self.vault.blobs.as_ref(), &file.object()), file, true)?;
        if copied == Copied::New {
            self.done.copied += 1;
            self.done.copied_bytes += file.bytes;
        }
        Ok(copied)
    }

    /// Copies a file with unknown content; one that is gone meanwhile was removed by `clean`.
    fn file(&mut self, path: &str) -> Result<(), BackupError> {
        // A record may be rewritten between hashing and copying.
        for _ in 0..ROUNDS {
            let Some((bytes, checksum)) = hash(self.blobs(), path)? else { return Ok(()) };
            let file = Held { path: path.to_owned(), bytes, checksum };
            match self.object(&file)? {
                Copied::New | Copied::Known => {
                    self.done.backup.files.push(file);
                    return Ok(());
                }
                Copied::Missing => return Ok(()),
                Copied::Differs => {}
            }
        }
        self.done.notes.push(format!("{path} went on changing and is not in this backup"));
        Ok(())
    }

    /// Adds a file with these bytes.
    fn bytes(&mut self, path: &str, bytes: &[u8]) -> Result<(), BackupError> {
        let held = self.put(path, bytes)?;
        self.done.backup.files.push(held);
        Ok(())
    }

    fn put(&mut self, path: &str, bytes: &[u8]) -> Result<Held, BackupError> {
        let held = Held::of(path, bytes);
        let object = held.object();
        if self.vault.blobs.stat(&object)?.is_none_or(|found| found.bytes != held.bytes) {
            self.vault.blobs.replace(&object, bytes)?;
            self.done.copied += 1;
            self.done.copied_bytes += held.bytes;
        }
        Ok(held)
    }
}
