//! Retries of a stage after a transient error.

use std::time::{Duration, Instant};

use tidetable_job::{Job, Retries, Stage};
use tidetable_record::AttemptRecord;
use tidetable_store::StoreError;

use crate::fault::error::RunError;
use crate::fault::transient::is_transient;
use crate::observe::{Event, Observer};
use crate::options::run_options::RunOptions;

/// Poll interval for a request to stop.
const PAUSE: Duration = Duration::from_millis(50);

/// Repetitions of a stage after a concurrent commit to its table, independent of the job file.
const OVERTAKEN: u32 = 3;

/// What failed and is tried again.
pub(crate) struct FailedAttempt {
    /// Name of the table, the export, the part, or the sources of a load.
    pub(crate) name: String,
    pub(crate) error: String,
}

/// The retries of a stage.
pub(crate) struct Retry<'a> {
    stage: Stage,
    retries: Retries,
    options: &'a RunOptions,
    observer: &'a dyn Observer,
    /// The current attempt, from 1.
    attempt: u32,
    /// Number of concurrent commits so far.
    overtaken: u32,
}

impl<'a> Retry<'a> {
    /// The retries of a stage before its first attempt.
    pub(crate) fn new(stage: Stage, job: &Job, options: &'a RunOptions, observer: &'a dyn Observer) -> Self {
        Self { stage, retries: job.stages.of(stage), options, observer, attempt: 1, overtaken: 0 }
    }

    /// Whether another attempt is allowed.
    pub(crate) fn has_more(&self) -> bool {
        self.retries.wait_after(self.attempt).is_some()
    }

    /// After `error` of `name`: records it in `records`, and waits for the next attempt.
    ///
    /// # Errors
    /// `error` itself if it is not transient, or was the last; [`RunError::Interrupted`] if the run is asked to stop.
    pub(crate) fn after(
        &mut self,
        name: &str,
        error: RunError,
        records: &mut Vec<AttemptRecord>,
    ) -> Result<(), RunError> {
        self.options.stop.check()?;

        if let RunError::Store(StoreError::Conflict { table, .. }) = &error
            && self.overtaken < OVERTAKEN
        {
            self.overtaken += 1;
            self.log(table, &error.to_string(), Duration::ZERO);
            self.observer
                .event(Event::Note(format!("{error}; the {} stage starts again on top of it", self.stage.name())));
            let failed = FailedAttempt { name: name.to_owned(), error: error.to_string() };
            records.push(self.record(failed, Duration::ZERO));
            return Ok(());
        }

        if !self.has_more() || !is_transient(&error) {
            return Err(error);
        }
        self.wait(vec![FailedAttempt { name: name.to_owned(), error: error.to_string() }], records)
    }

    /// Records the failures in `records`, and waits for the next attempt.
    ///
    /// # Errors
    /// [`RunError::Interrupted`] if the run is asked to stop.
    pub(crate) fn wait(
        &mut self,
        failed: Vec<FailedAttempt>,
        records: &mut Vec<AttemptRecord>,
    ) -> Result<(), RunError> {
        let wait = self.retries.wait_after(self.attempt).unwrap_or_default();
        for FailedAttempt { name, error } in &failed {
            self.log(name, error, wait);
        }

        if let Some(FailedAttempt { name, error }) = failed.first() {
            let others = if failed.len() > 1 { format!(" and {} others", failed.len() - 1) } else { String::new() };
            let (stage, next, all) = (self.stage.name(), self.attempt + 1, self.retries.retries + 1);
            let text = format!(
                "{stage} of {name}{others} failed: {error}; attempt {next} of {all} follows in {} s",
                wait.as_secs()
            );
            self.observer.event(Event::Note(text));
        }

        records.extend(failed.into_iter().map(|failed| self.record(failed, wait)));
        self.attempt += 1;

        let begun = Instant::now();
        while begun.elapsed() < wait {
            self.options.stop.check()?;
            std::thread::sleep(PAUSE.min(wait.saturating_sub(begun.elapsed())));
        }
        self.options.stop.check()
    }

    /// Logs that the stage of `name`, a table, an export or the sources of a load, is tried again after `error` and a wait.
    fn log(&self, name: &str, error: &str, wait: Duration) {
        tracing::debug!(
            stage = self.stage.name(),
            table = name,
            reason = error,
            attempt = self.attempt,
            wait = wait.as_secs(),
            "retry"
        );
    }

    fn record(&self, failed: FailedAttempt, wait: Duration) -> AttemptRecord {
        let FailedAttempt { name, error } = failed;
        AttemptRecord {
            stage: self.stage.name().to_owned(),
            name,
            attempt: self.attempt,
            failed: (self.options.clock)(),
            error,
            wait: wait.as_secs(),
        }
    }
}
