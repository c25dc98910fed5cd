//! A table of a job, as the job file declares it.

use tidetable_layout::{Layout, TableSpec};
use tidetable_sql::{Preparation, QueryShape};
use xxhash_rust::xxh3::xxh3_128;

use crate::file::places::TablePlaces;
use crate::file::sections::allowance::Allowance;
use crate::file::sections::source::Source;

/// A table of a job, with its layout compiled for the columns that it reads.
#[derive(Debug, Clone)]
pub struct Table {
    /// The layout as the file declares it, with columns by name.
    pub spec: TableSpec,
    /// The source or the query that its rows come from.
    pub from: TableInput,
    /// Its `where` expression as written; `None` takes all rows.
    pub predicate: Option<String>,
    /// The `where` expression, compiled for the columns that it reads.
    pub preparation: Preparation,
    /// Garbage-collection rules in the syntax of cbt: (family, rule), for families that have one.
    pub gc: Vec<(String, String)>,
    /// The layout, compiled for the columns of the source or of the query.
    pub layout: Layout,
    /// Rules of schema design that do not hold for it.
    pub allowances: Vec<Allowance>,
    /// Byte ranges of its parts in the job file.
    pub places: TablePlaces,
}

impl Table {
    /// Identifies everything that decides which cells a row becomes: how it is read, derived columns, filter
    /// and layout. If it changes, the table must be rebuilt. `source` is the source of the table,
    /// if it has one.
    pub fn fingerprint(&self, source: Option<&Source>) -> String {
        let read = match (&self.from, source) {
            (TableInput::Query { sql, .. }, _) => format!("query {sql}"),
            (TableInput::Source(_), source) => source.map(Source::fingerprint).unwrap_or_default(),
        };
        let rules = [&self.layout.fingerprint(), &read, &format!("{:?}", self.predicate)];
        format!("{:032x}", xxh3_128(rules.map(String::as_str).join("\0").as_bytes()))
    }
}

/// What a table is made from: files, or other tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableInput {
    /// The source of this name, which the job declares.
    Source(String),
    /// The records of tables of the job that are declared before it.
    Query {
        /// The SQL text, checked against the tables before it.
        sql: String,
        /// Columns that the query returns, and tables that it reads.
        shape: QueryShape,
    },
}
