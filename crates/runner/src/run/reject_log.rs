//! Writes the rejected rows of a run.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use tidetable_blobs::BlobError;
use tidetable_blobs::BlobWriter;
use tidetable_blobs::Blobs;
use tidetable_ingest::RejectedRow;
use tidetable_record::rejects_path;
use tidetable_store::{Result, StoreError};

/// Writes rejected rows as they come; the first creates the file.
pub(crate) struct RejectLog<'a> {
    blobs: &'a dyn Blobs,
    path: String,
    /// Rows that it already contains, as written.
    known: HashSet<String>,
    state: Mutex<RejectLogState>,
}

/// The first of rejected rows as `in/a.csv:100 power: "n/a" is no float64`, each.
pub(crate) fn first_rejects<'a>(rows: impl Iterator<Item = &'a RejectedRow>) -> String {
    let texts = rows.take(SHOWN).map(|row| {
        let column = row.column.as_ref().map_or(String::new(), |column| format!(" {column}"));
        format!("{}:{}{column}: {}", row.file, row.line, row.reason)
    });
    texts.collect::<Vec<_>>().join("; ")
}

#[derive(Default)]
struct RejectLogState {
    file: Option<Box<dyn BlobWriter>>,
    error: Option<StoreError>,
    rows: u64,
    first: Vec<RejectedRow>,
    /// The first rows of each file, as one source may fail where the files of another come first.
    of_files: HashMap<String, Vec<RejectedRow>>,
}

/// Rows kept for display.
const SHOWN: usize = 3;
/// Files of which rows are kept.
const FILES: usize = 64;

impl<'a> RejectLog<'a> {
    /// The log of run `run`: of its sources, or of the query of `table`.
    pub(crate) fn new(blobs: &'a dyn Blobs, run: &str, table: Option<&str>) -> Self {
        Self { blobs, path: rejects_path(run, table), known: HashSet::new(), state: Mutex::default() }
    }

    /// Starts with `rows` of earlier attempts, which are not written twice.
    pub(crate) fn after(mut self, rows: Vec<RejectedRow>) -> Self {
        rows.iter().for_each(|row| self.keep(row));
        self.known = rows.iter().filter_map(|row| serde_json::to_string(row).ok()).collect();
        self
    }

    /// Writes a row. An error is returned by [`Self::finish`], since the caller is in the middle of a batch.
    pub(crate) fn keep(&self, row: &RejectedRow) {
        if !self.known.is_empty() && serde_json::to_string(row).is_ok_and(|line| self.known.contains(&line)) {
            return;
        }

        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.rows += 1;
        if state.first.len() < SHOWN {
            state.first.push(row.clone());
        }
        if state.of_files.len() < FILES || state.of_files.contains_key(&row.file) {
            let rows = state.of_files.entry(row.file.clone()).or_default();
            if rows.len() < SHOWN {
                rows.push(row.clone());
            }
        }

        if state.error.is_none() {
            state.error = self.write(&mut state, row).err();
        }
    }

    fn write(&self, state: &mut RejectLogState, row: &RejectedRow) -> Result<()> {
        let file = match &mut state.file {
            Some(file) => file,
            // Replaces what an earlier attempt may have left.
            none => none.insert(self.blobs.overwrite_writer(&self.path)?),
        };

        let written = serde_json::to_writer(&mut *file, row).map_err(std::io::Error::from);
        let written = written.and_then(|()| file.write_all(b"\n"));
        written.map_err(|source| StoreError::Blob(BlobError::Io { action: "write", path: self.path.clone(), source }))
    }

    /// Makes the file durable. Returns a summary if there are rows.
    pub(crate) fn finish(self) -> Result<Option<RejectFile>> {
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = state.error {
            return Err(error);
        }
        match state.file {
            Some(file) => {
                file.finish()?;
                let mut of_files: Vec<RejectedRow> = state.of_files.into_values().flatten().collect();
                of_files.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
                Ok(Some(RejectFile { path: self.path, rows: state.rows, first: state.first, of_files }))
            }
            None => Ok(None),
        }
    }
}

/// Rejected rows on disk.
pub(crate) struct RejectFile {
    pub(crate) path: String,
    pub(crate) rows: u64,
    /// The first of all rows, for display.
    pub(crate) first: Vec<RejectedRow>,
    /// The first rows of each of some files, in the order of files and lines.
    pub(crate) of_files: Vec<RejectedRow>,
}
