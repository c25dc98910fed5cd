//! The records of past runs.

use tidetable_store::{Blobs, StoreError};

use crate::run::{FORMAT, RunRecord, path};

const FOLDER: &str = "runs";

/// Reads the records in a store. Runs are named by ULIDs, so their names ascend with time.
#[derive(Debug, Clone, Copy)]
pub struct Runs<'a> {
    blobs: &'a dyn Blobs,
}

impl<'a> Runs<'a> {
    /// The runs recorded in `blobs`.
    pub fn of(blobs: &'a dyn Blobs) -> Self {
        Self { blobs }
    }

    /// The names of all runs, the oldest first.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub fn names(&self) -> Result<Vec<String>, StoreError> {
        let files = self.blobs.list(FOLDER)?;
        Ok(files.iter().filter_map(|file| file.strip_suffix(".json")).map(str::to_owned).collect())
    }

    /// The record of a run, `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be read, or is none that this program understands.
    pub fn load(&self, run: &str) -> Result<Option<RunRecord>, StoreError> {
        let path = path(run);
        let Some(bytes) = self.blobs.read(&path)? else { return Ok(None) };
        let broken = |reason: String| StoreError::Manifest { path: path.clone(), reason };
        let record: RunRecord = serde_json::from_slice(&bytes).map_err(|error| broken(error.to_string()))?;
        if record.format > FORMAT { Err(broken(format!("it has format {}", record.format))) } else { Ok(Some(record)) }
    }

    /// The records of `job`, of all jobs if none is named, the newest first.
    ///
    /// # Errors
    /// If the runs cannot be listed; each record has its own.
    pub fn newest_first(
        &self,
        job: Option<&str>,
    ) -> Result<impl Iterator<Item = Result<RunRecord, StoreError>> + use<'a>, StoreError> {
        let (runs, job) = (*self, job.map(str::to_owned));
        let records = self.names()?.into_iter().rev().filter_map(move |run| runs.load(&run).transpose());
        Ok(records.filter(move |record| {
            record.as_ref().map_or(true, |record| job.as_ref().is_none_or(|job| record.job == *job))
        }))
    }

    /// The newest run of `job`.
    ///
    /// # Errors
    /// If its record cannot be read.
    pub fn last(&self, job: &str) -> Result<Option<RunRecord>, StoreError> {
        self.newest_first(Some(job))?.next().transpose()
    }
}
