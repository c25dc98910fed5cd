//! Options of a run.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use chrono::NaiveDate;
use tidetable_record::{InputState, RunRequest};
use tidetable_source::InputFile;
use tidetable_store::Input;

use crate::fault::stop::Stop;
use crate::lock::IfLocked;
use crate::options::pusher::Pusher;
use crate::units::carrier::UnitCarrier;

/// Options of a run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Publish only these days; all if `None`. Unless a table is rebuilt, a new input whose path names another day is not
    /// loaded into it.
    pub days: Option<RangeInclusive<NaiveDate>>,
    /// Of these days, only parts in one of these states.
    pub only: Option<Vec<Only>>,
    /// Only these parts, by export and label: those that another run left over.
    pub parts: Option<Vec<(String, String)>>,
    /// Only these tables and exports, and the tables they need; all if empty.
    pub select: Vec<Selected>,
    /// Publish unchanged days too.
    pub force: bool,
    /// Logical time, microseconds since the epoch.
    pub now: i64,
    /// The clock, microseconds since the epoch, for the start and end of runs.
    pub clock: fn() -> i64,
    /// Name of the run.
    pub run: String,
    /// Rebuild tables from all their inputs: those that `select` names, or all.
    pub rebuild: bool,
    /// Adopt published files without a list as they are.
    pub adopt: bool,
    /// Take the root as it is, although the one that former runs wrote to is gone.
    pub new_root: bool,
    /// Missing inputs whose rows may be removed from windows that are rebuilt.
    pub without: Vec<String>,
    /// Unchanged inputs to read again.
    pub reread: Vec<String>,
    /// Memory budget in bytes, approximate.
    pub memory: u64,
    /// As `temp_dir` of [`Loader`](tidetable_ingest::Loader).
    pub temp_dir: Option<PathBuf>,
    /// How many parts are published at the same time.
    pub jobs: usize,
    /// Stop publishing after the first part that failed.
    pub fail_fast: bool,
    /// What to do if another run of the job holds the lock.
    pub if_locked: IfLocked,
    /// Stops the run on request.
    pub stop: Stop,
    /// Plan only: write nothing.
    pub plan_only: bool,
    /// Writes tables into Bigtable; `None` where this is not built in.
    pub pusher: Option<Arc<dyn Pusher>>,
    /// Brings the units of the run to other processes; `None` runs them in this one.
    pub carrier: Option<Arc<dyn UnitCarrier>>,
}

/// States of parts that a run may be limited to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Only {
    /// Parts that the last run to try them could not publish.
    Failed,
    /// Parts that no run has published.
    Missing,
}

impl Only {
    /// Its name in records.
    fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Missing => "missing",
        }
    }
}

impl RunOptions {
    /// The state of an input that is loaded in place of `held`, the one in the table.
    pub(crate) fn state_of(&self, file: &InputFile, held: &Input) -> InputState {
        let as_it_was = file.size == held.size && file.looks_as(&held.version);
        if as_it_was && self.reread.contains(&file.path) { InputState::ReadAgain } else { InputState::Changed }
    }

    /// Whether the table `name` is rebuilt. Where tables are selected, the others that these need are only brought up to date: a
    /// derived table is a function of other tables, whose inputs may be gone.
    pub(crate) fn rebuilds(&self, name: &str) -> bool {
        let mut tables = self.select.iter().filter_map(Selected::table).peekable();
        self.rebuild && (tables.peek().is_none() || tables.any(|table| table == name))
    }

    /// The options as records keep them.
    pub(crate) fn asked(&self) -> RunRequest {
        let ends = self.days.as_ref().map(|days| (*days.start(), *days.end()));
        RunRequest {
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

/// A table or an export that a run is limited to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selected {
    /// A table, brought up to date after those that it is derived from.
    Table(String),
    /// An export, published after the tables that it reads are brought up to date.
    Export(String),
}

impl Selected {
    /// The name of the table, if it is one.
    fn table(&self) -> Option<&str> {
        match self {
            Self::Table(name) => Some(name),
            Self::Export(_) => None,
        }
    }
}

impl fmt::Display for Selected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table(name) => write!(f, "table:{name}"),
            Self::Export(name) => write!(f, "export:{name}"),
        }
    }
}
