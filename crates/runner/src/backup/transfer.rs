//! Copies a store into another root, folder or bucket: tables with their versions, exports, records.
//!
//! Files that are named come before what names them: published files before their list, SSTs before manifests, which
//! are written in ascending order. So an interrupted copy is an older state of the store, and the next one goes on.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use tidetable_blobs::Blobs;
use tidetable_record::Runs;
use tidetable_store::published::Published;
use tidetable_store::{Store, Table};
use tidetable_upkeep::Pins;

use crate::backup::catalog::Held;
use crate::backup::error::BackupError;
use crate::backup::reading::{ROUNDS, RenewedPins, WrongFile, held_sst, log_directories, unless_damaged};
use crate::backup::vault::{Copied, FileAt, copy, hash};
use crate::fault::stop::Stop;
use crate::lock::take_all;

/// Directories of small files that are copied whole.
const SMALL: [&str; 4] = ["rejected", "failing", "failures", "seen"];

/// The result of a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreCopy {
    /// Tables and their newest version.
    pub tables: BTreeMap<String, u64>,
    /// Number of exports whose lists were copied.
    pub exports: usize,
    /// Files that were copied.
    pub copied: u64,
    /// Bytes of the files that were copied.
    pub copied_bytes: u64,
    /// Files that were there already.
    pub known: u64,
    /// Damaged files of the store, which the copy does not have.
    pub damaged: Vec<String>,
}

/// Copies the contents of `from` into the root of `to`, which is empty or an older copy of it: nothing is written into another.
/// Every file is compared with its checksum as it passes. Jobs may run in `from` meanwhile, not in `to`. `id` names the pins.
///
/// # Errors
/// [`BackupError::OtherStore`], or if something cannot be read or written; the next copy goes on from there.
pub fn copy_store(from: &Store, to: &Store, id: &str, stop: &Stop) -> Result<StoreCopy, BackupError> {
    let _locks = take_all(to.blobs())?;
    refuse_other(from, to)?;

    let mut copying = Copying { from, to, stop, done: StoreCopy::default() };
    for run in Runs::of(from.blobs().as_ref()).names()? {
        copying.small(&format!("runs/{run}.json"))?;
    }
    for folder in SMALL {
        for name in from.blobs().list(folder)? {
            copying.small(&format!("{folder}/{name}"))?;
        }
    }

    for name in from.blobs().list("exports")? {
        if let Some(export) = name.strip_suffix(".json") {
            copying.export(export)?;
        }
    }

    let pins = Pins::all(from, id)?;
    copying.done.damaged.extend(pins.damaged.iter().map(ToString::to_string));
    let mut renewed = RenewedPins::new(&pins);
    for (name, newest) in &pins.numbers {
        copying.table(&from.table(name), *newest, &mut renewed)?;
    }
    Ok(copying.done)
}

/// Refuses a root that holds what `from` does not have: another store, or a newer state of it. Looks at the newest of each kind, so
/// that it reads two files a table.
fn refuse_other(from: &Store, to: &Store) -> Result<(), BackupError> {
    let (ours, theirs) = (from.blobs().as_ref(), to.blobs().as_ref());
    let other = |path: String| Err(BackupError::OtherStore { root: theirs.display(), path });

    for name in theirs.list("tables")? {
        let (table, held) = (from.table(&name), to.table(&name));
        let (Some(newest), numbers) = (held.version_numbers()?.pop(), table.version_numbers()?) else { continue };

        let manifests = format!("tables/{name}/manifest");
        if numbers.last().is_none_or(|last| *last < newest) {
            return other(manifests);
        }

        let file = numbered_files(theirs, &manifests, newest..=newest)?.into_iter().next();
        let manifest = file.as_ref().map(|file| ours.read(&file.path)).transpose()?.flatten();
        let is_same = match (&file, manifest) {
            (Some(file), Some(manifest)) => theirs.read(&file.path)? == Some(manifest),
            // Vacuum has removed it from the store since it was copied, or does so now.
            _ => table.latest()?.map(|version| version.table_uuid) == held.latest()?.map(|version| version.table_uuid),
        };
        if !is_same {
            return other(manifests);
        }
    }

    let exports = ours.list("exports")?;
    let mut lists = theirs.list("exports")?.into_iter().filter(|name| name.ends_with(".json"));
    if let Some(list) = lists.find(|list| !exports.contains(list)) {
        return other(format!("exports/{list}"));
    }

    let (newest, known) = (Runs::of(theirs).names()?.pop(), Runs::of(ours).names()?);
    match newest.filter(|newest| known.last().is_none_or(|last| newest > last)) {
        Some(run) => other(format!("runs/{run}.json")),
        None => Ok(()),
    }
}

/// A manifest or checkpoint, whose name begins with the number of its version.
struct NumberedFile {
    number: u64,
    path: String,
}

/// The files of the versions `numbers` in a directory of manifests or checkpoints.
fn numbered_files(
    blobs: &dyn Blobs,
    directory: &str,
    numbers: RangeInclusive<u64>,
) -> Result<Vec<NumberedFile>, BackupError> {
    let mut files = Vec::new();
    for name in blobs.list(directory)? {
        let number = name.split('.').next().and_then(|number| number.parse().ok());
        if let Some(number) = number.filter(|number| numbers.contains(number)) {
            files.push(NumberedFile { number, path: format!("{directory}/{name}") });
        }
    }
    Ok(files)
}

/// A copy in progress.
struct Copying<'a> {
    from: &'a Store,
    to: &'a Store,
    stop: &'a Stop,
    done: StoreCopy,
}

impl Copying<'_> {
    /// The storage of the store, and that of the copy.
    fn blobs(&self) -> (&dyn Blobs, &dyn Blobs) {
        (self.from.blobs().as_ref(), self.to.blobs().as_ref())
    }

    fn wrote(&mut self, bytes: u64) {
        self.done.copied += 1;
        self.done.copied_bytes += bytes;
    }

    /// Copies a small file that may change: a record, rejected rows.
    fn small(&mut self, path: &str) -> Result<(), BackupError> {
        self.stop.check()?;
        let (from, to) = self.blobs();

        // `clean` may have removed it since it was listed.
        let Some(bytes) = from.read(path)? else { return Ok(()) };
        if to.read(path)?.as_ref() == Some(&bytes) {
            self.done.known += 1;
            return Ok(());
        }

        to.replace(path, &bytes)?;
        self.wrote(bytes.len() as u64);
        Ok(())
    }

    /// Copies a file with known length and checksum; with `trusts_name` one that is there is not read back.
    fn file(&mut self, file: &Held, trusts_name: bool) -> Result<Copied, BackupError> {
        self.stop.check()?;
        let (from, to) = self.blobs();
        let (from, to) = (FileAt { blobs: from, path: &file.path }, FileAt { blobs: to, path: &file.path });
        let copied = copy(from, to, file, trusts_name)?;

        match copied {
            Copied::New => self.wrote(file.bytes),
            Copied::Known => self.done.known += 1,
            Copied::Missing | Copied::Differs => {}
        }
        Ok(copied)
    }

    /// Copies the published files of an export, the logs of its tables, and then its list.
    fn export(&mut self, export: &str) -> Result<(), BackupError> {
        let list_path = format!("exports/{export}.json");
        for round in 1..=ROUNDS {
            let (from, to) = (self.from.blobs().as_ref(), self.to.blobs().as_ref());
            let Some(before) = from.read(&list_path)? else { return Ok(()) };
            let loaded = Published::load(from, export);
            let Some(mut list) = unless_damaged(loaded, &mut self.done.damaged)? else { return Ok(()) };

            let wrong = self.published_files(&list)?;
            for log in log_directories(&list) {
                for name in from.list(&log)? {
                    self.small(&format!("{log}/{name}"))?;
                }
            }

            let is_settled = from.read(&list_path)?.as_ref() == Some(&before);
            if !is_settled && round < ROUNDS {
                continue;
            }

            // A run in the copy publishes them again.
            for WrongFile { label, reason } in wrong {
                list.parts.remove(&label);
                if is_settled {
                    self.done.damaged.push(reason);
                }
            }
            list.retired.clear();
            stamp_files(&mut list, to)?;

            let known = Published::load(to, export)?;
            list.tag.clone_from(&known.tag);
            if list == known {
                self.done.known += 1;
            } else {
                list.save(to)?;
                self.wrote(before.len() as u64);
            }
            self.done.exports += 1;
            return Ok(());
        }
        Ok(())
    }

    /// Copies the published files of a list. Gives those that were not copied.
    fn published_files(&mut self, list: &Published) -> Result<Vec<WrongFile>, BackupError> {
        let mut wrong = Vec::new();
        for (label, part) in &list.parts {
            for (path, file) in part.files_at() {
                let held = Held { path, bytes: file.bytes, checksum: file.checksum };
                let damage = self.file(&held, false)?.damage(&held.path, "list");
                wrong.extend(damage.map(|reason| WrongFile { label: label.clone(), reason }));
            }
        }
        Ok(wrong)
    }

    /// Copies the versions of a table up to `newest`.
    fn table(&mut self, table: &Table, newest: u64, renewed: &mut RenewedPins<'_>) -> Result<(), BackupError> {
        let name = table.name();
        let numbers: Vec<u64> = table.version_numbers()?.into_iter().filter(|number| *number <= newest).collect();
        let Some(oldest) = numbers.first().copied() else { return Ok(()) };
        let held = self.to.table(name).version_numbers()?;

        self.ssts(table, oldest..=newest, renewed)?;

        let directory = format!("tables/{name}/manifest");
        let manifests = numbered_files(self.from.blobs().as_ref(), &directory, oldest..=newest)?;
        // A manifest that the copy has must be the same one: otherwise the copy is of another table.
        for file in manifests.iter().filter(|file| held.contains(&file.number)) {
            let (from, to) = self.blobs();
            if let (Some(ours), Some(theirs)) = (from.read(&file.path)?, to.read(&file.path)?)
                && ours != theirs
            {
                return Err(BackupError::OtherStore { root: to.display(), path: file.path.clone() });
            }
        }
        if held.last().is_some_and(|last| *last > newest) {
            return Err(BackupError::OtherStore { root: self.to.blobs().display(), path: directory });
        }

        let directory = format!("tables/{name}/checkpoint");
        let checkpoints = numbered_files(self.from.blobs().as_ref(), &directory, 0..=newest)?;
        for file in manifests.iter().chain(&checkpoints) {
            self.once(&file.path)?;
        }
        self.done.tables.insert(name.to_owned(), newest);
        Ok(())
    }

    /// Copies the SSTs that versions of a table name.
    fn ssts(
        &mut self,
        table: &Table,
        versions: RangeInclusive<u64>,
        renewed: &mut RenewedPins<'_>,
    ) -> Result<(), BackupError> {
        let mut ssts: BTreeMap<String, Held> = BTreeMap::new();
        table.walk(*versions.start(), *versions.end(), |version| {
            for sst in version.ssts() {
                ssts.entry(sst.id.clone()).or_insert_with(|| held_sst(table, sst));
            }
            Ok(())
        })?;

        for file in ssts.values() {
            let damage = self.file(file, true)?.damage(&file.path, "manifest");
            self.done.damaged.extend(damage);
            renewed.renew_if_due()?;
        }
        Ok(())
    }

    /// Copies a small file that never changes.
    fn once(&mut self, path: &str) -> Result<(), BackupError> {
        self.stop.check()?;
        let (from, to) = self.blobs();
        let Some(bytes) = from.read(path)? else { return Ok(()) };

        if to.read(path)?.as_ref() == Some(&bytes) || !to.create_new(path, &bytes)? {
            self.done.known += 1;
            return Ok(());
        }

        match hash(to, path)? {
            Some((_, checksum)) if checksum == Held::of(path, &bytes).checksum => self.wrote(bytes.len() as u64),
            _ => self.done.damaged.push(format!("{path} was not written as it was read")),
        }
        Ok(())
    }
}

/// Gives the files of a list the stamps that they have in the copy.
fn stamp_files(list: &mut Published, to: &dyn Blobs) -> Result<(), BackupError> {
    for part in list.parts.values_mut() {
        let mut files = part.files_at();
        for (path, file) in &mut files {
            file.stamp = to.stat(path)?.and_then(|found| found.stamp);
        }
        let files: Vec<_> = files.into_iter().map(|(_, file)| file).collect();
        *part = part.clone().with_files(&files);
    }
    Ok(())
}
