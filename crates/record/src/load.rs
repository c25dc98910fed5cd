//! Record of the load of one table.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tidetable_ingest::LoadStats;

/// The load of one table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadRecord {
    /// Name of the table that was loaded.
    pub table: String,
    /// Its source, or the tables that its query reads.
    pub source: String,
    /// The version before the run, 0 without a table.
    pub before: u64,
    /// The version after the run; equal to `before` if nothing was committed.
    pub version: u64,
    /// The inputs whose state changed since the run before.
    pub inputs: Vec<InputRecord>,
    /// Number of other inputs by state: unchanged, or gone or a copy as in the run before.
    pub standing: BTreeMap<InputState, u64>,
    /// All inputs that are gone or a copy, old and new. For [`crate::Seen`]; not written.
    #[serde(skip)]
    pub absent: Vec<InputRecord>,
    /// Undeclared columns of the files that were read. For [`crate::Seen`]; not written.
    #[serde(skip)]
    pub left_out: BTreeSet<String>,
    /// Names of the windows that were rebuilt from all their inputs.
    pub rebuilt: Vec<String>,
    /// Windows that must be rebuilt and stay as they are, because inputs of them are gone. Also those that earlier runs
    /// left so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owed: Vec<OwedRecord>,
    /// The missing inputs to remove so that all of them can be rebuilt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to_remove: Vec<String>,
    /// Ids of the SSTs that the load wrote.
    pub ssts: Vec<String>,
    /// Path of the rejected rows of a derived table, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
    /// Counts, and durations in seconds.
    #[serde(flatten)]
    pub stats: LoadStats,
}

impl LoadRecord {
    /// Number of inputs in a state.
    pub fn count(&self, state: InputState) -> u64 {
        let changed = self.inputs.iter().filter(|input| input.state == state).count() as u64;
        changed + self.standing.get(&state).copied().unwrap_or_default()
    }

    /// Number of all inputs that the source has or had.
    pub fn count_all(&self) -> u64 {
        self.inputs.len() as u64 + self.standing.values().sum::<u64>()
    }

    /// Counts the unchanged inputs, which records up to format 2 list.
    pub(crate) fn count_unchanged(&mut self) {
        let listed = self.inputs.len();
        self.inputs.retain(|input| input.state != InputState::Unchanged);
        if self.inputs.len() < listed {
            *self.standing.entry(InputState::Unchanged).or_default() += (listed - self.inputs.len()) as u64;
        }
    }
}

/// A window that stays as it is, because inputs of it are gone or cannot be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwedRecord {
    /// Its name, such as `2018-01-05`.
    pub window: String,
    /// The inputs that owe it.
    pub inputs: Vec<OwingInput>,
    /// The missing inputs with rows in it.
    pub gone: Vec<String>,
    /// Whether a repair removed a damaged SST of it: cells are missing there, and its days are not published.
    pub lost: bool,
}

/// An input that owes a window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OwingInput {
    /// Path or URL of the input.
    pub path: String,
    /// Its rows that belong into the window and are not in it; 0 if it has none there any more.
    pub rows: u64,
}

/// One input of a load.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InputRecord {
    /// Path or URL of the input.
    pub path: String,
    /// What the load found of the input.
    pub state: InputState,
    /// For [`InputState::SameContent`]: the input it equals. For [`InputState::Renamed`], and
    /// [`InputState::Grown`] under a new name: the name it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
    /// For [`InputState::Grown`]: what was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<Added>,
}

/// What a growing file added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Added {
    /// Bytes after the former end of the file.
    pub bytes: u64,
    /// Rows, including rejected ones.
    pub rows: u64,
}

impl InputRecord {
    /// An input in a state.
    pub fn new(path: &str, state: InputState) -> Self {
        Self { path: path.to_owned(), state, same_as: None, added: None }
    }
}

/// The state of an input after a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputState {
    /// It was loaded for the first time.
    New,
    /// Its content changed: the windows it touches were rebuilt.
    Changed,
    /// It was appended to: only the new rows were loaded.
    Grown,
    /// It is unchanged, and was read again: the windows it touches were rebuilt.
    #[serde(rename = "read again")]
    ReadAgain,
    /// It is unchanged since it was loaded, and was not read.
    Unchanged,
    /// It is unchanged and was renamed: the former name is gone.
    Renamed,
    /// Another input has the same content.
    #[serde(rename = "same content")]
    SameContent,
    /// Its cells were removed.
    #[serde(rename = "taken out")]
    TakenOut,
    /// It is gone, and its cells were removed by `--without`.
    #[serde(rename = "left out")]
    LeftOut,
    /// It is gone; its cells stay.
    Gone,
    /// It has no rows any more; the cells of those that it had stay.
    Empty,
}

impl InputState {
    /// Its name in messages and records.
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Changed => "changed",
            Self::Grown => "grown",
            Self::ReadAgain => "read again",
            Self::Unchanged => "unchanged",
            Self::Renamed => "renamed",
            Self::SameContent => "same content",
            Self::TakenOut => "taken out",
            Self::LeftOut => "left out",
            Self::Gone => "gone",
            Self::Empty => "empty",
        }
    }
}
