//! The runs of a job: days published, runs, checks, and where results come from.

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Verdict;

/// A page on the runs of a job. Sections without content are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunsPage {
    /// The heading and the title of the window, such as `Runs of smart-meters`.
    pub title: String,
    /// One line on what the job is, and of when the page is.
    pub subtitle: String,
    /// The command that made the page.
    pub command: String,
    /// How the job is.
    pub verdict: Verdict,
    /// A calendar an export, or a table of a job without exports.
    pub calendars: Vec<Calendar>,
    /// Runs, the oldest first.
    pub runs: Vec<RunBar>,
    /// Checks with their values.
    pub checks: Vec<CheckSeries>,
    /// From inputs to exports.
    pub lineage: Flow,
    /// What `--output json` prints.
    pub data: Value,
}

/// Days of an export.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Calendar {
    /// The export or table.
    pub of: String,
    /// The days between the first and the last that it has, ascending.
    pub days: Vec<CalendarDay>,
}

/// A day of a calendar.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalendarDay {
    /// The day in UTC.
    pub day: NaiveDate,
    /// Whether it is published, and how.
    pub state: DayState,
    /// Rows that are published of it.
    pub rows: u64,
    /// Rejected rows of the inputs with this day.
    pub rejected: u64,
}

/// How a day is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DayState {
    /// Published by the first run that could.
    Published,
    /// Published by a later one.
    Late,
    /// Changed, but stays as published, because cells of it have expired.
    Sealed,
    /// Not there, though days around it are.
    Missing,
    /// Its last try failed, or a check of it.
    Failed,
}

impl DayState {
    /// All of them, in the order of a legend.
    pub const ALL: [Self; 5] = [Self::Published, Self::Late, Self::Sealed, Self::Missing, Self::Failed];

    /// Its name in words, which is its class in the page, too.
    pub fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Late => "late",
            Self::Sealed => "sealed",
            Self::Missing => "missing",
            Self::Failed => "failed",
        }
    }
}

/// A run of a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunBar {
    /// Its id.
    pub run: String,
    /// When it began, microseconds since the epoch.
    pub began: i64,
    /// How long it took; `None` if it did not end.
    pub seconds: Option<f64>,
    /// How it ended, such as `ok`.
    pub outcome: String,
    /// Rows that were read of the inputs.
    pub rows: u64,
    /// Rows of these that were rejected.
    pub rejected: u64,
    /// Parts of exports that were published.
    pub published: u64,
    /// Why it failed; `None` if it did not.
    pub error: Option<String>,
}

/// Values of a rule of a check over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckSeries {
    /// Its name in the job file.
    pub check: String,
    /// The table or export checked.
    pub on: String,
    /// The rule, such as `not_null meter`.
    pub rule: String,
    /// Whether a failure keeps a part from being published.
    pub strict: bool,
    /// Its values by part or day, ascending.
    pub points: Vec<CheckPoint>,
}

/// A value of a check.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckPoint {
    /// Label of the part or day.
    pub label: String,
    /// Rows that broke the rule; for a rule on the number of rows, that number.
    pub measured: i64,
    /// Whether the rule held.
    pub passed: bool,
}

/// Places that rows pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// The places: inputs, tables and exports.
    pub nodes: Vec<FlowNode>,
    /// The ways of rows between places, from inputs to exports, without circles.
    pub edges: Vec<FlowEdge>,
}

/// A way of rows from one place to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowEdge {
    /// Index of the node that the rows come from.
    pub from: usize,
    /// Index of the node that they go into.
    pub into: usize,
}

/// A place that rows pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowNode {
    /// `inputs`, `table` or `export`.
    pub kind: String,
    /// Its name in the job.
    pub name: String,
    /// What it holds, such as `14 files, 9,408 rows`.
    pub holds: String,
}
