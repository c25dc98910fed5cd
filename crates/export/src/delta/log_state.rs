//! Reads a Delta log: the newest checkpoint and the entries after it.
//!
//! Other engines write checkpoints and then remove the entries that those hold, so entries alone do not tell which files a
//! table has. A checkpoint is a Parquet file, or several, with a row for each action:
//! ```text
//! _delta_log/00000000000000000010.checkpoint.parquet
//! _delta_log/00000000000000000010.checkpoint.0000000001.0000000002.parquet
//! ```
//! Checkpoints of the second version of the format, `N.checkpoint.UUID.json`, belong to a table feature that no export has.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use tidetable_blobs::Blobs;

use crate::error::{ExportError, Result};

/// The table as its log describes it.
#[derive(Debug, Default)]
pub(crate) struct LogState {
    /// Paths of its files, decoded, with the spellings in which the log has them. Some readers tell spellings apart: a file is
    /// there for them until it is removed in the spelling in which it was added.
    pub(crate) files: BTreeMap<String, BTreeSet<String>>,
    /// The schema, as JSON.
    pub(crate) schema: Option<String>,
    /// The newest version; `None` without a log.
    pub(crate) version: Option<u64>,
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

/// Path of the entry of a version.
pub(crate) fn entry(log: &str, version: u64) -> String {
    format!("{log}/{version:020}.json")
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
                state.version = Some(version);
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
            state.replay(path, bytes.as_deref().unwrap_or_default())?;
            state.version = Some(*version);
        }
        Ok(state)
    }

    /// Applies the actions of an entry.
    fn replay(&mut self, path: &str, text: &[u8]) -> Result<()> {
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let action: Value = serde_json::from_slice(line)
                .map_err(|error| ExportError::Log { path: path.to_owned(), reason: error.to_string() })?;
            if let Some(path) = action["add"]["path"].as_str() {
                self.add(path);
            }
            if let Some(path) = action["remove"]["path"].as_str() {
                self.remove(path);
            }
            if let Some(schema) = action["metaData"]["schemaString"].as_str() {
                self.schema = Some(schema.to_owned());
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &str) {
        self.files.entry(decoded(path)).or_default().insert(path.to_owned());
    }

    fn remove(&mut self, path: &str) {
        let decoded = decoded(path);
        if let Some(spellings) = self.files.get_mut(&decoded) {
            spellings.remove(path);
            if spellings.is_empty() {
                self.files.remove(&decoded);
            }
        }
    }

    /// Adds the files and the schema of a file of a checkpoint.
    fn read_checkpoint(&mut self, blobs: &dyn Blobs, path: &str) -> Result<()> {
        let added = match blobs.read(path)? {
            Some(bytes) => self.add_checkpoint(bytes),
            None => Err("it was removed while it was read: run again".to_owned()),
        };
        added.map_err(|reason| ExportError::Log { path: path.to_owned(), reason })
    }

    /// As [`Self::read_checkpoint`], of the bytes of the file; the error is what is wrong with them.
    fn add_checkpoint(&mut self, bytes: Bytes) -> std::result::Result<(), String> {
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes).map_err(|error| error.to_string())?;
        let schema = builder.parquet_schema();
        let roots = schema.root_schema().get_fields().iter().enumerate();
        let wanted = roots.filter(|(_, field)| matches!(field.name(), "add" | "metaData")).map(|(root, _)| root);
        let mask = ProjectionMask::roots(schema, wanted.collect::<Vec<_>>());

        for batch in builder.with_projection(mask).build().map_err(|error| error.to_string())? {
            let batch = batch.map_err(|error| error.to_string())?;
            for path in texts(&batch, "add", "path")? {
                self.add(&path);
            }
            self.schema = texts(&batch, "metaData", "schemaString")?.pop().or(self.schema.take());
        }
        Ok(())
    }
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

/// The texts in a field of a struct column, without nulls.
fn texts(batch: &RecordBatch, column: &str, field: &str) -> Result<Vec<String>, String> {
    let Some(values) = batch.column_by_name(column).and_then(|column| column.as_struct_opt()) else {
        return Ok(Vec::new());
    };
    let field: &ArrayRef = values.column_by_name(field).ok_or_else(|| format!("{column} has no {field}"))?;
    let texts = cast(field, &DataType::Utf8).map_err(|error| error.to_string())?;
    let texts = texts.as_string::<i32>().iter().enumerate();
    Ok(texts.filter(|(row, _)| values.is_valid(*row)).filter_map(|(_, text)| text.map(str::to_owned)).collect())
}

/// A path of the log without percent encoding. Writers differ in what they encode.
fn decoded(path: &str) -> String {
    percent_decode_str(path).decode_utf8().map_or_else(|_| path.to_owned(), Cow::into_owned)
}

/// A log that does not tell the files of its table.
fn unknown(log: &str, what: &str) -> ExportError {
    let reason = format!(
        "{what}, so which files it counts is not known, and nothing can be replaced in it: move the folder away, and the next \
         run begins a new log"
    );
    ExportError::Log { path: log.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_without_their_encoding() {
        assert_eq!(decoded("dt%3D2018-01-01/a%20b.parquet"), "dt=2018-01-01/a b.parquet");
        assert_eq!(decoded("dt=2018-01-01/100%.parquet"), "dt=2018-01-01/100%.parquet");
        assert_eq!(decoded("%"), "%");
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
