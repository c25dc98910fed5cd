//! Lists of exports: the published parts of each export, and the versions they were made from.
//!
//! `exports/SENSOR_DAY.json` is the list of one export; `exports/SENSOR_20180101/` is a part of it. A part is listed
//! after its files are in place, so listed parts can be read. If a part has several files, their names are new in
//! every run: a reader with an old list finds all of them or an error, never a mixture.
//!
//! In a directory the list is replaced by a rename. In a bucket it is replaced only if it is still the one that was read,
//! so of two writers one fails; and files that it lists no more are removed later, for readers of the old list.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidetable_blobs::{BlobError, Blobs, Stamp, Stat, Tag, each};
use xxhash_rust::xxh3::Xxh3;

use crate::error::{Result, StoreError};
use crate::left_out::unreadable;

const EXPORTS: &str = "exports";
/// Format of lists whose parts are one file each.
const FORMAT: u32 = 1;
/// Format of lists with a part of several files.
const SEVERAL_FILES: u32 = 2;

/// The parts of one export.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Published {
    /// Format of this list.
    pub format: u32,
    /// Name of the export, as in the job file.
    pub name: String,
    /// The job it belongs to.
    pub job: String,
    /// Names and types (printed Arrow data types) of its columns; readers take the schema from here.
    pub columns: Vec<(String, String)>,
    /// Parts by label: `2018-01-01` for a day.
    pub parts: BTreeMap<String, Part>,
    /// Parts without rows, by label: they have no file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub empty: BTreeMap<String, MadeFrom>,
    /// In a bucket, files that are no longer listed and not removed yet, by path inside the store, with the time (of the
    /// clock, microseconds) when they were replaced.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub retired: BTreeMap<String, i64>,
    /// The version of the table log beside the files that was last brought up to this list; `None` without a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logged: Option<Logged>,
    /// What the catalog has that other engines ask for the table; `None` before it was committed there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cataloged: Option<Cataloged>,
    /// Ids of the columns in the files, of an export whose log tells columns by id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column_ids: Option<ColumnIds>,
    /// In a bucket, the tag of the list as it was read or written.
    #[serde(skip)]
    pub tag: Option<Tag>,
}

/// A version of a table log that holds the files of a list. If they are those of the list still, and it is still the newest
/// version, the log need not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logged {
    /// The version.
    pub version: u64,
    /// Length of its entry, bytes.
    pub bytes: u64,
    /// Hash of the files that it has.
    pub files: String,
    /// Hash of what it says of the table: schema and retention.
    pub table: String,
    /// The version of the newest checkpoint before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<u64>,
}

/// A version of a table log that was committed to a catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cataloged {
    /// The table and its catalog, in words.
    pub table: String,
    /// The version.
    pub version: u64,
}

/// Ids of the columns of an export. A column that is dropped leaves its id to nobody.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ColumnIds {
    /// The greatest id that was ever given.
    pub last: i32,
    /// Name, type (printed Arrow data type) and id of each column.
    pub columns: Vec<(String, String, i32)>,
}

/// Origin of a part: the query and the versions it was made from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeFrom {
    /// Fingerprint of the query and its settings.
    pub query: String,
    /// For each table read, the last version that had changed any of its days.
    pub sources: BTreeMap<String, u64>,
    /// For a part without rows, the directory that it would have, its name in SQL.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub folder: String,
    /// For a part that was never published, whether the tables had no records of its time: a gap, and no answer without rows.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_gap: bool,
}

/// Whether a flag is not written.
fn is_false(flag: &bool) -> bool {
    !flag
}

/// A published part: where its files are, and what they were made from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Name of its directory in `exports/`; also its name in SQL.
    pub folder: String,
    /// Name of its first file.
    pub file: String,
    /// Rows of all files.
    pub rows: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// xxh3-128 of the first file, hexadecimal.
    pub checksum: String,
    /// File stamp of the first file when it was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<Stamp>,
    /// The files after the first, in the order of their rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more: Vec<PartFile>,
    /// Fingerprint of the query and its settings.
    pub query: String,
    /// For each table read, the last version that had changed any of its days.
    pub sources: BTreeMap<String, u64>,
    /// Logical time of the run that published it, microseconds.
    pub now: i64,
    /// Id of that run.
    pub run: String,
}

/// A file of a part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartFile {
    /// Name of the file in the directory of its part.
    pub file: String,
    /// Length of the file, bytes.
    pub bytes: u64,
    /// xxh3-128 of the file, 32 hexadecimal digits.
    pub checksum: String,
    /// Its file stamp when it was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamp: Option<Stamp>,
}

/// State of a published file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// As published, by size and stamp.
    AsPublished,
    /// Touched or copied since, with the published bytes; its present stamp.
    SameBytes(Option<Stamp>),
    /// Damaged: its bytes were changed or truncated.
    Changed,
    /// Another file with other bytes, such as one of a run that stopped before it listed the part.
    Another,
    /// The file does not exist.
    Missing,
}

impl PartFile {
    /// State of the file at `path`. Its bytes are read and compared unless it has the stamp that it was published with.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn state(&self, blobs: &dyn Blobs, path: &str) -> Result<FileState> {
        self.state_by(blobs, path, blobs.stat(path)?)
    }

    /// As [`Self::state`], by the metadata of the file.
    ///
    /// # Errors
    /// As [`Self::state`].
    pub fn state_by(&self, blobs: &dyn Blobs, path: &str, found: Option<Stat>) -> Result<FileState> {
        let Some(found) = found else { return Ok(FileState::Missing) };
        if self.stamp.is_some() && self.stamp == found.stamp && found.bytes == self.bytes {
            return Ok(FileState::AsPublished);
        }
        if found.bytes == self.bytes && file_checksum(blobs, path)? == self.checksum {
            return Ok(FileState::SameBytes(found.stamp));
        }
        Ok(if self.is_other_file(found) { FileState::Another } else { FileState::Changed })
    }

    /// Compares the checksum of the file at `path`; reads all of it.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn verify(&self, blobs: &dyn Blobs, path: &str) -> Result<FileState> {
        let Some(found) = blobs.stat(path)? else { return Ok(FileState::Missing) };
        if found.bytes == self.bytes && file_checksum(blobs, path)? == self.checksum {
            return Ok(FileState::SameBytes(found.stamp));
        }
        Ok(if self.is_other_file(found) { FileState::Another } else { FileState::Changed })
    }

    /// Whether the file found was put in place of the published one, and not changed where it was.
    pub fn is_other_file(&self, found: Stat) -> bool {
        matches!((self.stamp, found.stamp), (Some(known), Some(now)) if known.inode != now.inode)
    }
}

/// xxh3-128 of a file, hexadecimal.
///
/// # Errors
/// If it cannot be read.
pub fn file_checksum(blobs: &dyn Blobs, path: &str) -> Result<String> {
    const READ: u64 = 1 << 20;
    let file = blobs.open(path)?;
    let mut hash = Xxh3::new();
    let mut offset = 0;
    while offset < file.len() {
        let length = READ.min(file.len() - offset);
        let read = file.read_at(offset, length as usize);
        let bytes =
            read.map_err(|source| StoreError::Blob(BlobError::Io { action: "read", path: path.to_owned(), source }))?;
        hash.update(&bytes);
        offset += length;
    }

    Ok(format!("{:032x}", hash.digest128()))
}

impl Published {
    /// The list of export `name`; empty if nothing was published.
    ///
    /// # Errors
    /// If the list cannot be read.
    pub fn load(blobs: &dyn Blobs, name: &str) -> Result<Self> {
        let path = list_path(name);
        let Some((bytes, tag)) = blobs.read_tagged(&path)? else {
            return Ok(Self { format: FORMAT, name: name.to_owned(), ..Self::default() });
        };

        let parsed: Result<Self, String> = match serde_json::from_slice(&bytes) {
            Ok(Self { format, .. }) if ![FORMAT, SEVERAL_FILES].contains(&format) => {
                Err(format!("it has format {format}, which this build does not know"))
            }
            Ok(list) => Ok(Self { tag, ..list }),
            Err(error) => Err(error.to_string()),
        };
        parsed.map_err(|reason| unreadable(&path, "the list of what was published", SEVERAL_FILES, &bytes, reason))
    }

    /// Writes the list, replacing the one before.
    ///
    /// # Errors
    /// If it cannot be written; then the list is the old or the new one. In a bucket, [`StoreError::Conflict`] if it is no
    /// longer the one that was read.
    pub fn save(&mut self, blobs: &dyn Blobs) -> Result<()> {
        let path = list_path(&self.name);
        let several = self.parts.values().any(|part| !part.more.is_empty());
        let list = Self { format: if several { SEVERAL_FILES } else { FORMAT }, ..self.clone() };
        let encoded = serde_json::to_vec_pretty(&list);
        let mut bytes =
            encoded.map_err(|error| StoreError::Manifest { path: path.clone(), reason: error.to_string() })?;
        bytes.push(b'\n');

        if !blobs.capabilities().compares {
            return Ok(blobs.replace(&path, &bytes)?);
        }

        self.tag = match &self.tag {
            Some(tag) => blobs.replace_if(&path, &bytes, tag)?,
            None if blobs.create_new(&path, &bytes)? => match blobs.read_tagged(&path)? {
                Some((found, tag)) if found == bytes => tag,
                _ => None,
            },
            None => None,
        };
        if self.tag.is_none() {
            let reason = "its list was written meanwhile".to_owned();
            return Err(StoreError::Conflict { table: format!("export {}", self.name), reason });
        }

        Ok(())
    }

    /// The version of its table log that the catalog with `table` lacks; `None` if it lacks none.
    pub fn owed_to(&self, table: &str) -> Option<u64> {
        let logged = self.logged.as_ref()?.version;
        let has = self.cataloged.as_ref().is_some_and(|known| known.table == table && known.version == logged);
        (!has).then_some(logged)
    }

    /// Whether the file at `path` was written after this list: by a run that was stopped, or found the disk full, before it
    /// could write the list. `false` where times of files are not known.
    ///
    /// # Errors
    /// If the times cannot be read.
    pub fn is_older_than(&self, blobs: &dyn Blobs, path: &str) -> Result<bool> {
        let found = blobs.stat_all(&[list_path(&self.name), path.to_owned()])?;
        let mut modified = found.into_iter().map(|found| found?.modified);
        let (list, file) = (modified.next().flatten(), modified.next().flatten());
        Ok(list.zip(file).is_some_and(|(list, file)| list < file))
    }

    /// The readable lists of a store, by name, and the errors of the others.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub fn readable(blobs: &dyn Blobs) -> Result<(Vec<Self>, Vec<StoreError>)> {
        Self::readable_of(blobs, |_| true)
    }

    /// As [`Self::readable`], of the exports whose names are `wanted`; others are not read.
    ///
    /// # Errors
    /// As [`Self::readable`].
    pub fn readable_of(blobs: &dyn Blobs, wanted: impl Fn(&str) -> bool) -> Result<(Vec<Self>, Vec<StoreError>)> {
        let (mut lists, mut damaged) = (Vec::new(), Vec::new());
        let mut names = Self::names(blobs)?;
        names.retain(|name| wanted(name));
        for list in each(blobs, &names, |name| Self::load(blobs, name)) {
            match list {
                Ok(list) => lists.push(list),
                Err(error) => damaged.push(error),
            }
        }
        Ok((lists, damaged))
    }

    /// All lists of a store, by name. For callers that must not mistake a listed part for an orphan.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn all(blobs: &dyn Blobs) -> Result<Vec<Self>> {
        each(blobs, &Self::names(blobs)?, |name| Self::load(blobs, name)).into_iter().collect()
    }

    /// The names of the exports with a list.
    fn names(blobs: &dyn Blobs) -> Result<Vec<String>> {
        let files = blobs.list(EXPORTS)?;
        Ok(files.iter().filter_map(|file| file.strip_suffix(".json")).map(str::to_owned).collect())
    }
}

impl Part {
    /// Its files, in the order of their rows.
    pub fn files(&self) -> Vec<PartFile> {
        let others: u64 = self.more.iter().map(|file| file.bytes).sum();
        let bytes = self.bytes.saturating_sub(others);
        let first = PartFile { file: self.file.clone(), bytes, checksum: self.checksum.clone(), stamp: self.stamp };
        std::iter::once(first).chain(self.more.iter().cloned()).collect()
    }

    /// The same part with these files.
    #[must_use]
    pub fn with_files(self, files: &[PartFile]) -> Self {
        let bytes = files.iter().map(|file| file.bytes).sum();
        let (first, more) = files.split_first().map_or_else(Default::default, |(first, more)| (first.clone(), more));
        Self { file: first.file, checksum: first.checksum, stamp: first.stamp, bytes, more: more.to_vec(), ..self }
    }

    /// Its files with their paths inside the store.
    pub fn files_at(&self) -> Vec<(String, PartFile)> {
        self.files().into_iter().map(|file| (self.path_of(&file), file)).collect()
    }

    /// Paths of its files inside the store.
    pub fn paths(&self) -> Vec<String> {
        self.files().iter().map(|file| self.path_of(file)).collect()
    }

    /// Path of one of its files inside the store.
    fn path_of(&self, file: &PartFile) -> String {
        format!("{EXPORTS}/{}/{}", self.folder, file.file)
    }
}

/// Path of the list of an export inside the store.
fn list_path(name: &str) -> String {
    format!("{EXPORTS}/{name}.json")
}
