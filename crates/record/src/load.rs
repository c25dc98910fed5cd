//! What a run did to one table.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tidetable_store::LoadStats;

/// One table's load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadRecord {
    /// The table.
    pub table: String,
    /// Its source, or the tables that its query reads.
    pub source: String,
    /// The version the run found, 0 if there was no table.
    pub before: u64,
    /// The version after the run; equal to `before` if nothing was committed.
    pub version: u64,
    /// What became of the inputs that are not as the run before left them.
    pub inputs: Vec<InputRecord>,
    /// How many others there are, by state: unchanged, or gone or a copy as in the run before.
    pub standing: BTreeMap<InputState, u64>,
    /// All inputs that are gone or a copy, whether the run before knew or not. For [`crate::Seen`]; not written.
    #[serde(skip)]
    pub absent: Vec<InputRecord>,
    /// Windows built anew, by name.
    pub rebuilt: Vec<String>,
    /// SSTs written, by id.
    pub ssts: Vec<String>,
    /// Where the rejected rows of its query are, if it is made from a query and has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
    /// Counts and seconds.
    #[serde(flatten)]
    pub stats: LoadStats,
}

impl LoadRecord {
    /// How many inputs are in a state.
    pub fn count(&self, state: InputState) -> u64 {
        let changed = self.inputs.iter().filter(|input| input.state == state).count() as u64;
        changed + self.standing.get(&state).copied().unwrap_or_default()
    }

    /// How many inputs the source has, or had.
    pub fn count_all(&self) -> u64 {
        self.inputs.len() as u64 + self.standing.values().sum::<u64>()
    }

    /// Counts the unchanged inputs that records up to format 2 list.
    pub(crate) fn count_unchanged(&mut self) {
        let listed = self.inputs.len();
        self.inputs.retain(|input| input.state != InputState::Unchanged);
        if self.inputs.len() < listed {
            *self.standing.entry(InputState::Unchanged).or_default() += (listed - self.inputs.len()) as u64;
        }
    }
}

/// One input of a load.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct InputRecord {
    /// Path or URL.
    pub path: String,
    /// What became of it.
    pub state: InputState,
    /// For [`InputState::SameContent`]: the input it equals. For [`InputState::Renamed`]: the name it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_as: Option<String>,
    /// For a file that has grown: what it brought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<Added>,
}

/// What a file that has grown brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Added {
    /// Bytes.
    pub bytes: u64,
    /// Rows, rejected ones too.
    pub rows: u64,
}

impl InputRecord {
    /// An input, and what became of it.
    pub fn new(path: &str, state: InputState) -> Self {
        Self { path: path.to_owned(), state, same_as: None, added: None }
    }
}

/// What became of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InputState {
    /// It was not in the table, and is now.
    New,
    /// Its content was another: the windows it touches were built anew.
    Changed,
    /// What the table held of it stays beside what it brings now.
    Grown,
    /// It is as it was, and was read once more: the windows it touches were built anew.
    #[serde(rename = "read again")]
    ReadAgain,
    /// The table holds it as it is.
    Unchanged,
    /// The table holds it as it is, under a name that is gone: it goes on under this one.
    Renamed,
    /// Another input has this very content.
    #[serde(rename = "same content")]
    SameContent,
    /// Its cells were taken out.
    #[serde(rename = "taken out")]
    TakenOut,
    /// It is gone, and its cells were given up.
    #[serde(rename = "left out")]
    LeftOut,
    /// It is gone; its cells stay.
    Gone,
}

impl InputState {
    /// How messages and records call it.
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
        }
    }
}
