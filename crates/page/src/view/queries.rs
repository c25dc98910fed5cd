//! What queries read in each layout.

use serde::{Deserialize, Serialize};

/// What each query of a workload reads in each layout.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QueryMatrix {
    /// The queries, which are the columns.
    pub queries: Vec<Query>,
    /// The layouts, which are the rows.
    pub rows: Vec<QueryRow>,
}

/// A query of a workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// Its name in the file of queries.
    pub name: String,
    /// Its `where` clause, with parameters as `$name`.
    pub clause: String,
    /// How often it is asked; `None` if not declared.
    pub per_second: Option<f64>,
    /// Number of parameter draws measured.
    pub draws: u64,
}

/// What the queries read in a layout.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QueryRow {
    /// Name of the layout.
    pub layout: String,
    /// Whether it is of a sample: numbers are marked `~`.
    pub sampled: bool,
    /// An answer a query.
    pub answers: Vec<Answer>,
}

/// How a query reads a layout.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// Single rows by key.
    Point,
    /// One or several ranges of row keys.
    Range,
    /// Every row of the table.
    #[default]
    Scan,
}

/// What a query read in a layout: the medians of its draws, with the 95th percentile of bytes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// How it reads: the worst of its draws.
    pub shape: Shape,
    /// Number of key ranges.
    pub ranges: u64,
    /// Rows read and returned.
    pub rows: Seen,
    /// Cells read and returned.
    pub cells: Seen,
    /// Bytes as cells read and returned.
    pub bytes: Seen,
    /// Bytes read, the 95th percentile of the draws.
    pub bytes_p95: u64,
    /// What is wrong, a sentence: a worse shape than it must have, or other rows than elsewhere.
    pub error: Option<String>,
}

/// What was read, and how much of it was returned.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// How many were read.
    pub seen: u64,
    /// How many of these were returned.
    pub returned: u64,
}
