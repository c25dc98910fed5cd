//! The holder of a job's lock: the process that runs the job locks `locks/<job>.lock` and writes its name there.
//!
//! A run that cannot write its record, as on a full disk, reports its failure there: overwriting the file in place
//! needs no room. In a bucket the lock is a [`Lease`](crate::Lease).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::run::{Outcome, RunRecord};

/// The directory of locks.
pub(crate) const LOCKS: &str = "locks";
/// Length of a lock file: a block of most file systems.
const LENGTH: usize = 4096;
/// Bytes of the key of the failed parts.
const PARTS: usize = r#","parts":{}"#.len();
/// Longest error stored there, in characters.
const LONGEST: usize = 800;

/// The current or last holder of a lock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Name of the run that holds the lock, or held it last.
    pub run: String,
    /// Id of its process.
    pub process: u32,
    /// Its machine, in a bucket, which several share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Its failure, if its record could not be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<FailedRun>,
}

/// The failure of a run whose record could not be written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRun {
    /// Logical time of the run, microseconds since the epoch.
    pub now: i64,
    /// When it began by the clock, microseconds since the epoch.
    pub started: i64,
    /// When it ended by the clock, microseconds since the epoch.
    pub finished: i64,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// The error that ended it.
    pub error: String,
    /// Labels of the parts that it could not publish, by export, as far as they fit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, Vec<String>>,
}

impl Holder {
    /// Overwrites the lock file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, file: &mut File) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(self)?;
        bytes.resize(bytes.len().max(LENGTH - 1), b' ');
        bytes.push(b'\n');
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&bytes)?;
        if file.metadata()?.len() > bytes.len() as u64 { file.set_len(bytes.len() as u64) } else { Ok(()) }
    }

    /// Adds the failure of its run, whose `record` could not be written.
    #[must_use]
    pub fn failing(self, record: &RunRecord) -> Self {
        let failed = FailedRun {
            now: record.now,
            started: record.started,
            finished: record.finished.unwrap_or(record.started),
            interrupted: record.outcome == Outcome::Interrupted,
            error: record.error.as_deref().unwrap_or_default().chars().take(LONGEST).collect(),
            parts: BTreeMap::new(),
        };
        let mut told = Self { failed: Some(failed), ..self };
        told.add_parts(record);
        told
    }

    /// Adds the failed parts of `record` while there is room: on a full disk the file cannot grow.
    fn add_parts(&mut self, record: &RunRecord) {
        let mut length = serde_json::to_vec(self).map_or(LENGTH, |bytes| bytes.len()) + PARTS;
        let Some(failed) = &mut self.failed else { return };
        for part in record.exports.iter().filter(|part| part.state.is_failure()) {
            // Quotes, commas and brackets; names of exports and labels need no escapes.
            length += part.label.len() + 3;
            if !failed.parts.contains_key(&part.export) {
                length += part.export.len() + 6;
            }
            if length >= LENGTH {
                return;
            }
            failed.parts.entry(part.export.clone()).or_default().push(part.label.clone());
        }
    }

    /// Its process, and its machine where several share the root: for messages.
    pub fn place(&self) -> String {
        match &self.machine {
            Some(machine) => format!("process {} on {machine}", self.process),
            None => format!("process {}", self.process),
        }
    }
}

/// Path of the lock of `job` inside the store.
pub fn lock_name(job: &str) -> String {
    format!("{LOCKS}/{job}.lock")
}

/// Path of the lock of `job` in the directory `root`.
pub fn lock_path(root: &Path, job: &str) -> PathBuf {
    root.join(lock_name(job))
}

/// Parses a lock file.
pub fn read_holder(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).and_then(|_| file.read_to_string(&mut text)).ok()?;
    serde_json::from_str(&text).ok()
}
