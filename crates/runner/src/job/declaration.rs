//! A job as its file declares it, compiled into what the stages need.

use std::path::PathBuf;

use chrono_tz::Tz;
use tidetable_layout::{Layout, TableSpec};
use tidetable_source::{Format, SchemaMode, SourceSpec};
use tidetable_sql::{Preparation, QueryShape};
use xxhash_rust::xxh3::xxh3_128;

use crate::job::places::TablePlaces;
use crate::job::sections::allowance::Allowance;
use crate::job::sections::catch_up::CatchUp;
use crate::job::sections::checks::Check;
use crate::job::sections::export::Export;
use crate::job::sections::hooks::Hooks;
use crate::job::sections::push::Push;
use crate::job::sections::stages::Stages;
use crate::job::sections::storage::StorageSetting;
use crate::job::stored_names;

/// A validated job file.
#[derive(Debug, Clone)]
pub struct Job {
    /// Its name, that of its directory.
    pub name: String,
    /// Its description, or empty.
    pub description: String,
    /// Its schedule: five crontab fields.
    pub schedule: Option<String>,
    /// The time zone of days.
    pub timezone: Tz,
    /// Which missed runs are made up for.
    pub catch_up: CatchUp,
    /// How far back, in microseconds.
    pub catch_up_window: i64,
    /// In file order.
    pub sources: Vec<Source>,
    /// In file order.
    pub tables: Vec<Table>,
    /// In file order.
    pub exports: Vec<Export>,
    /// In file order.
    pub checks: Vec<Check>,
    /// Tables that are pushed into Bigtable, in file order.
    pub pushes: Vec<Push>,
    /// Commands that follow each run.
    pub hooks: Hooks,
    /// How often each stage of a run is retried.
    pub stages: Stages,
    /// Path of the metrics file, relative to the project directory.
    pub metrics: Option<PathBuf>,
    /// Rules of schema design that do not hold for its tables.
    pub allowances: Vec<Allowance>,
    /// Jobs that run before it, besides those whose tables its queries read.
    pub after: Vec<String>,
    /// The job file, absolute.
    pub path: PathBuf,
    /// The path of the job file for messages.
    pub shown_path: PathBuf,
    /// The text of the job file, for messages that show an excerpt.
    pub text: String,
}

impl Job {
    /// The source `name`.
    pub fn source(&self, name: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.spec.name == name)
    }

    /// The table `name`.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.spec.name == name)
    }

    /// The export `name`.
    pub fn export(&self, name: &str) -> Option<&Export> {
        self.exports.iter().find(|export| export.name == name)
    }
}

/// A source of a job.
#[derive(Debug, Clone)]
pub struct Source {
    /// Files, format and columns.
    pub spec: SourceSpec,
    /// Derived columns: name and SQL expression.
    pub derive: Vec<(String, String)>,
    /// The derived columns, compiled.
    pub preparation: Preparation,
    /// Settings of its object stores.
    pub storage: Vec<StorageSetting>,
}

impl Source {
    /// How rows are read, and the derived columns.
    fn fingerprint(&self) -> String {
        let SourceSpec { format, csv, columns, time, mode, .. } = &self.spec;
        let columns: Vec<String> = columns
            .iter()
            .map(|column| {
                let zone = column.timezone.map(|zone| zone.name());
                format!("{} {} {:?} {zone:?}", column.name, stored_names::field_type(column.kind), column.format)
            })
            .collect();
        let format = format.as_ref().map(|format| matches!(format, Format::Csv));
        let csv = (csv.delimiter, csv.quote, csv.header, &csv.null, csv.comment, csv.decimal_comma);
        // `freeze` and `evolve` read the same rows from files that both accept; `reject` may read fewer.
        let rejects = if *mode == SchemaMode::Reject { " reject" } else { "" };
        format!("{format:?} {csv:?} {columns:?} {time} {:?}{rejects}", self.derive)
    }
}

/// A table of a job.
#[derive(Debug, Clone)]
pub struct Table {
    /// The layout as the file declares it.
    pub spec: TableSpec,
    /// What it is made from.
    pub from: TableInput,
    /// Its `where` expression; `None` takes all rows.
    pub predicate: Option<String>,
    /// The `where` expression, compiled.
    pub preparation: Preparation,
    /// Garbage-collection rules in the syntax of cbt: (family, rule), for families that have one.
    pub gc: Vec<(String, String)>,
    /// The layout compiled against the source's columns.
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

/// What a table is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableInput {
    /// The source of this name.
    Source(String),
    /// The records of tables of the job that are declared before it.
    Query {
        /// The query.
        sql: String,
        /// Columns it returns and tables it reads.
        shape: QueryShape,
    },
}
