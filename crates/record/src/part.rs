//! Record of one part of an export, and of its checks.

use serde::{Deserialize, Serialize};
use tidetable_store::published::Part;

/// One part of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportRecord {
    /// Name of the export in the job file.
    pub export: String,
    /// Label of the part, such as `2018-01-01`.
    #[serde(default)]
    pub label: String,
    /// Directory of the part below `exports/`, and its name in SQL.
    #[serde(default)]
    pub part: String,
    /// Why it was published, such as `never published`.
    #[serde(default)]
    pub reason: String,
    /// What became of the part.
    pub state: PartState,
    /// Number of rows of the part.
    #[serde(default)]
    pub rows: u64,
    /// Bytes of its files together.
    #[serde(default)]
    pub bytes: u64,
    /// For [`PartState::Failed`]: the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl ExportRecord {
    /// A part as the list of an export has it.
    pub(crate) fn published(export: &str, label: &str, part: &Part) -> Self {
        let (rows, bytes, folder) = (part.rows, part.bytes, part.folder.clone());
        Self { part: folder, state: PartState::Published, rows, bytes, ..Self::failed(export, label) }
    }

    /// A part that could not be published, of which no more is known.
    pub(crate) fn failed(export: &str, label: &str) -> Self {
        Self {
            export: export.to_owned(),
            label: label.to_owned(),
            part: String::new(),
            reason: String::new(),
            state: PartState::Failed,
            rows: 0,
            bytes: 0,
            error: None,
        }
    }
}

/// The result of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartState {
    /// A new file was written.
    Published,
    /// The file already has the same bytes.
    Unchanged,
    /// The query returned no row, and the part did not exist.
    Empty,
    /// The part has no rows any more: its files were removed.
    Withdrawn,
    /// It could not be published; the published part is unchanged.
    Failed,
    /// A check failed; the published part is unchanged.
    Checks,
    /// Some of its cells have passed their `maxage`; the published part is unchanged.
    Sealed,
}

impl PartState {
    /// Its name in messages and records.
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

/// The result of a rule of a check for a part, or for a day of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckRecord {
    /// Name of the check in the job file.
    pub check: String,
    /// The table or export whose rows were checked.
    pub on: String,
    /// Label of the part or day that was checked, such as `2018-01-01`.
    #[serde(default)]
    pub label: String,
    /// The rule, such as `not_null meter`.
    pub rule: String,
    /// What a failure means.
    #[serde(default)]
    pub severity: Severity,
    /// Number of rows that broke the rule; for a rule on the number of rows, that number.
    #[serde(default)]
    pub measured: i64,
    /// Whether the rule held.
    #[serde(default)]
    pub passed: bool,
}

impl CheckRecord {
    /// Whether the rule failed and keeps its part from being published.
    pub fn is_broken(&self) -> bool {
        !self.passed && self.severity == Severity::Error
    }
}

/// What the failure of a check means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The part is not published.
    #[default]
    Error,
    /// The failure is only reported.
    Warn,
}
