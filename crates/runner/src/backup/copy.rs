//! Makes a backup.

use std::collections::BTreeSet;

use tidetable_blobs::Blobs;
use tidetable_record::Runs;
use tidetable_store::Store;
use tidetable_store::published::Published;
use tidetable_upkeep::Pins;

use crate::backup::catalog::{Backup, Held};
use crate::backup::error::BackupError;
use crate::backup::reading::{ROUNDS, RenewedPins, WrongFile, held_sst, log_directories, unless_damaged};
use crate::backup::vault::{Copied, FileAt, Vault, copy, hash};
use crate::fault::stop::Stop;

/// The result of a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupDone {
    /// The backup as its catalog lists it.
    pub backup: Backup,
    /// Number of files copied.
    pub copied: u64,
    /// Bytes of the files that were copied.
    pub copied_bytes: u64,
    /// What the backup lacks or could not guard against, though nothing is damaged.
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
        id: &str,
        taken: i64,
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
            let loaded = Published::load(self.blobs(), export);
            let Some(list) = unless_damaged(loaded, &mut self.done.backup.damaged)? else { return Ok(()) };

            let (mut held, wrong) = self.published_files(&list)?;
            let logs = self.logs(&list)?;

            let is_settled = self.blobs().read(&list_path)?.as_ref() == Some(&before);
            if !is_settled && round < ROUNDS {
                continue;
            }

            let list_bytes = match is_settled || wrong.is_empty() {
                true => before.to_vec(),
                false => {
                    let list = self.without_changed(export, list, &wrong, &mut held);
                    list.map_err(|error| BackupError::Catalog { path: list_path.clone(), reason: error.to_string() })?
                }
            };
            if is_settled {
                self.done.backup.damaged.extend(wrong.into_iter().map(|file| file.reason));
            }
            self.done.backup.files.extend(held);
            self.done.backup.files.extend(logs);
            return self.bytes(&list_path, &list_bytes);
        }
        Ok(())
    }

    /// Copies the published files of a list. Gives those that were copied, and those that were not.
    fn published_files(&mut self, list: &Published) -> Result<(Vec<Held>, Vec<WrongFile>), BackupError> {
        let (mut held, mut wrong) = (Vec::new(), Vec::new());
        for (label, part) in &list.parts {
            for (path, file) in part.files_at() {
                let file = Held { path, bytes: file.bytes, checksum: file.checksum };
                match self.object(&file)?.damage(&file.path, "list") {
                    None => held.push(file),
                    Some(reason) => wrong.push(WrongFile { label: label.clone(), reason }),
                }
            }
        }
        Ok((held, wrong))
    }

    /// Takes the parts of `wrong` files, which a run replaced meanwhile, out of `held` and out of the list of an export.
    /// Gives the rest of the list as JSON.
    fn without_changed(
        &mut self,
        export: &str,
        mut list: Published,
        wrong: &[WrongFile],
        held: &mut Vec<Held>,
    ) -> Result<Vec<u8>, serde_json::Error> {
        let labels: BTreeSet<&str> = wrong.iter().map(|file| file.label.as_str()).collect();
        let removed = labels.iter().filter_map(|label| list.parts.remove(*label));
        let gone: Vec<String> = removed.flat_map(|part| part.paths()).collect();
        held.retain(|file| !gone.contains(&file.path));

        self.done.notes.push(format!(
            "{} of {export} were published meanwhile and are not in this backup: a run after it is restored publishes \
             them again",
            labels.into_iter().collect::<Vec<_>>().join(", ")
        ));
        serde_json::to_vec_pretty(&list)
    }

    /// The files of the logs of the tables of a list, as far as they are of use elsewhere.
    fn logs(&mut self, list: &Published) -> Result<Vec<Held>, BackupError> {
        let mut held = Vec::new();
        for log in log_directories(list) {
            for name in self.blobs().list(&log)? {
                let path = format!("{log}/{name}");
                let Some(bytes) = self.blobs().read(&path)? else { continue };
                held.push(self.put(&path, &bytes)?);
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

        let mut renewed = RenewedPins::new(&pins);
        for (name, number) in &pins.numbers {
            let table = self.store.table(name);
            let loaded = table.version(*number);
            let Some(version) = unless_damaged(loaded, &mut self.done.backup.damaged)? else { continue };

            for sst in version.ssts() {
                let file = held_sst(&table, sst);
                match self.object(&file)?.damage(&file.path, "manifest") {
                    None => self.done.backup.files.push(file),
                    Some(reason) => self.done.backup.damaged.push(reason),
                }
                renewed.renew_if_due()?;
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
        self.stop.check()?;
        let from = FileAt { blobs: self.blobs(), path: &file.path };
        let to = FileAt { blobs: self.vault.blobs.as_ref(), path: &file.object() };
        let copied = copy(from, to, file, true)?;
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
