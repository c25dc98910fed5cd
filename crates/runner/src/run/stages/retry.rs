//! Trying a stage again after a failure that may pass.

use std::time::{Duration, Instant};

use tidetable_record::AttemptRecord;
use tidetable_store::StoreError;

use crate::job::{Job, Retries, Stage};
use crate::observe::{Event, Observer};
use crate::run::error::RunError;
use crate::run::options::RunOptions;
use crate::run::stages::transient::is_transient;

/// Between two looks at whether the run is asked to stop.
const PAUSE: Duration = Duration::from_millis(50);

/// How often a stage is done again because others changed its table, whatever the job file says of attempts.
const OVERTAKEN: u32 = 3;

/// How often something was tried, and how often it may be.
pub(crate) struct Retry<'a> {
    stage: Stage,
    retries: Retries,
    options: &'a RunOptions,
    observer: &'a dyn Observer,
    /// The attempt that is being made, from 1.
    attempt: u32,
    /// How often another was faster.
    overtaken: u32,
}

impl<'a> Retry<'a> {
    /// The first attempt.
    pub(crate) fn new(stage: Stage, job: &Job, options: &'a RunOptions, observer: &'a dyn Observer) -> Self {
        Self { stage, retries: job.stages.of(stage), options, observer, attempt: 1, overtaken: 0 }
    }

    /// Whether there is another attempt after this one.
    pub(crate) fn has_more(&self) -> bool {
        self.retries.wait_after(self.attempt).is_some()
    }

    /// After `error` of `name`: notes it in `records`, and waits for the next attempt.
    ///
    /// # Errors
    /// `error` itself if it does not pass, or was the last; [`RunError::Interrupted`] if the run is asked to stop.
    pub(crate) fn after(
        &mut self,
        name: &str,
        error: RunError,
        records: &mut Vec<AttemptRecord>,
    ) -> Result<(), RunError> {
        self.options.stop.check()?;
        if matches!(&error, RunError::Store(StoreError::Conflict { .. })) && self.overtaken < OVERTAKEN {
            self.overtaken += 1;
            self.observer.event(Event::Note(format!("{error}; the {} stage is done again upon it", self.stage.name())));
            records.push(self.record((name.to_owned(), error.to_string()), Duration::ZERO));
            return Ok(());
        }
        if !self.has_more() || !is_transient(&error) {
            return Err(error);
        }
        self.wait(vec![(name.to_owned(), error.to_string())], records)
    }

    /// Notes in `records` what has failed, by name and with its error, and waits for the next attempt at it.
    ///
    /// # Errors
    /// [`RunError::Interrupted`] if the run is asked to stop.
    pub(crate) fn wait(
        &mut self,
        failed: Vec<(String, String)>,
        records: &mut Vec<AttemptRecord>,
    ) -> Result<(), RunError> {
        let wait = self.retries.wait_after(self.attempt).unwrap_or_default();
        if let Some((name, error)) = failed.first() {
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

    fn record(&self, (name, error): (String, String), wait: Duration) -> AttemptRecord {
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
