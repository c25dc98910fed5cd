//! Delta log beside the Parquet files of an export: other engines see each run as one snapshot.
//!
//! Writes the minimum of the protocol, reader version 1 and writer version 2:
//! ```text
//! _delta_log/00000000000000000000.json   commitInfo, protocol, metaData, add ..
//! _delta_log/00000000000000000001.json   commitInfo, [metaData], remove .., add ..
//! ```
//! The log follows the list of the export: files that the list has and the log has not are added, the reverse removed, so
//! the next run completes an interrupted one. The list notes the version that was brought up to it ([`Logged`]). While that is the
//! newest one, the log holds what the list does and need not be read; otherwise, as after a write of another engine, its entries and
//! checkpoints tell ([`log_state`]). A replaced file gets a new name, and the old one stays for readers of older snapshots until
//! its retention has passed ([`expired_files`](crate::expired_files)).

pub(crate) mod checkpoint;
pub(crate) mod log_state;
pub(crate) mod paths;
pub(crate) mod schema;
pub(crate) mod stats;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tidetable_blobs::{Blobs, each};
use tidetable_store::published::{Logged, Published};
use xxhash_rust::xxh3::xxh3_128;

use crate::delta::log_state::{LogState, RETENTION, entry, reaches};
use crate::delta::paths::{decoded, encoded};
use crate::delta::schema::{has_local_time, schema};
use crate::delta::stats::stats;
use crate::error::{ExportError, Result};
use crate::table::listed::{ListedFile, ListedFiles, digest, files_of};
use crate::table::{History, LogTimes, LoggedFiles, SNAPSHOT_RETENTION, TRIES, TableLog};

/// What the list notes of the log in `folder`, if it still holds: its files are those of the list, the noted entry is the newest,
/// and no entry is missing that other readers need. Reads no entry.
fn noted<'a>(blobs: &dyn Blobs, published: &'a Published, folder: &str) -> Result<Option<&'a Logged>> {
    let Some(logged) = &published.logged else { return Ok(None) };
    if logged.files != digest(&files_of(published, folder)) {
        return Ok(None);
    }
    let log = TableLog::Delta.path(folder);
    if !reaches(blobs, &log, logged.checkpoint, logged.version)? {
        return Ok(None);
    }
    let newest = blobs.stat(&entry(&log, logged.version))?;
    Ok(newest.is_some_and(|newest| newest.bytes == logged.bytes).then_some(logged))
}

/// The log of an export, as a run finds it before it publishes.
#[derive(Debug)]
pub(crate) struct DeltaLog<'a> {
    blobs: &'a dyn Blobs,
    folder: &'a str,
    /// What the list notes of it, with the files that it holds; `None` if it was read.
    noted: Option<(Logged, ListedFiles)>,
}

impl<'a> DeltaLog<'a> {
    /// The log in `folder` of the export whose list is `published`.
    ///
    /// # Errors
    /// If it does not tell which files its table has, so that it cannot follow the list. Failures of the storage show when it
    /// is written.
    pub(crate) fn open(blobs: &'a dyn Blobs, published: &Published, folder: &'a str) -> Result<Self> {
        let noted = noted(blobs, published, folder).unwrap_or_default();
        let noted = noted.map(|logged| (logged.clone(), files_of(published, folder)));
        if noted.is_none()
            && let Err(error @ ExportError::Log { .. }) = LogState::read(blobs, &TableLog::Delta.path(folder))
        {
            return Err(error);
        }
        Ok(Self { blobs, folder, noted })
    }

    /// Whether it was found to hold what the list names, so that there is nothing to write until the list changes.
    pub(crate) fn is_current(&self) -> bool {
        self.noted.is_some()
    }

    /// Brings the log up to the list, and notes it in the list, which is saved. Writes nothing if it is current. Returns the
    /// version written.
    ///
    /// # Errors
    /// If the log cannot be read or written, or a column has a type that Delta lacks.
    pub(crate) fn write(&self, published: &mut Published, times: LogTimes) -> Result<Option<u64>> {
        let log = TableLog::Delta.path(self.folder);
        let files = files_of(published, self.folder);
        let partition = files.values().next().map(|file| file.partition.as_slice()).unwrap_or_default();
        let columns: Vec<String> = partition.iter().map(|(name, _)| name.clone()).collect();
        let table = TableMetadata { schema: schema(published, &files, &columns)?, columns, times };

        let mut noted = self.noted.as_ref().filter(|(logged, _)| !files.is_empty() && logged.table == table.digest());
        for _ in 0..TRIES {
            let known = match noted.take() {
                Some((logged, before)) => table.state_of(logged, before),
                None => LogState::read(self.blobs, &log)?,
            };
            let mut actions = table.actions(&published.name, &known, files.is_empty());
            actions.extend(self.file_actions(&known, &files, times));
            if actions.is_empty() {
                return Ok(None);
            }

            let time = times.now.div_euclid(1000);
            let info = json!({ "timestamp": time, "operation": "WRITE", "engineInfo": "tidetable" });
            let mut text = format!("{}\n", json!({ "commitInfo": info }));
            actions.iter().for_each(|action| text.push_str(&format!("{action}\n")));

            let version = known.version.map_or(0, |last| last + 1);
            if self.blobs.create_new(&entry(&log, version), text.as_bytes())? {
                let checkpoint = self.checkpoint(version, known.checkpoint, times)?;
                published.logged = (!files.is_empty() && has_usual_spellings(&known, &files)).then(|| Logged {
                    version,
                    bytes: text.len() as u64,
                    files: digest(&files),
                    table: table.digest(),
                    checkpoint,
                });
                published.save(self.blobs)?;
                return Ok(Some(version));
            }
        }
        let reason = "other writers have written its next versions: run again".to_owned();
        Err(ExportError::Log { log: TableLog::Delta, path: log, reason })
    }

    /// The actions that remove and add files.
    fn file_actions(&self, known: &LogState, files: &ListedFiles, times: LogTimes) -> Vec<Value> {
        let mut actions = Vec::new();
        let gone = known.files.iter().filter(|(path, _)| !files.contains_key(*path));
        for path in gone.flat_map(|(_, spellings)| spellings.keys()) {
            let time = times.clock.div_euclid(1000);
            actions.push(json!({ "remove": { "path": path, "deletionTimestamp": time, "dataChange": true } }));
        }

        let new: Vec<(&String, &ListedFile)> =
            files.iter().filter(|(path, _)| !known.files.contains_key(*path)).collect();
        let paths: Vec<String> = new.iter().map(|(path, _)| format!("exports/{}/{path}", self.folder)).collect();
        let stats = each(self.blobs, &paths, |path| stats(self.blobs, path));
        for ((path, file), stats) in new.into_iter().zip(stats) {
            let values: BTreeMap<&String, &String> = file.partition.iter().map(|(name, value)| (name, value)).collect();
            let mut add = json!({
                "path": encoded(path), "partitionValues": values, "size": file.bytes,
                "modificationTime": times.now.div_euclid(1000), "dataChange": true, "tags": { "checksum": file.checksum },
            });
            if let Some(stats) = stats {
                add["stats"] = Value::from(stats);
            }
            actions.push(json!({ "add": add }));
        }
        actions
    }

    /// Writes a checkpoint of `version`, which is the newest, if the one before is old. Returns the version of the newest one.
    fn checkpoint(&self, version: u64, before: Option<u64>, times: LogTimes) -> Result<Option<u64>> {
        if version - before.unwrap_or_default().min(version) < checkpoint::EVERY {
            return Ok(before);
        }
        let log = TableLog::Delta.path(self.folder);
        let state = LogState::read(self.blobs, &log)?;
        let expired = times.clock.saturating_sub(times.retention).div_euclid(1000);
        let written = checkpoint::write(self.blobs, &log, &state, expired)?;
        Ok(if written { state.version } else { before })
    }
}

/// Whether the files that stay are in the log in the spelling in which this build writes them, and in no other.
fn has_usual_spellings(known: &LogState, files: &ListedFiles) -> bool {
    let mut staying = known.files.iter().filter(|(path, _)| files.contains_key(*path));
    staying.all(|(path, spellings)| spellings.keys().eq([&encoded(path)]))
}

/// What a log says of its table besides the files.
struct TableMetadata {
    /// Delta's schema, as JSON.
    schema: String,
    /// The partition columns.
    columns: Vec<String>,
    times: LogTimes,
}

impl TableMetadata {
    /// Hash of what [`Self::actions`] compares with the log.
    fn digest(&self) -> String {
        format!("{:032x}", xxh3_128(format!("{}\0{}", self.times.retention, self.schema).as_bytes()))
    }

    /// The state of a log of which the list notes that it has this table with these files.
    fn state_of(&self, logged: &Logged, files: &ListedFiles) -> LogState {
        let metadata = json!({ "schemaString": self.schema, "configuration": self.configuration(None) });
        let spelled = |path: &String| BTreeMap::from([(encoded(path), Value::Null)]);
        LogState {
            files: files.keys().map(|path| (path.clone(), spelled(path))).collect(),
            metadata: Some(metadata),
            version: Some(logged.version),
            checkpoint: logged.checkpoint,
            ..LogState::default()
        }
    }

    /// The actions that state the protocol and the schema of the table `name`, where the log does not have them.
    fn actions(&self, name: &str, known: &LogState, is_empty: bool) -> Vec<Value> {
        let is_new = known.version.is_none();
        let mut actions = Vec::new();
        if has_local_time(&self.schema) && !known.schema().is_some_and(has_local_time) {
            let features = ["timestampNtz"];
            actions.push(json!({ "protocol": {
                "minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features,
            } }));
        } else if is_new {
            actions.push(json!({ "protocol": { "minReaderVersion": 1, "minWriterVersion": 2 } }));
        }

        // Without files the partition columns are unknown.
        let says_schema = !is_empty || is_new;
        let is_other = known.schema() != Some(self.schema.as_str())
            || known.retention().unwrap_or(SNAPSHOT_RETENTION) != self.times.retention;
        if says_schema && is_other {
            let digest = format!("{:032x}", xxh3_128(name.as_bytes()));
            // In the form of a UUID; stable for an export.
            let id = format!(
                "{}-{}-{}-{}-{}",
                &digest[..8],
                &digest[8..12],
                &digest[12..16],
                &digest[16..20],
                &digest[20..]
            );
            actions.push(json!({ "metaData": {
                "id": id, "name": name, "format": { "provider": "parquet", "options": {} },
                "schemaString": self.schema, "partitionColumns": self.columns,
                "configuration": self.configuration(known.metadata.as_ref()),
                "createdTime": self.times.now.div_euclid(1000),
            } }));
        }
        actions
    }

    /// The configuration of the table: that of `before`, with the retention, which engines that remove files follow.
    fn configuration(&self, before: Option<&Value>) -> Value {
        let before = before.and_then(|metadata| metadata["configuration"].as_object());
        let mut configuration = before.cloned().unwrap_or_default();
        configuration.remove(RETENTION);
        if self.times.retention != SNAPSHOT_RETENTION {
            let seconds = self.times.retention.div_euclid(1_000_000);
            configuration.insert(RETENTION.to_owned(), Value::from(format!("interval {seconds} seconds")));
        }
        Value::Object(configuration)
    }
}

/// The files of the log in `folder`; `None` without a log.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn logged_files(blobs: &dyn Blobs, folder: &str) -> Result<Option<LoggedFiles>> {
    let state = LogState::read(blobs, &TableLog::Delta.path(folder))?;
    let files = state.files.into_keys().collect();
    Ok(state.version.map(|_| LoggedFiles { files, damage: None }))
}

/// What the log in `folder` tells of removed files; `None` without a log.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn history(blobs: &dyn Blobs, folder: &str) -> Result<Option<History>> {
    let state = LogState::read(blobs, &TableLog::Delta.path(folder))?;
    if state.version.is_none() {
        return Ok(None);
    }
    let mut removed: BTreeMap<String, i64> = BTreeMap::new();
    for (path, remove) in &state.removed {
        let time = remove["deletionTimestamp"].as_i64().unwrap_or_default().saturating_mul(1000);
        let latest = removed.entry(decoded(path)).or_insert(time);
        *latest = time.max(*latest);
    }
    let retention = state.retention();
    Ok(Some(History { kept: state.files.into_keys().collect(), removed, own: Vec::new(), retention }))
}

#[cfg(test)]
mod tests;
