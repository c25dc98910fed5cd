//! Reads `[stages]`: retries of failed stages.

use std::time::Duration;

use crate::file::fields::{Fields, Reader};
use crate::file::keys::{STAGE, STAGES};
use crate::file::problem::Mistake;
use crate::file::sections::reporting::hooks::seconds;

const WAIT: Duration = Duration::from_secs(10);
/// Waits double up to this, or stay constant if the file gives more.
const LONGEST: Duration = Duration::from_secs(600);
/// Maximum number of retries: a hundred wait for most of a day.
const MAX_RETRIES: i64 = 100;

/// A part of a run that is retried as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Reading the sources of a job, and committing their tables.
    Load,
    /// Running the queries of derived tables, for the windows whose inputs changed.
    Derive,
    /// Running the queries of exports, and publishing the parts that changed.
    Publish,
    /// Pushing tables of the job into Bigtable.
    Push,
    /// Merging the SSTs of windows that have many of them.
    Compact,
}

impl Stage {
    /// All stages, in the order in which they run.
    pub const ALL: [Self; 5] = [Self::Load, Self::Derive, Self::Publish, Self::Push, Self::Compact];

    /// Key of the stage in `[stages]` of the job file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Derive => "derive",
            Self::Publish => "publish",
            Self::Push => "push",
            Self::Compact => "compact",
        }
    }
}

/// How often a stage is retried after a transient error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// Retries after the first attempt; 0 by default, for errors that may pass only.
    pub retries: u32,
    /// Wait before the first retry; it doubles with each further one.
    pub wait: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { retries: 0, wait: WAIT }
    }
}

impl Retries {
    /// The wait after the failure of `attempt`, counted from 1; `None` after the last. Each wait is
    /// twice as long as the one before it, up to ten minutes.
    pub fn wait_after(&self, attempt: u32) -> Option<Duration> {
        let doubled = self.wait.saturating_mul(1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX));
        (attempt <= self.retries).then(|| doubled.min(LONGEST.max(self.wait)))
    }
}

/// The retries of each stage, in the order of [`Stage::ALL`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stages([Retries; Stage::ALL.len()]);

impl Stages {
    /// The retries of `stage`, or the default where the file names none.
    pub fn of(&self, stage: Stage) -> Retries {
        let found = Stage::ALL.iter().zip(self.0).find(|(known, _)| **known == stage);
        found.map(|(_, retries)| retries).unwrap_or_default()
    }
}

pub(crate) fn read(reader: &mut Reader<'_>, job: &Fields<'_>) -> Stages {
    let mut stages = Stages::default();
    let Some(value) = job.value("stages") else { return stages };
    let Some(fields) = Fields::of_value(reader, &STAGES, value, job.key_at("stages")) else { return stages };

    for (stage, retries) in Stage::ALL.iter().zip(&mut stages.0) {
        let Some(value) = fields.value(stage.name()) else { continue };
        let Some(fields) = Fields::of_value(reader, &STAGE, value, fields.key_at(stage.name())) else { continue };

        if let Some(number) = fields.whole("retries") {
            match u32::try_from(number) {
                Ok(number) if i64::from(number) <= MAX_RETRIES => retries.retries = number,
                _ => reader.refuse(fields.value_at("retries"), Mistake::Retries { value: number, most: MAX_RETRIES }),
            }
        }
        if let Some(text) = fields.text(reader, "wait") {
            match seconds(text.value) {
                Some(wait) => retries.wait = wait,
                None => reader.refuse(text.at.clone(), Mistake::Wait { value: text.owned() }),
            }
        }
    }
    stages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_doubles_up_to_a_bound() {
        let waits = |retries, wait| -> Vec<u64> {
            let retries = Retries { retries, wait: Duration::from_secs(wait) };
            (1..).map_while(|attempt| retries.wait_after(attempt)).map(|wait| wait.as_secs()).collect()
        };
        assert_eq!(waits(5, 60), [60, 120, 240, 480, 600]);
        assert_eq!(waits(2, 3_600), [3_600, 3_600]);
        assert!(waits(0, 1).is_empty());
        assert_eq!(waits(100, 1).len(), 100);
        assert_eq!(waits(100, 1).last(), Some(&600));
    }
}
