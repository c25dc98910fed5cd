//! Reads `[stages]`: how often a stage that failed is tried again.

use std::time::Duration;

use crate::job::fields::{Fields, Reader};
use crate::job::keys::{STAGE, STAGES};
use crate::job::problem::Mistake;
use crate::job::sections::hooks::seconds;

/// Before the first new attempt, where the file does not say.
const WAIT: Duration = Duration::from_secs(10);
/// Waiting doubles up to this, or stays as it is if the file says more.
const LONGEST: Duration = Duration::from_secs(600);
/// So many new attempts wait for days.
const MOST: i64 = 100;

/// A part of a run that can be tried again by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Reading the sources and committing their tables.
    Load,
    /// Making tables from tables.
    Derive,
    /// Publishing exports.
    Publish,
    /// Merging files of tables.
    Compact,
}

impl Stage {
    /// In the order in which they are run.
    pub const ALL: [Self; 4] = [Self::Load, Self::Derive, Self::Publish, Self::Compact];

    /// Its key in the job file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Derive => "derive",
            Self::Publish => "publish",
            Self::Compact => "compact",
        }
    }
}

/// How often a stage is tried again where it fails for a reason that may pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// New attempts after the first; 0 if the file does not say.
    pub retries: u32,
    /// How long the run waits before the first of them.
    pub wait: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { retries: 0, wait: WAIT }
    }
}

impl Retries {
    /// How long to wait after the failure of this attempt, from 1, before the next; `None` if there is none. Each waits
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
    /// Those of `stage`.
    pub fn of(&self, stage: Stage) -> Retries {
        let found = Stage::ALL.iter().zip(self.0).find(|(known, _)| **known == stage);
        found.map(|(_, retries)| retries).unwrap_or_default()
    }
}

/// Reads `[stages]`; no stage is tried again without it.
pub(crate) fn read(reader: &mut Reader<'_>, job: &Fields<'_>) -> Stages {
    let mut stages = Stages::default();
    let Some(value) = job.value("stages") else { return stages };
    let Some(fields) = Fields::of_value(reader, &STAGES, value, job.key_at("stages")) else { return stages };
    for (stage, retries) in Stage::ALL.iter().zip(&mut stages.0) {
        let Some(value) = fields.value(stage.name()) else { continue };
        let Some(fields) = Fields::of_value(reader, &STAGE, value, fields.key_at(stage.name())) else { continue };
        if let Some(number) = fields.whole("retries") {
            match u32::try_from(number) {
                Ok(number) if i64::from(number) <= MOST => retries.retries = number,
                _ => reader.refuse(fields.value_at("retries"), Mistake::Retries { value: number, most: MOST }),
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
