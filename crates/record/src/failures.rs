//! What is still to be done for a job: parts of exports that could not be published or whose checks failed, and days of
//! tables whose checks failed. `failures/<job>.json` holds all of them, from all runs.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tidetable_blobs::Blobs;
use tidetable_store::StoreError;

use crate::part::{CheckRecord, PartState};
use crate::runs::Runs;

/// Format version of the file.
const FORMAT: u32 = 1;

/// The parts and days of a job whose last attempt failed, or whose checks failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// Format version of the file that it was read from.
    format: u32,
    /// Name of the job.
    pub job: String,
    /// By export or table, then by label.
    pub of: BTreeMap<String, BTreeMap<String, Failure>>,
    /// The file as it was read or written; `None` if there was none of this format.
    #[serde(skip)]
    stored: Option<Vec<u8>>,
}

/// A part or day that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The last run that tried it.
    pub run: String,
    /// What failed: publishing ([`PartState::Failed`]) or a check ([`PartState::Checks`]).
    pub state: PartState,
}

impl PartState {
    /// Whether the part is still to be done.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Checks)
    }
}

impl Failures {
    /// The failures of `job`. If the file is damaged, or missing as in stores of earlier builds, they come from the
    /// run records.
    ///
    /// # Errors
    /// If the file or a record cannot be read.
    pub fn load(blobs: &dyn Blobs, job: &str) -> Result<Self, StoreError> {
        let bytes = blobs.read(&path(job))?;
        let read = bytes.as_ref().and_then(|bytes| serde_json::from_slice::<Self>(bytes).ok());
        match read.filter(|failures| failures.format == FORMAT && failures.job == job) {
            Some(failures) => Ok(Self { stored: bytes.map(Into::into), ..failures }),
            None => Self::of_records(blobs, job),
        }
    }

    /// The failures that the records of runs tell.
    fn of_records(blobs: &dyn Blobs, job: &str) -> Result<Self, StoreError> {
        let mut failures = Self { format: FORMAT, job: job.to_owned(), ..Self::default() };
        let mut seen = BTreeSet::new();
        // Unreadable records are skipped.
        for record in Runs::of(blobs).newest_first(Some(job))?.filter_map(Result::ok) {
            for part in &record.exports {
                if seen.insert((part.export.clone(), part.label.clone())) {
                    failures.note(&record.run, &part.export, &part.label, part.state);
                }
            }
        }
        Ok(failures)
    }

    /// The failed labels of an export or a table.
    pub fn labels(&self, of: &str) -> BTreeMap<String, PartState> {
        self.of.get(of).into_iter().flatten().map(|(label, failure)| (label.clone(), failure.state)).collect()
    }

    /// Sets the result of a part or day in `run`.
    pub fn note(&mut self, run: &str, of: &str, label: &str, state: PartState) {
        match state.is_failure() {
            true => {
                let failure = Failure { run: run.to_owned(), state };
                self.of.entry(of.to_owned()).or_default().insert(label.to_owned(), failure);
            }
            false => self.clear(of, label),
        }
    }

    /// Sets the result of the checks of a table for a day.
    pub fn note_day(&mut self, run: &str, table: &str, day: &str, found: &[CheckRecord]) {
        let is_broken = found.iter().any(CheckRecord::is_broken);
        let state = if is_broken { PartState::Checks } else { PartState::Published };
        self.note(run, table, day, state);
    }

    /// Removes a part or day.
    pub fn clear(&mut self, of: &str, label: &str) {
        if let Some(labels) = self.of.get_mut(of) {
            labels.remove(label);
        }
        self.of.retain(|_, labels| !labels.is_empty());
    }

    /// Writes the file, unless it is as it was read or written before.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&mut self, blobs: &dyn Blobs) -> Result<(), StoreError> {
        let path = path(&self.job);
        let mut bytes = serde_json::to_vec_pretty(self)
            .map_err(|error| StoreError::Manifest { path: path.clone(), reason: error.to_string() })?;
        bytes.push(b'\n');
        if self.stored.as_ref() == Some(&bytes) {
            return Ok(());
        }

        blobs.replace(&path, &bytes)?;
        self.stored = Some(bytes);
        Ok(())
    }
}

/// Path of the file of a job, inside the store.
fn path(job: &str) -> String {
    format!("failures/{job}.json")
}

#[cfg(test)]
mod tests {
    use tidetable_blobs::LocalBlobs;

    use super::*;
    use crate::part::ExportRecord;
    use crate::run::RunRecord;

    fn part(label: &str, state: PartState) -> ExportRecord {
        let (export, part, reason) = ("E".to_owned(), String::new(), String::new());
        ExportRecord { export, label: label.to_owned(), part, reason, state, rows: 0, bytes: 0, error: None }
    }

    #[test]
    fn the_last_try_counts_with_and_without_a_file() {
        let root = tempfile::tempdir().unwrap();
        let blobs = LocalBlobs::new(root.path().to_owned());
        let run = |run: &str, exports| RunRecord {
            run: run.to_owned(),
            job: "j".to_owned(),
            exports,
            ..RunRecord::default()
        };
        run("01A", vec![part("1", PartState::Checks), part("2", PartState::Failed)]).save(&blobs).unwrap();
        run("01B", vec![part("1", PartState::Published)]).save(&blobs).unwrap();
        let mut failures = Failures::load(&blobs, "j").unwrap();
        assert_eq!(failures.labels("E"), BTreeMap::from([("2".to_owned(), PartState::Failed)]));
        failures.note("01C", "E", "2", PartState::Unchanged);
        failures.note("01C", "E", "3", PartState::Checks);
        failures.save(&blobs).unwrap();
        assert_eq!(Failures::load(&blobs, "j").unwrap(), failures);
        std::fs::write(root.path().join(path("j")), b"{").unwrap();
        assert!(Failures::load(&blobs, "j").unwrap().labels("E").contains_key("2"), "what the records say");
    }
}
