//! The record of a run, `runs/<run>.json`: written when the run begins, and again when it ends.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use tidetable_store::{Blobs, LoadStats, StoreError};

use crate::attempt::AttemptRecord;
use crate::compaction::CompactionRecord;
use crate::load::LoadRecord;
use crate::part::{CheckRecord, ExportRecord, PartState, Severity};

/// Format of run records. Those of format 1 are read too: they lack what was not known then.
pub const FORMAT: u32 = 2;

/// Everything a run did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunRecord {
    /// Format of this record.
    pub format: u32,
    /// The run.
    pub run: String,
    /// Its job.
    pub job: String,
    /// Its logical time, microseconds since the epoch.
    pub now: i64,
    /// When it began by the clock of the machine, microseconds since the epoch.
    pub started: i64,
    /// When it ended, by the same clock.
    pub finished: Option<i64>,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it failed.
    pub error: Option<String>,
    /// What it was asked to do.
    pub asked: Asked,
    /// The run that it goes on from: one of the same job that did not come to its end.
    pub continues: Option<String>,
    /// What a person must know.
    pub notes: Vec<String>,
    /// Loads, in the order of the job file.
    pub loads: Vec<LoadRecord>,
    /// Compactions of tables that were loaded, where they were due.
    pub compactions: Vec<CompactionRecord>,
    /// Published and looked-at parts.
    pub exports: Vec<ExportRecord>,
    /// What the job's checks measured.
    pub checks: Vec<CheckRecord>,
    /// What failed for a reason that might pass, and was tried again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptRecord>,
    /// Where the rejected rows of its sources are, if it has any.
    pub rejected: Option<String>,
    /// How many those are. A row that two tables could not take counts twice.
    pub rows_rejected: u64,
    /// Seconds of each stage, by name.
    pub seconds: BTreeMap<String, f64>,
}

/// What a run was asked to do, beside its job and its logical time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Asked {
    /// The first day.
    pub from: Option<NaiveDate>,
    /// The last day.
    pub to: Option<NaiveDate>,
    /// Publish days anew though nothing changed, and sealed ones.
    pub force: bool,
    /// Build tables anew.
    pub rebuild: bool,
    /// Inputs that may be left out.
    pub without: Vec<String>,
    /// Only these parts, by export and label: those that another run left.
    pub parts: Option<Vec<(String, String)>>,
    /// Inputs that are read again though they are as they were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reread: Vec<String>,
    /// Only days in one of these states, such as `failed`; days of any if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
}

impl Asked {
    /// Whether it was asked for all days: for what a run that nobody limits does.
    pub fn is_whole(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.parts.is_none() && self.only.is_empty()
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It has not ended; or it was killed, if its lock is free.
    Running,
    /// All of it was done.
    #[default]
    Ok,
    /// Some parts could not be published; the others were.
    Partial,
    /// A check of severity `error` failed: what it looked at was not published, the rest was.
    Checks,
    /// It stopped; what was committed before stands.
    Failed,
    /// A person or the system asked it to stop.
    Interrupted,
}

impl Outcome {
    /// How messages call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ok => "ok",
            Self::Partial => "partial",
            Self::Checks => "checks",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    /// What the process that ran it ends with, where no error says otherwise.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Checks => 3,
            Self::Partial => 4,
            Self::Running | Self::Failed | Self::Interrupted => 1,
        }
    }

    /// Whether another run has something to go on with.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Failed | Self::Interrupted)
    }
}

impl RunRecord {
    /// Writes the record, in the place of what it was before.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, blobs: &dyn Blobs) -> Result<(), StoreError> {
        let path = self.path();
        let mut bytes = serde_json::to_vec_pretty(self)
            .map_err(|error| StoreError::Manifest { path: path.clone(), reason: error.to_string() })?;
        bytes.push(b'\n');
        blobs.replace(&path, &bytes)
    }

    /// Where it is written, inside the store.
    pub fn path(&self) -> String {
        path(&self.run)
    }

    /// Counts of all loads together.
    pub fn totals(&self) -> LoadStats {
        let mut totals = LoadStats::default();
        self.loads.iter().for_each(|load| totals.add(&load.stats));
        totals
    }

    /// How it ended, by what became of its parts.
    pub fn outcome_of_parts(&self) -> Outcome {
        let any = |state| self.exports.iter().any(|part| part.state == state);
        let broken = self.checks.iter().any(|check| !check.passed && check.severity == Severity::Error);
        match (any(PartState::Failed), any(PartState::Checks) || broken) {
            (true, _) => Outcome::Partial,
            (false, true) => Outcome::Checks,
            (false, false) => Outcome::Ok,
        }
    }
}

pub(crate) fn path(run: &str) -> String {
    format!("runs/{run}.json")
}
