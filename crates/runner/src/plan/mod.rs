//! The plan of a run as data. Nothing here reads or writes: [`crate::plan_job`] makes it.

pub(crate) mod days;
mod derived;
pub(crate) mod owed;

use std::ops::Range;

use serde::Serialize;

use tidetable_record::{InputState, OwedRecord};

pub use days::{Days, ranges};
pub(crate) use derived::{HeldBack, query_window};
pub(crate) use owed::overtaken_note;
pub use owed::{owed_notes, rows_of, up_to};

/// What a run of a job would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Name of the job.
    pub job: String,
    /// Its tables, in the order of the job file.
    pub tables: Vec<TablePlan>,
    /// Its exports, in the order of the job file.
    pub exports: Vec<ExportPlan>,
    /// Tables without exports, with days to check again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckPlan>,
    /// Tables to push, in the order of the job file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pushes: Vec<PushPlan>,
    /// Options that change nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A table that would be pushed into Bigtable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PushPlan {
    /// Name of the push in the job file.
    pub push: String,
    /// Name of the table that is pushed.
    pub table: String,
    /// The instance, or a table of it.
    pub target: String,
    /// Why, such as `never pushed` or `SENSOR changes`.
    pub reason: String,
}

/// Days of a table without exports whose checks failed: they are checked again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckPlan {
    /// Name of the table that is checked.
    pub table: String,
    /// Labels of the days, ascending.
    pub days: Vec<String>,
}

/// What a run would do to a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TablePlan {
    /// Name of the table.
    pub table: String,
    /// Why it would change; `None` if it is up to date.
    pub reason: Option<TableReason>,
    /// Inputs that would be read or removed, and missing ones.
    pub inputs: Vec<PlannedInput>,
    /// Number of inputs without a change.
    pub unchanged: usize,
    /// Bytes of the inputs that would be read.
    pub bytes: u64,
    /// Days of the job's time zone whose cells would change.
    pub days: Days,
    /// Windows that must be rebuilt and would stay as they are, as far as that is known before inputs are read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owed: Vec<OwedRecord>,
    /// The missing inputs to remove so that all of them can be rebuilt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to_remove: Vec<String>,
    /// The most rows that go with them.
    #[serde(skip)]
    pub rows_to_remove: u64,
    /// Event times of those of `owed` that lost cells with a damaged SST, microseconds since the epoch.
    #[serde(skip)]
    pub lost: Vec<Range<i64>>,
}

/// Why a table would change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TableReason {
    /// It does not exist yet.
    Missing,
    /// `--rebuild` asks for it.
    Rebuild,
    /// Inputs are new, changed or to be removed.
    InputChanged,
    /// Windows that could not be rebuilt before can be now.
    Owed,
    /// A table that it is derived from changes.
    UpstreamChanged,
    /// Its garbage-collection rules changed.
    RulesChanged,
}

impl TableReason {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Rebuild => "rebuild",
            Self::InputChanged => "input changed",
            Self::Owed => "owed windows can be rebuilt",
            Self::UpstreamChanged => "upstream changed",
            Self::RulesChanged => "rules changed",
        }
    }
}

/// An input that changed, or that needs attention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedInput {
    /// Path or URL of the input; of a derived table, the name of a window.
    pub path: String,
    /// What the run would do with it.
    pub state: InputState,
    /// Bytes that the run reads of it, as stored.
    pub bytes: u64,
    /// Days of its rows.
    pub days: Days,
    /// Whether the last run found and told it as it is.
    #[serde(skip)]
    pub is_told: bool,
}

/// What a run would do to an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExportPlan {
    /// Name of the export.
    pub export: String,
    /// Parts to publish, by label.
    pub parts: Vec<PlannedPart>,
    /// Changed parts that stay as published, because cells of them have passed their `maxage`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sealed: Vec<PlannedPart>,
    /// Changed parts that stay as they were, because a window of theirs lost cells with a damaged SST.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owed: Vec<PlannedPart>,
    /// Number of parts that are up to date, or outside the range of days.
    pub unchanged: usize,
    /// Whether more days become known when inputs are read.
    pub unknown: bool,
}

/// A part to publish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedPart {
    /// Label, such as `2018-01-01`.
    pub label: String,
    /// Name of its directory.
    pub part: String,
    /// Why, such as `missing` or `SENSOR changed`.
    pub reason: String,
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.checks.is_empty()
            && self.pushes.is_empty()
            && self.tables.iter().all(|table| table.reason.is_none())
            && self.exports.iter().all(|export| export.parts.is_empty() && !export.unknown)
    }

    /// A line for each table and export that would change, and for each push. [`owed_notes`] tells what stays as it is.
    pub fn lines(&self) -> Vec<String> {
        let tables = self.tables.iter().filter_map(TablePlan::line);
        let exports = self.exports.iter().filter_map(ExportPlan::line);
        let checks = self.checks.iter().map(CheckPlan::line);
        tables.chain(exports).chain(checks).chain(self.pushes.iter().map(PushPlan::line)).collect()
    }
}

impl TablePlan {
    /// Whether a window that overlaps `times` lost cells and would not be rebuilt.
    pub(crate) fn loses(&self, times: &Range<i64>) -> bool {
        self.lost.iter().any(|lost| lost.start < times.end && times.start < lost.end)
    }

    fn line(&self) -> Option<String> {
        let reason = self.reason?;
        let states = [
            InputState::New,
            InputState::Changed,
            InputState::ReadAgain,
            InputState::Grown,
            InputState::TakenOut,
            InputState::LeftOut,
        ];

        let counts = states.into_iter().filter_map(|state| {
            let inputs = self.inputs.iter().filter(|input| input.state == state).count();
            (inputs > 0).then(|| format!("{inputs} {}", state.name()))
        });
        let counts: Vec<String> = counts.collect();

        let inputs = if counts.is_empty() { String::new() } else { format!(", inputs: {}", counts.join(", ")) };
        let days = if self.days.is_empty() { String::new() } else { format!("; days {}", self.days) };
        Some(format!("{}: {}{inputs}{days}", self.table, reason.name()))
    }
}

impl CheckPlan {
    fn line(&self) -> String {
        let days: Vec<&str> = self.days.iter().map(String::as_str).collect();
        format!("{}: checks again {}", self.table, ranges(&days))
    }
}

impl PushPlan {
    fn line(&self) -> String {
        format!("{}: pushes {} to {} ({})", self.push, self.table, self.target, self.reason)
    }
}

impl ExportPlan {
    fn line(&self) -> Option<String> {
        let mut by_reason: Vec<(&str, Vec<&str>)> = Vec::new();
        for part in &self.parts {
            match by_reason.iter_mut().find(|(reason, _)| *reason == part.reason) {
                Some((_, labels)) => labels.push(&part.label),
                None => by_reason.push((&part.reason, vec![&part.label])),
            }
        }

        let groups = by_reason.iter().map(|(reason, labels)| format!("{} ({reason})", ranges(labels)));
        let mut groups: Vec<String> = groups.collect();
        if !self.sealed.is_empty() {
            groups.push(format!("{} (sealed: stays as it is)", label_ranges(&self.sealed)));
        }
        if !self.owed.is_empty() {
            groups.push(format!("{} (cells are lost: stays as it is)", label_ranges(&self.owed)));
        }
        if self.unknown {
            groups.push("days unknown until the inputs are read".to_owned());
        }
        if groups.is_empty() { None } else { Some(format!("{}: {}", self.export, groups.join("; "))) }
    }
}

/// The labels of parts in words.
fn label_ranges(parts: &[PlannedPart]) -> String {
    let labels: Vec<&str> = parts.iter().map(|part| part.label.as_str()).collect();
    ranges(&labels)
}
