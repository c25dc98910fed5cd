//! A part to publish, and what publishing it did.

use std::collections::BTreeMap;

use datafusion::scalar::ScalarValue;
use tidetable_sql::Session;
use tidetable_store::{MadeFrom, Part, Store};

use crate::file::format::FileFormat;

/// A part to publish.
#[derive(Debug, Clone, Copy)]
pub struct PublishRequest<'a> {
    /// Where to.
    pub store: &'a Store,
    /// What the query sees: a session restricted to the part.
    pub session: &'a Session,
    /// Name of the export.
    pub export: &'a str,
    /// The job it belongs to.
    pub job: &'a str,
    /// Name of the part's folder, such as `SENSOR_20180101`.
    pub folder: &'a str,
    /// Label of the part, such as `2018-01-01`.
    pub label: &'a str,
    /// The query.
    pub sql: &'a str,
    /// Values for its `$name` parameters.
    pub params: &'a [(&'a str, ScalarValue)],
    /// Fingerprint of the query and its settings.
    pub query: &'a str,
    /// For each table read, the last version that changed what the part shows.
    pub sources: &'a BTreeMap<String, u64>,
    /// Logical time of the run, microseconds.
    pub now: i64,
    /// The run.
    pub run: &'a str,
    /// The part as it was listed before.
    pub previous: Option<&'a Part>,
    /// The form of the file.
    pub format: FileFormat,
    /// Bytes after which another file begins.
    pub file_size: u64,
    /// What becomes of the rows that were published before.
    pub mode: FileMode<'a>,
    /// Whether a file that changed gets a new name, and the one before stays for those who read older snapshots.
    pub keep_old: bool,
}

/// What publishing did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// There was no such part before.
    Created,
    /// What it was before was replaced.
    Replaced,
    /// Its files hold these very bytes already, and were not touched.
    Unchanged,
    /// The query gave no row and there was no such part: nothing was written.
    Skipped,
    /// There are no rows any more: the files of before are gone.
    Withdrawn,
}

/// A part after publishing. [`record`](crate::record) lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishedPart {
    /// Label of the part.
    pub label: String,
    /// What was done.
    pub outcome: Outcome,
    /// What to list; `None` if it has no rows.
    pub part: Option<Part>,
    /// What it was made from.
    pub made_from: MadeFrom,
    /// Names and types of its columns.
    pub columns: Vec<(String, String)>,
    /// Files of the part under former names, which no list names once this part is recorded.
    pub obsolete: Vec<String>,
}

/// What becomes of the rows that were published before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FileMode<'a> {
    /// They go.
    #[default]
    Replace,
    /// They stay, before those of the query.
    Append,
    /// Those stay that no row of the query has the same of in these columns.
    Upsert(&'a [String]),
}
