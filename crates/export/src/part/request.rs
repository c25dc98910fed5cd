//! A part to publish, and the result of publishing.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use datafusion::scalar::ScalarValue;
use serde::{Deserialize, Serialize};
use tidetable_sql::Session;
use tidetable_store::Store;
use tidetable_store::published::{ColumnIds, MadeFrom, Part};

use crate::file::format::FileFormat;
use crate::file::shape::ColumnTypes;

/// A part to publish.
#[derive(Debug, Clone, Copy)]
pub struct PublishRequest<'a> {
    /// The store whose `exports/` the part is published in.
    pub store: &'a Store,
    /// The session of the query, restricted to the part.
    pub session: &'a Session,
    /// Name of the export.
    pub export: &'a str,
    /// The job it belongs to.
    pub job: &'a str,
    /// Name of the part's directory, such as `SENSOR_20180101`.
    pub folder: &'a str,
    /// Label of the part, such as `2018-01-01`.
    pub label: &'a str,
    /// The query in SQL, as the job file has it.
    pub sql: &'a str,
    /// Values for its `$name` parameters.
    pub params: &'a [(&'a str, ScalarValue)],
    /// Fingerprint of the query and its settings.
    pub query: &'a str,
    /// For each table read, the last version that changed the records of the part.
    pub sources: &'a BTreeMap<String, u64>,
    /// Logical time of the run, microseconds.
    pub now: i64,
    /// Name of the run that publishes it.
    pub run: &'a str,
    /// The part as listed before.
    pub previous: Option<&'a Part>,
    /// Format of its files.
    pub format: FileFormat,
    /// Types of its columns that differ from those of the query.
    pub types: ColumnTypes,
    /// A column of the day of the part, which files have where the query lacks it.
    pub day: Option<DayColumn<'a>>,
    /// The ids of the columns so far, of an export whose log tells columns by id: its files have them.
    pub column_ids: Option<&'a ColumnIds>,
    /// Bytes after which another file begins.
    pub file_size: u64,
    /// What happens to the rows published before.
    pub mode: FileMode<'a>,
    /// Whether changed files get new names, and old ones stay for readers of older snapshots.
    pub keep_old: bool,
    /// For a unit that another process may run at the same time: a name of its own, which the names of its files get
    /// instead of that of the run, and no file is begun under its final name.
    pub apart: Option<&'a str>,
}

/// The column of the day of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayColumn<'a> {
    /// Its name.
    pub name: &'a str,
    /// The day, which all rows have.
    pub day: NaiveDate,
}

impl PublishRequest<'_> {
    /// What the names of new files contain, so that no other list names them.
    pub(crate) fn stem(&self) -> &str {
        self.apart.unwrap_or(self.run)
    }
}

/// The result of publishing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The part is new.
    Created,
    /// The part was replaced.
    Replaced,
    /// The files already have the same bytes, and were not touched.
    Unchanged,
    /// The query returned no row and the part did not exist: nothing was written.
    Skipped,
    /// The part has no rows any more: its files were removed.
    Withdrawn,
}

/// A part after publishing. [`record`](crate::record) lists it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedPart {
    /// Label of the part.
    pub label: String,
    /// What became of its files.
    pub outcome: Outcome,
    /// The entry for the list; `None` without rows.
    pub part: Option<Part>,
    /// What it was made from.
    pub made_from: MadeFrom,
    /// Names and types of its columns.
    pub columns: Vec<(String, String)>,
    /// Files of the part under former names, which no list names once this part is recorded.
    pub obsolete: Vec<String>,
}

/// What happens to the rows published before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FileMode<'a> {
    /// They are dropped: the part has the rows of the query alone.
    #[default]
    Replace,
    /// They stay, before those of the query.
    Append,
    /// Those stay whose values in these columns occur in no row of the query.
    Upsert(&'a [String]),
}
