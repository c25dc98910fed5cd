//! Reads a Delta log: the newest checkpoint and the entries after it.
//!
//! A checkpoint holds the table at a version, and engines remove the entries before it, so entries alone do not tell which files
//! a table has. It is a Parquet file, or several, with a row for each action, in columns named as the actions of entries:
//! ```text
//! _delta_log/00000000000000000010.checkpoint.parquet
//! _delta_log/00000000000000000010.checkpoint.0000000001.0000000002.parquet
//! ```
//! Checkpoints of the second version of the format, `N.checkpoint.UUID.json`, belong to a table feature that no export has.

use std::collections::{BTreeMap, BTreeSet};

use arrow::json::LineDelimitedWriter;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;
use tidetable_blobs::Blobs;

use crate::delta::paths::decoded;
use crate::error::{ExportError, Result};
use crate::table::TableLog;

/// The table as its log describes it.
#[derive(Debug, Default)]
pub(crate) struct LogState {
    /// The `add` actions of its files: by decoded path, then by the spelling of the path in the log. Some readers tell spellings
    /// apart: a file is there for them until it is removed in the spelling in which it was added.
    pub(crate) files: BTreeMap<String, BTreeMap<String, Value>>,
    /// The `remove` actions of files that are no longer there, by the spelling of the path.
    pub(crate) removed: BTreeMap<String, Value>,
    /// The `metaData` action.
    pub(crate) metadata: Option<Value>,
    /// The `protocol` action.
    pub(crate) protocol: Option<Value>,
    /// Whether the log holds actions of other engines that are neither files nor of the schema, such as `txn`.
    pub(crate) has_other_actions: bool,
    /// The newest version; `None` without a log.
    pub(crate) version: Option<u64>,
    /// The version of the newest checkpoint.
    pub(crate) checkpoint: Option<u64>,
}

/// The names in a log by what they are.
#[derive(Default)]
struct LogNames {
    entries: BTreeSet<u64>,
    /// Files of checkpoints in a known form, by version and number of files.
    checkpoints: BTreeMap<(u64, usize), Vec<String>>,
    /// Whether there is a checkpoint of another form.
    has_other_checkpoint: bool,
}

/// Key of the table's configuration for how long removed files stay.
pub(crate) const RETENTION: &str = "delta.deletedFileRetentionDuration";

/// Units of an interval, microseconds.
const UNITS: [(&str, i64); 6] = [
    ("millisecond", 1_000),
    ("second", 1_000_000),
    ("minute", 60_000_000),
    ("hour", 3_600_000_000),
    ("day", 86_400_000_000),
    ("week", 604_800_000_000),
];

/// Path of the entry of a version.
pub(crate) fn entry(log: &str, version: u64) -> String {
    format!("{log}/{version:020}.json")
}

/// Whether the log in the directory `log` has this checkpoint, if one is given, each entry after it up to `version`, and no later
/// one. Reads names only.
///
/// # Errors
/// If they cannot be listed.
pub(crate) fn reaches(blobs: &dyn Blobs, log: &str, checkpoint: Option<u64>, version: u64) -> Result<bool> {
    let after = checkpoint.map_or_else(String::new, |checkpoint| format!("{checkpoint:020}.checkpoint"));
    let names = LogNames::of(blobs.list_after(log, &after)?.into_iter().map(|file| file.name).collect());
    let first = checkpoint.map_or(0, |checkpoint| checkpoint + 1);
    let is_there = checkpoint.is_none_or(|checkpoint| names.checkpoints.contains_key(&(checkpoint, 1)));
    Ok(is_there && names.entries.range(first..).copied().eq(first..=version))
}

impl LogState {
    /// Reads the log in the directory `log`.
    ///
    /// # Errors
    /// If it cannot be read, or does not tell which files the table has: an entry is missing, or a checkpoint has an unknown form.
    pub(crate) fn read(blobs: &dyn Blobs, log: &str) -> Result<Self> {
        let names = LogNames::of(blobs.list(log)?);
        let mut state = Self::default();
        let first = match names.newest_checkpoint() {
            Some((version, files)) => {
                for file in files {
                    state.read_checkpoint(blobs, &format!("{log}/{file}"))?;
                }
                (state.version, state.checkpoint) = (Some(version), Some(version));
                version + 1
            }
            None => 0,
        };

        let wanted: Vec<u64> = names.entries.range(first..).copied().collect();
        if let Some((expected, _)) = (first..).zip(&wanted).find(|(expected, found)| expected != *found) {
            let form = if names.has_other_checkpoint { " (its checkpoint has a form that is not read)" } else { "" };
            return Err(unknown(log, &format!("entry {expected} is missing{form}")));
        }
        if state.version.is_none() && wanted.is_empty() && names.has_other_checkpoint {
            return Err(unknown(log, "its checkpoint has a form that is not read"));
        }

        let paths: Vec<String> = wanted.iter().map(|version| entry(log, *version)).collect();
        for ((version, path), bytes) in wanted.iter().zip(&paths).zip(blobs.read_all(&paths)?) {
            let replayed = state.replay(bytes.as_deref().unwrap_or_default());
            replayed.map_err(|reason| ExportError::Log { log: TableLog::Delta, path: path.clone(), reason })?;
            state.version = Some(*version);
        }
        Ok(state)
    }

    /// The schema of the table, as JSON.
    pub(crate) fn schema(&self) -> Option<&str> {
        self.metadata.as_ref()?["schemaString"].as_str()
    }

    /// How long removed files stay for readers of older versions, microseconds; `None` if the table does not say.
    pub(crate) fn retention(&self) -> Option<i64> {
        interval(self.metadata.as_ref()?["configuration"][RETENTION].as_str()?)
    }

    /// Applies actions, one a line: those of an entry, or of a checkpoint. The error is what is wrong with them.
    fn replay(&mut self, text: &[u8]) -> std::result::Result<(), String> {
        let mut added = Vec::new();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let action: BTreeMap<String, Value> = serde_json::from_slice(line).map_err(|error| error.to_string())?;
            for (kind, action) in action {
                match kind.as_str() {
                    "add" if action["deletionVector"].is_object() => {
                        return Err(unknown_files("it uses deletion vectors, which are not read"));
                    }
                    "add" => added.push(action),
                    "remove" => self.remove(action),
                    "metaData" => self.metadata = Some(action),
                    "protocol" => self.protocol = Some(action),
                    "sidecar" => return Err(unknown_files("its checkpoint has a form that is not read")),
                    "commitInfo" | "cdc" => {}
                    _ => self.has_other_actions = true,
                }
            }
        }

        // The actions of an entry have no order, and it may remove and add a file of one path.
        for action in added {
            self.add(action);
        }
        Ok(())
    }

    fn add(&mut self, action: Value) {
        let Some(path) = action["path"].as_str().map(str::to_owned) else { return };
        self.removed.remove(&path);
        self.files.entry(decoded(&path)).or_default().insert(path, action);
    }

    fn remove(&mut self, action: Value) {
        let Some(path) = action["path"].as_str().map(str::to_owned) else { return };
        let decoded = decoded(&path);
        if let Some(spellings) = self.files.get_mut(&decoded) {
            spellings.remove(&path);
            if spellings.is_empty() {
                self.files.remove(&decoded);
            }
        }
        self.removed.insert(path, action);
    }

    /// Applies the actions of a file of a checkpoint.
    fn read_checkpoint(&mut self, blobs: &dyn Blobs, path: &str) -> Result<()> {
        let added = match blobs.read(path)? {
            Some(bytes) => checkpoint_actions(bytes).and_then(|actions| self.replay(&actions)),
            None => Err("it was removed while it was read: run again".to_owned()),
        };
        added.map_err(|reason| ExportError::Log { log: TableLog::Delta, path: path.to_owned(), reason })
    }
}

/// The rows of a file of a checkpoint as lines of JSON; the error is what is wrong with the file.
fn checkpoint_actions(bytes: Bytes) -> std::result::Result<Vec<u8>, String> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|error| error.to_string())?;
    let schema = builder.parquet_schema();
    // Some engines write statistics and partition values again, as columns of their types.
    let mut wanted = Vec::new();
    for (leaf, column) in schema.columns().iter().enumerate() {
        if column.path().parts().get(1).is_none_or(|field| !field.ends_with("_parsed")) {
            wanted.push(leaf);
        }
    }
    let mask = ProjectionMask::leaves(schema, wanted);

    let mut actions = LineDelimitedWriter::new(Vec::new());
    for batch in builder.with_projection(mask).build().map_err(|error| error.to_string())? {
        let batch = batch.map_err(|error| error.to_string())?;
        actions.write(&batch).map_err(|error| error.to_string())?;
    }
    actions.finish().map_err(|error| error.to_string())?;
    Ok(actions.into_inner())
}

/// Parses `interval 7 days` and `interval 1 week` into microseconds.
fn interval(text: &str) -> Option<i64> {
    let mut words = text.split_ascii_whitespace().skip_while(|word| word.eq_ignore_ascii_case("interval"));
    let (number, unit) = (words.next()?.parse::<i64>().ok()?, words.next()?.to_ascii_lowercase());
    let unit = unit.strip_suffix('s').unwrap_or(&unit);
    let (_, micros) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(*micros).filter(|_| words.next().is_none())
}

impl LogNames {
    fn of(names: Vec<String>) -> Self {
        let mut found = Self::default();
        for name in names {
            let parts: Vec<&str> = name.split('.').collect();
            let Some(version) = parts.first().and_then(|first| first.parse().ok()) else { continue };
            match parts.as_slice() {
                [_, "json"] => drop(found.entries.insert(version)),
                [_, "checkpoint", "parquet"] => drop(found.checkpoints.insert((version, 1), vec![name])),
                [_, "checkpoint", at, of, "parquet"] if at.parse::<usize>().is_ok() => {
                    if let Ok(of) = of.parse() {
                        found.checkpoints.entry((version, of)).or_default().push(name);
                    }
                }
                [_, "checkpoint", ..] => found.has_other_checkpoint = true,
                _ => {}
            }
        }
        found
    }

    /// The newest checkpoint with all its files.
    fn newest_checkpoint(&self) -> Option<(u64, &[String])> {
        let mut newest = self.checkpoints.iter().rev();
        newest.find_map(|((version, of), files)| (files.len() == *of).then_some((*version, files.as_slice())))
    }
}

/// A log that does not tell the files of its table.
fn unknown(log: &str, what: &str) -> ExportError {
    ExportError::Log { log: TableLog::Delta, path: log.to_owned(), reason: unknown_files(what) }
}

/// As [`unknown`], the reason alone.
fn unknown_files(what: &str) -> String {
    format!(
        "{what}, so which files it counts is not known, and nothing can be replaced in it: move the folder away, and the next \
         run begins a new log"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_have_units() {
        assert_eq!(interval("interval 7 days"), interval("INTERVAL 1 WEEK"));
        assert_eq!(interval("interval 3600 seconds"), interval("1 hour"));
        for wrong in ["", "interval", "interval days", "interval 1 month", "interval 1 day 2 hours"] {
            assert_eq!(interval(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_entry_that_removes_and_adds_a_path_has_it() {
        let mut state = LogState::default();
        state.replay(br#"{"add":{"path":"a"}}"#).unwrap();
        state.replay(b"{\"add\":{\"path\":\"a\",\"size\":2}}\n{\"remove\":{\"path\":\"a\"}}\n").unwrap();
        assert_eq!((state.files.len(), state.removed.len()), (1, 0));
        state.replay(br#"{"remove":{"path":"a"}}"#).unwrap();
        assert_eq!((state.files.len(), state.removed.len()), (0, 1));
        let refused = state.replay(br#"{"add":{"path":"a","deletionVector":{"cardinality":1}}}"#).unwrap_err();
        assert!(refused.contains("deletion vectors"), "{refused}");
    }

    #[test]
    fn a_checkpoint_counts_with_all_its_files() {
        let names = |names: &[&str]| LogNames::of(names.iter().map(|name| (*name).to_owned()).collect());
        let found = names(&[
            "00000000000000000003.json",
            "00000000000000000001.checkpoint.parquet",
            "00000000000000000002.checkpoint.0000000001.0000000002.parquet",
            "_last_checkpoint",
        ]);
        assert_eq!(found.newest_checkpoint().map(|(version, _)| version), Some(1));
        assert!(!found.has_other_checkpoint);
        let whole = names(&[
            "00000000000000000002.checkpoint.0000000001.0000000002.parquet",
            "00000000000000000002.checkpoint.0000000002.0000000002.parquet",
            "00000000000000000002.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
        ]);
        assert_eq!(whole.newest_checkpoint().map(|(version, files)| (version, files.len())), Some((2, 2)));
        assert!(whole.has_other_checkpoint);
    }
}
