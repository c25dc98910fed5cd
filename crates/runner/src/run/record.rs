//! The record of a run, `runs/<run>.json`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidetable_store::{Blobs, LoadStats, StoreError};

use crate::compact::CompactionRecord;

/// Everything a run did.
#[derive(Debug, Clone, Default, Serialize)]
pub struct RunRecord {
    /// Format of this record.
    pub format: u32,
    /// The run.
    pub run: String,
    /// Its job.
    pub job: String,
    /// Its logical time, microseconds since the epoch.
    pub now: i64,
    /// `ok` or `failed`.
    pub outcome: Outcome,
    /// Why it failed.
    pub error: Option<String>,
    /// Loads, in the order of the job file.
    pub loads: Vec<LoadRecord>,
    /// Compactions of tables that were loaded, where they were due.
    pub compactions: Vec<CompactionRecord>,
    /// Published and looked-at parts.
    pub exports: Vec<ExportRecord>,
    /// Where the rejected rows of its sources are, if it has any.
    pub rejected: Option<String>,
    /// How many those are. A row that two tables could not take counts twice.
    pub rows_rejected: u64,
    /// Seconds of each stage, by name.
    pub seconds: BTreeMap<String, f64>,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// All of it was done.
    #[default]
    Ok,
    /// It stopped; what was committed before stands.
    Failed,
}

/// One table's load.
#[derive(Debug, Clone, Serialize)]
pub struct LoadRecord {
    /// The table.
    pub table: String,
    /// Its source, or the tables that its query reads.
    pub source: String,
    /// The version the run found, 0 if there was no table.
    pub before: u64,
    /// The version after the run; equal to `before` if nothing was committed.
    pub version: u64,
    /// What became of each input.
    pub inputs: Vec<InputRecord>,
    /// Windows built anew, by name.
    pub rebuilt: Vec<String>,
    /// SSTs written, by id.
    pub ssts: Vec<String>,
    /// Where the rejected rows of its query are, if it is made from a query and has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
    /// Counts and seconds.
    #[serde(flatten)]
    pub stats: LoadStats,
}

/// One input of a load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InputRecord {
    /// Path or URL.
    pub path: String,
    /// `new`, `changed`, `grown`, `unchanged`, `same content`, `taken out`, `left out` or `gone`.
    pub state: &'static str,
    /// For `same content`: the input it equals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
}

/// One part of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExportRecord {
    /// The export.
    pub export: String,
    /// Folder of the part.
    pub part: String,
    /// Why it was looked at.
    pub reason: String,
    /// `published`, `unchanged` or `empty`.
    pub state: &'static str,
    /// Rows of it.
    pub rows: u64,
    /// Bytes of its file.
    pub bytes: u64,
}

impl RunRecord {
    /// Writes the record.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, blobs: &dyn Blobs) -> Result<(), StoreError> {
        let path = format!("runs/{}.json", self.run);
        let mut bytes = serde_json::to_vec_pretty(self)
            .map_err(|error| StoreError::Manifest { path: path.clone(), reason: error.to_string() })?;
        bytes.push(b'\n');
        blobs.replace(&path, &bytes)
    }

    /// Counts of all loads together.
    pub fn totals(&self) -> LoadStats {
        let mut totals = LoadStats::default();
        self.loads.iter().for_each(|load| totals.add(&load.stats));
        totals
    }
}
