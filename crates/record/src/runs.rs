//! Access to the records of runs.

use std::collections::VecDeque;

use bytes::Bytes;
use tidetable_blobs::Blobs;
use tidetable_store::{StoreError, leave_out, unreadable};

use crate::load::LoadRecord;
use crate::lock::state::all_unrecorded;
use crate::run::{FORMAT, Outcome, RunRecord, path};

/// Directory of the records, inside the store.
const FOLDER: &str = "runs";
/// Records read at a time in a bucket, at first: as fast as one, and the last run of a job is often among them.
const FIRST_BATCH: usize = 8;
/// Records read at a time in a bucket, at most.
const LARGEST_BATCH: usize = 32;

/// Reads the records of a store. Runs are named by ULIDs, so their names ascend with time.
#[derive(Debug, Clone, Copy)]
pub struct Runs<'a> {
    blobs: &'a dyn Blobs,
}

/// The result of looking up a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunFound {
    /// The name of the only run that was asked for.
    One(String),
    /// There is no such run.
    None,
    /// Several runs, oldest first: the given prefix is ambiguous.
    Several(Vec<String>),
}

impl<'a> Runs<'a> {
    /// The runs recorded in `blobs`.
    pub fn of(blobs: &'a dyn Blobs) -> Self {
        Self { blobs }
    }

    /// The names of all runs, oldest first.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub fn names(&self) -> Result<Vec<String>, StoreError> {
        Ok(names_of(&self.blobs.list(FOLDER)?))
    }

    /// The record of a run, `None` if it does not exist.
    ///
    /// # Errors
    /// If it cannot be read or parsed.
    pub fn load(&self, run: &str) -> Result<Option<RunRecord>, StoreError> {
        self.blobs.read(&path(run))?.map(|bytes| Self::parse(run, &bytes)).transpose()
    }

    /// The records of `runs`, in that order; in a bucket they are read many at a time.
    pub fn load_each<I: Iterator<Item = String>>(
        &self,
        runs: I,
    ) -> impl Iterator<Item = Result<Option<RunRecord>, StoreError>> + use<'a, I> {
        let (batch, most) = if self.blobs.capabilities().round_trips { (FIRST_BATCH, LARGEST_BATCH) } else { (1, 1) };
        Loading { blobs: self.blobs, runs, read: VecDeque::new(), single: VecDeque::new(), batch, most }
    }

    /// Parses the record of a run, of any format up to [`FORMAT`].
    fn parse(run: &str, bytes: &[u8]) -> Result<RunRecord, StoreError> {
        let parsed = match serde_json::from_slice::<RunRecord>(bytes) {
            Ok(record) if record.format > FORMAT => Err(format!("it has format {}", record.format)),
            parsed => parsed.map_err(|error| error.to_string()),
        };
        let mut record =
            parsed.map_err(|reason| unreadable(&path(run), "the record of a run", FORMAT, bytes, reason))?;

        if record.format < FORMAT {
            record.loads.iter_mut().for_each(LoadRecord::count_unchanged);
        }
        Ok(record)
    }

    /// Looks up a run by name, by unique prefix, or as `last`; includes failed runs without
    /// a written record.
    ///
    /// # Errors
    /// If the runs cannot be listed.
    pub fn find(&self, asked: &str) -> Result<RunFound, StoreError> {
        let mut names = self.names()?;
        names.extend(self.unrecorded().into_iter().map(|record| record.run));
        names.sort_unstable();
        names.dedup();
        if asked == "last" {
            return Ok(names.pop().map_or(RunFound::None, RunFound::One));
        }

        let prefix = asked.to_ascii_uppercase();
        names.retain(|name| !prefix.is_empty() && name.starts_with(&prefix) || name == asked);
        if names.iter().any(|name| name == asked) {
            return Ok(RunFound::One(asked.to_owned()));
        }
        Ok(match names.len() {
            0 => RunFound::None,
            1 => names.pop().map_or(RunFound::None, RunFound::One),
            _ => RunFound::Several(names),
        })
    }

    /// The last run of each job, if it failed without a written record.
    fn unrecorded(&self) -> Vec<RunRecord> {
        all_unrecorded(self.blobs)
    }

    /// The record of a run, including failed runs without a written record; `None` if it does not exist.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn known(&self, run: &str) -> Result<Option<RunRecord>, StoreError> {
        let told = self.unrecorded().into_iter().find(|told| told.run == run);
        Ok(match (self.load(run)?, told) {
            (Some(record), told) => Some(self.completed(record, told)),
            (None, told) => told,
        })
    }

    /// A record with what is known beside it: its end, if that is `told` elsewhere, and the parts that stand, if it was written before
    /// them.
    fn completed(&self, mut record: RunRecord, told: Option<RunRecord>) -> RunRecord {
        let was_written_at_the_end = record.outcome != Outcome::Running;
        if let Some(told) = told {
            record.end_as(&told);
        }
        if !was_written_at_the_end {
            record.add_published(self.blobs);
        }
        record
    }

    /// Like [`Self::newest_first`], including failed runs without a written record.
    ///
    /// # Errors
    /// If the runs cannot be listed; each record has its own.
    pub fn known_newest_first(
        &self,
        job: Option<&str>,
    ) -> Result<impl Iterator<Item = Result<RunRecord, StoreError>> + use<'a>, StoreError> {
        let (runs, job) = (*self, job.map(str::to_owned));
        let mut unrecorded = self.unrecorded();
        let mut names = self.names()?;
        names.extend(unrecorded.iter().map(|told| told.run.clone()));
        names.sort_unstable();
        names.dedup();

        let records = names.into_iter().rev().filter_map(move |run| {
            let told = unrecorded.pop_if(|told| told.run == run);
            match (runs.load(&run).transpose(), told) {
                (Some(Ok(record)), told) => Some(Ok(runs.completed(record, told))),
                (None, told) => told.map(Ok),
                (record, _) => record,
            }
        });
        Ok(records.filter(move |record| is_of_job(record, job.as_deref())))
    }

    /// The records of `job`, or of all jobs, newest first.
    ///
    /// # Errors
    /// If the runs cannot be listed; each record has its own.
    pub fn newest_first(
        &self,
        job: Option<&str>,
    ) -> Result<impl Iterator<Item = Result<RunRecord, StoreError>> + use<'a>, StoreError> {
        let (runs, job) = (*self, job.map(str::to_owned));
        let records = runs.load_each(self.names()?.into_iter().rev()).filter_map(Result::transpose);
        Ok(records.filter(move |record| is_of_job(record, job.as_deref())))
    }

    /// The readable records, as an iterator; a warning is logged for each other one.
    ///
    /// # Errors
    /// If the runs cannot be listed.
    pub fn readable(&self, job: Option<&str>) -> Result<impl Iterator<Item = RunRecord> + use<'a>, StoreError> {
        Ok(self.newest_first(job)?.filter_map(|record| record.map_err(|error| leave_out(&error)).ok()))
    }

    /// The name of the newest run, and the newest run of `job` with a readable record. Those named after `since` are asked
    /// first, where they are given: a list of all runs may be long.
    ///
    /// # Errors
    /// If the runs cannot be listed.
    pub fn newest_and_last(
        &self,
        job: &str,
        since: Option<&str>,
    ) -> Result<(Option<String>, Option<RunRecord>), StoreError> {
        if let Some(since) = since {
            let files: Vec<String> = self.blobs.list_after(FOLDER, since)?.into_iter().map(|file| file.name).collect();
            let (newest, last) = self.newest_and_last_of(job, names_of(&files));
            if last.is_some() {
                return Ok((newest, last));
            }
        }
        Ok(self.newest_and_last_of(job, self.names()?))
    }

    fn newest_and_last_of(&self, job: &str, names: Vec<String>) -> (Option<String>, Option<RunRecord>) {
        let newest = names.last().cloned();
        let records = self.load_each(names.into_iter().rev()).filter_map(Result::transpose);
        let mut readable = records.filter_map(|record| record.map_err(|error| leave_out(&error)).ok());
        (newest, readable.find(|record| record.job == job))
    }

    /// The newest run of `job` with a readable record.
    ///
    /// # Errors
    /// If the runs cannot be listed.
    pub fn last(&self, job: &str) -> Result<Option<RunRecord>, StoreError> {
        Ok(self.readable(Some(job))?.next())
    }
}

/// Whether a record is one of `job`; any is without a job. An unreadable record may be.
fn is_of_job(record: &Result<RunRecord, StoreError>, job: Option<&str>) -> bool {
    match (record, job) {
        (Ok(record), Some(job)) => record.job == job,
        _ => true,
    }
}

/// The names of the runs with these files of records.
fn names_of(files: &[String]) -> Vec<String> {
    files.iter().filter_map(|file| file.strip_suffix(".json")).map(str::to_owned).collect()
}

/// Reads records in batches that grow: most readers stop at the first.
struct Loading<'a, I> {
    blobs: &'a dyn Blobs,
    runs: I,
    /// Runs of the last batch with the bytes of their records.
    read: VecDeque<(String, Option<Bytes>)>,
    /// Runs of a batch that could not be read: each has its own error.
    single: VecDeque<String>,
    /// Records of the next batch.
    batch: usize,
    /// Most records of a batch.
    most: usize,
}

impl<I: Iterator<Item = String>> Iterator for Loading<'_, I> {
    type Item = Result<Option<RunRecord>, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.read.is_empty() && self.single.is_empty() {
            let runs: Vec<String> = self.runs.by_ref().take(self.batch).collect();
            let paths: Vec<String> = runs.iter().map(|run| path(run)).collect();
            match self.blobs.read_all(&paths) {
                Ok(found) => self.read.extend(runs.into_iter().zip(found)),
                Err(_) => self.single.extend(runs),
            }
            self.batch = (2 * self.batch).min(self.most);
        }

        let (run, bytes) = match self.read.pop_front() {
            Some((run, bytes)) => (run, Ok(bytes)),
            None => {
                let run = self.single.pop_front()?;
                let bytes = self.blobs.read(&path(&run));
                (run, bytes)
            }
        };

        Some(match bytes {
            Ok(Some(bytes)) => Runs::parse(&run, &bytes).map(Some),
            Ok(None) => Ok(None),
            Err(error) => Err(error.into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use tidetable_blobs::LocalBlobs;
    use tidetable_store::published::{Part, Published};

    use super::*;

    #[test]
    fn a_damaged_record_hides_no_other() {
        let root = tempfile::tempdir().unwrap();
        let blobs = LocalBlobs::new(root.path().to_owned());
        for run in ["1", "2", "3"] {
            RunRecord { run: run.to_owned(), job: "j".to_owned(), ..RunRecord::default() }.save(&blobs).unwrap();
        }
        blobs.replace("runs/3.json", b"{\"format\": 2, \"run\": \"3\", \"jo").unwrap();
        blobs.replace("runs/1.json", b"").unwrap();
        let runs = Runs::of(&blobs);
        assert_eq!(runs.last("j").unwrap().unwrap().run, "2");
        assert_eq!(runs.readable(None).unwrap().count(), 1);
        assert!(runs.load("3").unwrap_err().to_string().contains("tidetable doctor"));
    }

    #[test]
    fn the_last_run_of_a_job_is_found_among_the_recent_ones_and_beyond() {
        let root = tempfile::tempdir().unwrap();
        let blobs = LocalBlobs::new(root.path().to_owned());
        let runs = Runs::of(&blobs);
        assert_eq!(runs.newest_and_last("j", Some("0")).unwrap(), (None, None));
        for (run, job) in [("01A", "old"), ("02A", "j"), ("02B", "j"), ("03A", "other")] {
            RunRecord { run: run.to_owned(), job: job.to_owned(), ..RunRecord::default() }.save(&blobs).unwrap();
        }
        for since in [None, Some("02"), Some("02A"), Some("03"), Some("04")] {
            let found = |job: &str| runs.newest_and_last(job, since).unwrap();
            let named = |(newest, last): (Option<String>, Option<RunRecord>)| (newest, last.map(|last| last.run));
            assert_eq!(named(found("j")), (Some("03A".to_owned()), Some("02B".to_owned())), "{since:?}");
            assert_eq!(named(found("old")), (Some("03A".to_owned()), Some("01A".to_owned())), "{since:?}");
            assert_eq!(named(found("none")), (Some("03A".to_owned()), None), "{since:?}");
        }
    }

    #[test]
    fn runs_are_found_by_the_beginning_of_their_names() {
        let root = tempfile::tempdir().unwrap();
        let blobs = LocalBlobs::new(root.path().to_owned());
        let runs = Runs::of(&blobs);
        assert_eq!(runs.find("last").unwrap(), RunFound::None);
        for run in ["01AB", "01ABC", "01B"] {
            RunRecord { run: run.to_owned(), ..RunRecord::default() }.save(&blobs).unwrap();
        }
        let one = |run: &str| RunFound::One(run.to_owned());
        assert_eq!(runs.find("last").unwrap(), one("01B"));
        assert_eq!(runs.find("01AB").unwrap(), one("01AB"), "a whole name that others begin with");
        assert_eq!(runs.find("01abc").unwrap(), one("01ABC"));
        assert_eq!(runs.find("01A").unwrap(), RunFound::Several(vec!["01AB".to_owned(), "01ABC".to_owned()]));
        assert_eq!((runs.find("02").unwrap(), runs.find("").unwrap()), (RunFound::None, RunFound::None));
    }

    #[test]
    fn a_killed_run_has_the_parts_that_it_published() {
        let root = tempfile::tempdir().unwrap();
        let blobs = LocalBlobs::new(root.path().to_owned());
        let part = |run: &str| Part { run: run.to_owned(), folder: "E_1".to_owned(), rows: 7, ..Part::default() };
        let parts = [("1", "01A"), ("2", "01B"), ("3", "01B")].map(|(label, run)| (label.to_owned(), part(run)));
        let mut list = Published { name: "E".to_owned(), parts: parts.into(), ..Published::default() };
        list.save(&blobs).unwrap();
        for (run, outcome) in [("01A", Outcome::Ok), ("01B", Outcome::Running)] {
            RunRecord { run: run.to_owned(), job: "j".to_owned(), outcome, ..RunRecord::default() }
                .save(&blobs)
                .unwrap();
        }

        let labels = |record: RunRecord| record.exports.into_iter().map(|part| part.label).collect::<Vec<_>>();
        let runs = Runs::of(&blobs);
        assert_eq!(labels(runs.known("01B").unwrap().unwrap()), ["2", "3"]);
        assert_eq!(labels(runs.known("01A").unwrap().unwrap()), [""; 0], "its own record tells");
        let all: Vec<_> = runs.known_newest_first(None).unwrap().map(|record| labels(record.unwrap()).len()).collect();
        assert_eq!(all, [2, 0]);
    }
}
