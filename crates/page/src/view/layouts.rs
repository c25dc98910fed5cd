//! Layouts compared: the verdict, the table of figures, bytes by part, findings.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Cost, Heatmap, QueryMatrix};

/// A page on one layout or several. Sections without content are left out, so that it serves comparisons, heatmaps and
/// advice alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LayoutsPage {
    /// The heading and the title of the window, such as `Layouts of weather-balloons`.
    pub title: String,
    /// One line on what was measured: rows, entities, days, and whether it is a sample.
    pub subtitle: String,
    /// The command that made the page.
    pub command: String,
    /// Which layout to choose, and why.
    pub verdict: Verdict,
    /// Figures of every layout.
    pub comparison: Option<Comparison>,
    /// Bytes of every layout by part.
    pub bytes: Vec<PartBytes>,
    /// Heatmaps. Those of a page share one axis of time; they need not have the same slices.
    pub heatmaps: Vec<Heatmap>,
    /// What each query reads in each layout.
    pub queries: Option<QueryMatrix>,
    /// What breaks a rule, worst first.
    pub findings: Vec<Finding>,
    /// Nodes and prices of every layout, which a reader of the page can change.
    pub cost: Option<Cost>,
    /// How it was measured, and what was not.
    pub method: Vec<Note>,
    /// What `--output json` prints; without matrices of heatmaps, which the page holds in its own form.
    pub data: Value,
}

/// The answer, in sentences.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// One sentence: what to choose, or that no layout wins.
    pub headline: String,
    /// Why, each a sentence with numbers.
    pub reasons: Vec<String>,
    /// What would change it, each a sentence.
    pub turns: Vec<String>,
}

/// Figures of layouts: a row a layout.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// The layouts, best first.
    pub rows: Vec<ComparisonRow>,
}

/// A column of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its key in JSON, such as `bytes_as_cells`.
    pub name: String,
    /// Its heading, such as `bytes as cells`.
    pub label: String,
    /// What its figures count.
    pub unit: Unit,
    /// Which end is better; the best figure is marked.
    pub better: Option<Better>,
    /// What it means, a sentence; empty if the label says it.
    pub meaning: String,
}

/// What a figure counts, which decides how it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A number of things: `13,925`.
    Count,
    /// Bytes: `678,351` in tables, `662 KiB` where room is short.
    Bytes,
    /// Part of one: `0.100`.
    Share,
    /// How many times: `1.25`.
    Ratio,
    /// US dollars a month.
    Dollars,
    /// Words, which are aligned as text.
    Text,
}

/// Which end of a column is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// The least figure is the best.
    Lower,
    /// The greatest figure is the best.
    Higher,
}

/// The figures of a layout.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparisonRow {
    /// Name of the layout.
    pub layout: String,
    /// Its row key template and how it packs cells; may be empty.
    pub shape: String,
    /// Words beside the name, such as `cheapest`, `on the Pareto front`, `cannot be served`.
    pub marks: Vec<String>,
    /// Whether its figures are of a sample: they are marked `~`.
    pub sampled: bool,
    /// A figure a column.
    pub figures: Vec<Figure>,
}

/// A figure of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Figure {
    /// Nothing was measured: the table shows a dash.
    #[default]
    None,
    /// A count, shown to the last digit.
    Whole(u64),
    /// A measure, shown with few decimals.
    Real(f64),
    /// Words, shown as they are.
    Text(String),
}

/// Bytes of a layout by part.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PartBytes {
    /// Name of the layout.
    pub layout: String,
    /// Whether it is of a sample.
    pub sampled: bool,
    /// Parts and their bytes, in the same order for every layout: key, family, qualifier, value, timestamp.
    pub parts: Vec<(String, u64)>,
    /// Least and most bytes when packed in blocks; `None` if not measured.
    pub packed: Option<(u64, u64)>,
    /// Bytes in tidetable's own files; `None` if not measured.
    pub own: Option<u64>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Breaks a limit, or a layout that will not serve.
    Error,
    /// Costs something, and serves.
    Warn,
    /// Worth knowing, and not wrong by itself.
    Info,
}

/// What breaks a rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule, such as `K1`.
    pub rule: String,
    /// How bad it is here, at most as bad as the rule.
    pub severity: Severity,
    /// The table or layout.
    pub table: String,
    /// What is wrong, a sentence.
    pub message: String,
    /// Real keys or values that show it.
    pub keys: Vec<String>,
    /// What was measured against what limit, such as `9,120 B > 4,096 B`; may be empty.
    pub measured: String,
    /// The reason of the rule, a sentence.
    pub reason: String,
    /// Where the rule comes from, such as the title of a guide; may be empty.
    pub source: String,
    /// The line of the job file to change.
    pub change: Option<Change>,
}

/// A line of a job file before and after.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Path of the job file and the line, such as `jobs/meters/job.toml:12`.
    pub place: String,
    /// The line as it is.
    pub before: String,
    /// The line as it should be; several lines are separated by `\n`.
    pub after: String,
}

/// A paragraph with a heading.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The heading above the text.
    pub title: String,
    /// Its text, lines separated by `\n`.
    pub text: String,
}
