//! What a run did to one part of an export, and what its checks measured.

use serde::{Deserialize, Serialize};

/// One part of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportRecord {
    /// The export.
    pub export: String,
    /// Label of the part, such as `2018-01-01`.
    #[serde(default)]
    pub label: String,
    /// Folder of the part.
    #[serde(default)]
    pub part: String,
    /// Why it was looked at.
    #[serde(default)]
    pub reason: String,
    /// What became of it.
    pub state: PartState,
    /// Rows of it.
    #[serde(default)]
    pub rows: u64,
    /// Bytes of its file.
    #[serde(default)]
    pub bytes: u64,
    /// For [`PartState::Failed`]: why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What became of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartState {
    /// Its file is new.
    Published,
    /// Its file holds the very same bytes already.
    Unchanged,
    /// The query gave no row, and there was no such part.
    Empty,
    /// There are no rows any more: what was published before was removed.
    Withdrawn,
    /// It could not be published; what was published before stands.
    Failed,
    /// A check failed; what was published before stands.
    Checks,
    /// Cells of it have passed their retention; what was published before stands.
    Sealed,
}

impl PartState {
    /// How messages and records call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Unchanged => "unchanged",
            Self::Empty => "empty",
            Self::Withdrawn => "withdrawn",
            Self::Failed => "failed",
            Self::Checks => "checks",
            Self::Sealed => "sealed",
        }
    }
}

/// What a check found in one part, or in one day of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckRecord {
    /// The check.
    pub check: String,
    /// The table or export it looked at.
    pub on: String,
    /// Label of the part or day.
    #[serde(default)]
    pub label: String,
    /// Which rule of it, such as `not_null meter`.
    pub rule: String,
    /// What a failure means.
    #[serde(default)]
    pub severity: Severity,
    /// Rows that broke the rule; for a count of rows, the count.
    #[serde(default)]
    pub measured: i64,
    /// Whether the rule held.
    #[serde(default)]
    pub passed: bool,
}

/// What the failure of a check means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// What it looked at is not published.
    #[default]
    Error,
    /// It is told.
    Warn,
}
