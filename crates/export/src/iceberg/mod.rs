//! Iceberg metadata beside the Parquet files of an export: other engines see each run as one snapshot.
//!
//! Writes version 2 of the table format, with paths as catalogs of directories have them:
//! ```text
//! metadata/00003-1f0c..-m0.avro             the files of a snapshot, and those that it removed
//! metadata/snap-7231..-1-90ab...avro        its list of manifests, which is one
//! metadata/v3.metadata.json                 the table: schemas, snapshots; created only if absent
//! metadata/version-hint.text                3
//! ```
//! As a Delta log it follows the list of the export, which notes the version that was brought up to it ([`Logged`]). While that
//! is the newest one, nothing of it is read. A version is written in the order above, so that a reader sees whole runs.

pub(crate) mod avro;
pub(crate) mod catalog;
pub(crate) mod history;
pub(crate) mod manifest;
pub(crate) mod metadata;
pub(crate) mod schema;
pub(crate) mod snapshot;

use std::collections::BTreeMap;

use chrono::NaiveDate;
use tidetable_blobs::{Blobs, each};
use tidetable_store::published::{ColumnIds, Logged, Published};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use crate::error::{ExportError, Result};
use crate::iceberg::manifest::{DataFile, Entry, ManifestFile, ManifestHeader, Status, manifest, manifest_list};
use crate::iceberg::metadata::{Metadata, Snapshot, TableForm, create, hint, location_of, version_path};
use crate::iceberg::schema::{data_file, fields, name_mapping};
use crate::iceberg::snapshot::{LiveFiles, live_files};
use crate::table::column_ids::assigned;
use crate::table::footer::stats;
use crate::table::listed::{ListedFiles, digest, files_of};
use crate::table::{LogTimes, LoggedFiles, Pinned, TRIES, TableLog};

/// The metadata of an export, as a run finds it before it publishes.
#[derive(Debug)]
pub(crate) struct IcebergLog<'a> {
    blobs: &'a dyn Blobs,
    folder: &'a str,
    /// The column of the day.
    day: Option<&'a str>,
    /// URI of the directory of the table.
    location: String,
    /// The ids of columns that files of this run get.
    ids: ColumnIds,
    /// What the list notes of it, if it still holds.
    noted: Option<Logged>,
}

impl<'a> IcebergLog<'a> {
    /// The metadata in `folder` of the export whose list is `published`.
    ///
    /// # Errors
    /// If it cannot be followed. Failures of the storage show when it is written.
    pub(crate) fn open(
        blobs: &'a dyn Blobs,
        published: &Published,
        folder: &'a str,
        day: Option<&'a str>,
    ) -> Result<Self> {
        let location = location_of(blobs, folder);
        let noted = noted(blobs, published, folder, &location).unwrap_or_default().cloned();
        let mut ids = published.column_ids.clone().unwrap_or_default();
        if noted.is_none() || published.column_ids.is_none() {
            match Metadata::newest(blobs, folder) {
                Ok(Some(metadata)) => {
                    if ids.columns.is_empty() {
                        ids.columns = known_columns(&metadata, &published.columns);
                    }
                    // Another engine may have added columns.
                    ids.last = ids.last.max(metadata.last_column());
                }
                Err(error @ ExportError::Log { .. }) => return Err(error),
                Ok(None) | Err(_) => {}
            }
        }
        Ok(Self { blobs, folder, day, location, ids, noted })
    }

    pub(crate) fn is_current(&self) -> bool {
        self.noted.is_some()
    }

    pub(crate) fn column_ids(&self) -> &ColumnIds {
        &self.ids
    }

    /// Brings the metadata up to the list, and notes it in the list, which is saved. Writes nothing if it is current. Snapshots
    /// that are `pinned` stay in it. Returns the version written.
    ///
    /// # Errors
    /// If it cannot be read or written, or a column has a type that Iceberg lacks.
    pub(crate) fn write(&self, published: &mut Published, times: LogTimes, pinned: &Pinned) -> Result<Option<u64>> {
        let files = files_of(published, self.folder);
        // Where no part was written, the list has columns of before the table.
        published.column_ids = published.column_ids.take().map(|ids| assigned(&ids, &published.columns));
        let form = self.form(published, times)?;
        let says = |logged: &&Logged| logged.files == at(&files, &self.location) && logged.table == form.digest();
        if self.noted.as_ref().is_some_and(|logged| says(&logged)) {
            return Ok(None);
        }

        for _ in 0..TRIES {
            let before = Metadata::newest(self.blobs, self.folder)?;
            if before.is_none() && files.is_empty() {
                return Ok(None);
            }
            let known = match before.as_ref().filter(|before| before.location() == self.location) {
                Some(before) => live_files(self.blobs, self.folder, before)?,
                None => LiveFiles::new(),
            };

            let is_same = known.keys().eq(files.keys()) && before.as_ref().is_some_and(|before| form.is_of(before));
            if let Some(before) = before.as_ref().filter(|_| is_same) {
                // A run before stopped between the metadata and the list.
                self.note(published, &form, &files, before)?;
                return Ok(None);
            }

            let begun = form.after(before.as_ref(), pinned);
            let next = self.next(&form, begun, known, &files)?;
            if create(self.blobs, self.folder, &next)? {
                self.note(published, &form, &files, &next)?;
                return Ok(Some(next.version));
            }
        }
        let reason = "other writers have written its next versions: run again".to_owned();
        Err(ExportError::Log { log: TableLog::Iceberg, path: TableLog::Iceberg.path(self.folder), reason })
    }

    /// What the metadata is to say besides the snapshots.
    fn form(&self, published: &Published, times: LogTimes) -> Result<TableForm> {
        let ids = published.column_ids.as_ref().unwrap_or(&self.ids);
        let fields = fields(ids).map_err(|(_, kind)| ExportError::Log {
            log: TableLog::Iceberg,
            path: format!("exports/{}.json", published.name),
            reason: format!("an Iceberg table has no columns of type {kind}: CAST it in the query"),
        })?;
        let day = self.day.and_then(|day| ids.columns.iter().find(|(name, ..)| name == day));
        Ok(TableForm {
            name: published.name.clone(),
            location: self.location.clone(),
            fields,
            last_column: ids.last.max(self.ids.last),
            mapping: name_mapping(ids),
            day: day.map(|(name, _, id)| (name.clone(), *id)),
            times,
        })
    }

    /// `next`, whose files are `known`, with a snapshot of the files of the list, if they are others. Its manifest and list are
    /// written.
    fn next(&self, form: &TableForm, mut next: Metadata, known: LiveFiles, files: &ListedFiles) -> Result<Metadata> {
        if known.keys().eq(files.keys()) {
            return Ok(next);
        }
        let entries = self.entries(&next, known, files)?;
        let (spec, partition) = next.partition();
        let name = form.day.as_ref().map(|(name, _)| avro_name(name));
        let day = name.as_deref().zip(partition[0]["field-id"].as_i64());
        let mut added = ManifestFile {
            path: String::new(),
            length: 0,
            spec,
            has_deletes: false,
            sequence: next.last_sequence() + 1,
            snapshot: entries.snapshot,
        };

        let log = TableLog::Iceberg.path(self.folder);
        let header = ManifestHeader { schema: next.schema(), partition, spec, day };
        let bytes = manifest(&header, &entries.entries);
        let name = format!("{:05}-{:032x}-m0.avro", next.version, xxh3_128(&bytes));
        self.blobs.replace(&format!("{log}/{name}"), &bytes)?;
        added.path = format!("{}/metadata/{name}", self.location);
        added.length = bytes.len() as i64;

        let list = manifest_list(&added, next.current_snapshot(), day.is_some(), &entries.entries);
        let name = format!("snap-{}-1-{:032x}.avro", entries.snapshot, xxh3_128(&list));
        self.blobs.replace(&format!("{log}/{name}"), &list)?;
        next.add(&Snapshot {
            id: entries.snapshot,
            operation: entries.operation(),
            summary: entries.summary(),
            list: format!("{}/metadata/{name}", self.location),
        });
        Ok(next)
    }

    /// The entries of the manifest of the next snapshot of `next`.
    fn entries(&self, next: &Metadata, mut known: LiveFiles, files: &ListedFiles) -> Result<Entries> {
        let sequence = next.last_sequence() + 1;
        let uuid = next.value["table-uuid"].as_str().unwrap_or_default();
        let mark = xxh3_64(format!("{uuid}\0{}\0{sequence}\0{}", next.version, digest(files)).as_bytes());
        let snapshot = (mark >> 1).max(1).cast_signed();

        let new: Vec<&String> = files.keys().filter(|path| !known.contains_key(*path)).collect();
        let paths: Vec<String> = new.iter().map(|path| format!("exports/{}/{path}", self.folder)).collect();
        let mut read = BTreeMap::new();
        for ((path, at), stats) in
            new.into_iter().zip(&paths).zip(each(self.blobs, &paths, |path| stats(self.blobs, path)))
        {
            let log = TableLog::Iceberg;
            let stats = stats.map_err(|reason| ExportError::Log { log, path: at.clone(), reason })?;
            read.insert(path, stats);
        }

        let ids = next_ids(next);
        let mut entries = Vec::with_capacity(files.len());
        for (path, listed) in files {
            let day = listed.day.map(|day| day.to_epoch_days());
            if let Some(entry) = known.remove(path) {
                let file = DataFile { day, ..entry.file };
                entries.push(Entry { status: Status::Existing, file, ..entry });
            } else if let Some(stats) = read.get(path) {
                let file = data_file(format!("{}/{path}", self.location), listed.bytes, stats, &ids);
                let file = DataFile { day, ..file };
                entries.push(Entry { status: Status::Added, snapshot, sequence, file_sequence: sequence, file });
            }
        }
        for (path, entry) in known {
            let day = path.split('/').find_map(|folder| folder.split_once('=')?.1.parse::<NaiveDate>().ok());
            let day = day.map(|day| day.to_epoch_days());
            let file = DataFile { day, ..entry.file };
            entries.push(Entry { status: Status::Deleted, snapshot, file, ..entry });
        }
        Ok(Entries { snapshot, entries })
    }

    /// Notes in the list that this version holds what it names.
    fn note(&self, published: &mut Published, form: &TableForm, files: &ListedFiles, written: &Metadata) -> Result<()> {
        hint(self.blobs, self.folder, written.version)?;
        published.logged = Some(Logged {
            version: written.version,
            bytes: self.blobs.stat(&version_path(self.folder, written.version))?.map_or(0, |found| found.bytes),
            files: at(files, &self.location),
            table: form.digest(),
            checkpoint: None,
        });
        Ok(published.save(self.blobs)?)
    }
}

/// The entries of a new manifest.
struct Entries {
    snapshot: i64,
    entries: Vec<Entry>,
}

impl Entries {
    fn of(&self, status: Status) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.status == status)
    }

    /// What the snapshot does.
    fn operation(&self) -> &'static str {
        match (self.of(Status::Added).next(), self.of(Status::Deleted).next()) {
            (_, None) => "append",
            (None, Some(_)) => "delete",
            (Some(_), Some(_)) => "overwrite",
        }
    }

    /// Counts of files and rows.
    fn summary(&self) -> Vec<(&'static str, String)> {
        let files = |status: Status| self.of(status).count();
        let rows = |status: Status| self.of(status).map(|entry| entry.file.rows).sum::<i64>();
        let bytes = |status: Status| self.of(status).map(|entry| entry.file.bytes).sum::<i64>();
        let (added, stays, gone) = (Status::Added, Status::Existing, Status::Deleted);
        let mut summary = Vec::new();
        if files(added) > 0 {
            summary.push(("added-data-files", files(added).to_string()));
            summary.push(("added-records", rows(added).to_string()));
            summary.push(("added-files-size", bytes(added).to_string()));
        }
        if files(gone) > 0 {
            summary.push(("deleted-data-files", files(gone).to_string()));
            summary.push(("deleted-records", rows(gone).to_string()));
            summary.push(("removed-files-size", bytes(gone).to_string()));
        }
        summary.push(("total-data-files", (files(added) + files(stays)).to_string()));
        summary.push(("total-records", (rows(added) + rows(stays)).to_string()));
        summary.push(("total-files-size", (bytes(added) + bytes(stays)).to_string()));
        for none in ["total-delete-files", "total-position-deletes", "total-equality-deletes"] {
            summary.push((none, "0".to_owned()));
        }
        summary
    }
}

/// What the list notes of the metadata in `folder`, if it still holds: its files are those of the list, it is at this place, and
/// the noted version is the newest. Reads none of it.
fn noted<'a>(blobs: &dyn Blobs, published: &'a Published, folder: &str, location: &str) -> Result<Option<&'a Logged>> {
    let Some(logged) = &published.logged else { return Ok(None) };
    if logged.files != at(&files_of(published, folder), location) {
        return Ok(None);
    }
    let paths = [version_path(folder, logged.version), version_path(folder, logged.version + 1)];
    let found = blobs.stat_all(&paths)?;
    let [Some(newest), None] = found.as_slice() else { return Ok(None) };
    Ok((newest.bytes == logged.bytes).then_some(logged))
}

/// Hash of which files there are, and where.
fn at(files: &ListedFiles, location: &str) -> String {
    format!("{:032x}", xxh3_128(format!("{location}\0{}", digest(files)).as_bytes()))
}

/// The columns `listed` that the current schema of a table has, with its ids, for a list that does not know them.
fn known_columns(metadata: &Metadata, listed: &[(String, String)]) -> Vec<(String, String, i32)> {
    let fields = metadata.current_fields().as_array().map(Vec::as_slice).unwrap_or_default();
    let mut known = Vec::new();
    for (name, kind) in listed {
        let field = fields.iter().find(|field| field["name"] == name.as_str());
        let id = field.and_then(|field| i32::try_from(field["id"].as_i64()?).ok());
        known.extend(id.map(|id| (name.clone(), kind.clone(), id)));
    }
    known
}

/// The ids of the current schema.
fn next_ids(metadata: &Metadata) -> ColumnIds {
    let mut columns = Vec::new();
    for field in metadata.current_fields().as_array().into_iter().flatten() {
        let id = field["id"].as_i64().and_then(|id| i32::try_from(id).ok());
        let text = |key: &str| field[key].as_str().unwrap_or_default().to_owned();
        columns.extend(id.map(|id| (text("name"), text("type"), id)));
    }
    ColumnIds { last: metadata.last_column(), columns }
}

/// A name of a column as names are in Avro.
fn avro_name(name: &str) -> String {
    let mut sound = String::new();
    for (at, letter) in name.char_indices() {
        match letter {
            'a'..='z' | 'A'..='Z' | '_' => sound.push(letter),
            '0'..='9' if at > 0 => sound.push(letter),
            other => sound.push_str(&format!("_x{:X}", u32::from(other))),
        }
    }
    sound
}

/// The files of the table in `folder`; `None` without one.
///
/// # Errors
/// If its metadata cannot be read.
pub(crate) fn logged_files(blobs: &dyn Blobs, folder: &str) -> Result<Option<LoggedFiles>> {
    let Some(metadata) = Metadata::newest(blobs, folder)? else { return Ok(None) };
    let (files, here) = (live_files(blobs, folder, &metadata)?, location_of(blobs, folder));
    let damage = (metadata.location() != here).then(|| {
        format!(
            "it was written for {}, and is now at {here}, so that its readers look for files there",
            metadata.location()
        )
    });
    Ok(Some(LoggedFiles { files: files.into_keys().collect(), damage }))
}

#[cfg(test)]
mod tests;
