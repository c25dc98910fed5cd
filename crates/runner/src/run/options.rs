//! What a run is asked to do.

use std::ops::RangeInclusive;

use chrono::NaiveDate;

use crate::run::lock::IfLocked;
use crate::run::select::Selected;
use crate::run::stop::Stop;
use tidetable_record::{Asked, InputState};
use tidetable_source::InputFile;
use tidetable_store::Input;

/// What a run is asked to do.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Only these days; all if `None`.
    pub days: Option<RangeInclusive<NaiveDate>>,
    /// Of these days, only those in one of these states.
    pub only: Option<Vec<Only>>,
    /// Only these parts, by export and label: those that another run left.
    pub parts: Option<Vec<(String, String)>>,
    /// Only these tables and exports, with the tables that they need; all if there is none.
    pub select: Vec<Selected>,
    /// Publish the days though nothing changed.
    pub force: bool,
    /// Logical time, microseconds since the epoch.
    pub now: i64,
    /// The clock of the machine, microseconds since the epoch: when runs began and ended.
    pub clock: fn() -> i64,
    /// Name of the run.
    pub run: String,
    /// Build tables anew from all their inputs.
    pub rebuild: bool,
    /// Take exports whose list is gone for those of this job, as they are.
    pub adopt: bool,
    /// Inputs that are gone and may be left out of windows that are built anew.
    pub without: Vec<String>,
    /// Inputs to read again though they are as they were, as if they had changed.
    pub reread: Vec<String>,
    /// Bytes that a load may hold, about.
    pub memory: u64,
    /// Parts that are published side by side.
    pub jobs: usize,
    /// Try no other part after one that failed.
    pub fail_fast: bool,
    /// What to do if another run of the job goes on.
    pub if_locked: IfLocked,
    /// Asks the run to stop.
    pub stop: Stop,
    /// Only plan: write nothing.
    pub looks_only: bool,
}

/// States of parts that a run may be limited to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// Those that the last run which tried them could not publish.
    Failed,
    /// Those that were never published.
    Missing,
}

impl Only {
    /// How records call it.
    fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Missing => "missing",
        }
    }
}

impl RunOptions {
    /// What becomes of an input that is loaded in the place of what the table holds of it.
    pub(crate) fn state_of(&self, file: &InputFile, held: &Input) -> InputState {
        let as_it_was = file.size == held.size && file.looks_as(&held.version);
        if as_it_was && self.reread.contains(&file.path) { InputState::ReadAgain } else { InputState::Changed }
    }

    /// The same, as records keep it.
    pub(crate) fn asked(&self) -> Asked {
        let ends = self.days.as_ref().map(|days| (*days.start(), *days.end()));
        Asked {
            from: ends.map(|(from, _)| from).filter(|from| *from != NaiveDate::MIN),
            to: ends.map(|(_, to)| to).filter(|to| *to != NaiveDate::MAX),
            force: self.force,
            rebuild: self.rebuild,
            without: self.without.clone(),
            parts: self.parts.clone(),
            reread: self.reread.clone(),
            only: self.only.iter().flatten().map(|only| only.name().to_owned()).collect(),
            select: self.select.iter().map(ToString::to_string).collect(),
        }
    }
}
