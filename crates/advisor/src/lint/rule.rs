//! A rule: what it looks for, how grave that is, and why.

use super::found::Found;
pub use super::severity::Severity;
use super::subject::{JobSubject, TableSubject};

/// The least a rule must know to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// The job file alone, so it always speaks.
    Job,
    /// The rows of the job's sources, too.
    Data,
    /// The queries that will be asked of the tables, with the rows of the sources.
    Queries,
}

impl Needs {
    /// Its name in output.
    pub fn word(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Data => "data",
            Self::Queries => "queries",
        }
    }
}

/// A rule of schema design.
#[derive(Debug)]
pub struct Rule {
    /// A letter for its subject (K row key, R row, C column, T table, W writes, Q query, A allowance) and a number.
    pub id: &'static str,
    /// The gravest of its findings.
    pub severity: Severity,
    /// The least it must know.
    pub needs: Needs,
    /// What it finds, with its limit.
    pub title: &'static str,
    /// Why the guides advise against it.
    pub reason: &'static str,
    /// URL of the page that says so.
    pub source: &'static str,
    pub(crate) check: Check,
}

/// The check of a rule.
#[derive(Debug)]
pub(crate) enum Check {
    /// Looks at one table.
    Table(fn(&TableSubject<'_>) -> Vec<Found>),
    /// Looks at all tables of the job together.
    Job(fn(&JobSubject<'_>) -> Vec<Found>),
}

/// Bigtable's page "Schema design best practices".
pub(crate) const DESIGN: &str = "https://cloud.google.com/bigtable/docs/schema-design";
/// Bigtable's page "Schema design for time series data".
pub(crate) const TIME_SERIES: &str = "https://cloud.google.com/bigtable/docs/schema-design-time-series";
/// Bigtable's page "Quotas and limits".
pub(crate) const QUOTAS: &str = "https://cloud.google.com/bigtable/quotas";
/// Bigtable's page "Understand performance".
pub(crate) const PERFORMANCE: &str = "https://cloud.google.com/bigtable/docs/performance";
/// Bigtable's page "Key Visualizer heatmap patterns".
pub(crate) const KEY_VISUALIZER: &str = "https://cloud.google.com/bigtable/docs/keyvis-patterns";
/// Bigtable's page "Garbage collection".
pub(crate) const GARBAGE: &str = "https://cloud.google.com/bigtable/docs/garbage-collection";
/// Bigtable's page "Aggregate data at write time".
pub(crate) const AGGREGATE: &str = "https://cloud.google.com/bigtable/docs/writes#aggregate";
/// The page of this program about `lint`.
pub(crate) const GUIDE: &str = "docs/guide/lint.md";
