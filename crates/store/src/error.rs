//! Errors of the store. Each message states what failed and what to do next.

use std::io;

use tidetable_layout::error::{DecodeError, EncodeError};
use tidetable_layout::hll::SketchError;
use tidetable_source::{BucketError, SourceError};
use tidetable_sstable::{ReadError, WriteError};

/// The path of the root in messages.
pub(crate) const ROOT: &str = "the root";

/// An error of the store. Its message states what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Reading or writing a file of the store failed.
    #[error("cannot {action} {}: {source}", full_path(path, source))]
    Io {
        /// The action, as a verb.
        action: &'static str,
        /// Path inside the store.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// A file is where a directory is needed.
    #[error("{path} is a file where a directory is needed: move it away and run again; nothing was overwritten")]
    NotADirectory {
        /// Its path inside the store.
        path: String,
    },
    /// A file to create exists already.
    #[error("{path} exists already; nothing was overwritten")]
    Exists {
        /// Path inside the store.
        path: String,
    },
    /// No table of this name.
    #[error("there is no table {name} in {root}; run the job that makes it (tables here: {known})")]
    NoTable {
        /// The requested name.
        name: String,
        /// The store.
        root: String,
        /// The existing tables.
        known: String,
    },
    /// A manifest that this build cannot read.
    #[error(
        "cannot read manifest {path}: {reason}; older versions are intact: restore the file from a \
         backup, or run `tidetable doctor` to see what is lost without it"
    )]
    Manifest {
        /// Path inside the store.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// Newer versions of a table than the newest with a manifest.
    #[error(
        "the newest manifest of {table} is that of version {newest}, but {named_by} names version {version}: what was loaded or \
         deleted since is lost. Put the newer manifests in tables/{table}/manifest back from a backup; or `tidetable doctor \
         --fix` goes on from version {newest}: then a run loads again what is missing, and deletes have to be repeated"
    )]
    VersionLost {
        /// Table name.
        table: String,
        /// The newest version with a manifest.
        newest: u64,
        /// The newest version that is named.
        version: u64,
        /// The file that names it.
        named_by: String,
    },
    /// A run record or a list of an export that this build cannot read.
    #[error(
        "{path} is not {what} that this build can read: {reason}; run `tidetable doctor` to see what that costs and what to do"
    )]
    Unreadable {
        /// Path inside the store.
        path: String,
        /// What it should be, with article.
        what: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A file in a format newer than this build.
    #[error("{path} has format {format}, and this build reads up to {known}: a newer build wrote it, use that build")]
    Newer {
        /// Path inside the store.
        path: String,
        /// Its format.
        format: u32,
        /// The newest that this build reads.
        known: u32,
    },
    /// An SST is damaged.
    #[error("{path} is damaged: {source}; restore it from a backup, or run `tidetable repair` to rebuild its window")]
    Sst {
        /// Path inside the store.
        path: String,
        /// The cause, naming the page.
        source: ReadError,
    },
    /// An SST is not the file that the manifest names.
    #[error("{path} is not the file that the manifest names: {reason}; restore it from a backup")]
    Swapped {
        /// Path inside the store.
        path: String,
        /// What differs.
        reason: &'static str,
    },
    /// The content of an SST differs from its description in the manifest.
    #[error(
        "{path} does not match its manifest: {reason} differs; restore it from a backup, or run `tidetable repair`"
    )]
    Differs {
        /// Path inside the store.
        path: String,
        /// What differs.
        reason: &'static str,
    },
    /// An SST named for repair is not damaged.
    #[error("{sst} is not a damaged SST of the newest version of {table}; run `tidetable repair {table}` to list them")]
    NotDamaged {
        /// Table name.
        table: String,
        /// The requested SST.
        sst: String,
    },
    /// Sorted cells could not be written as an SST.
    #[error("cannot encode an SST of {table}: {source}")]
    Write {
        /// Table name.
        table: String,
        /// The cause.
        source: WriteError,
    },
    /// The layout of the job differs from the one the table was built with.
    #[error("the layout of {table} changed; run again with --rebuild to rebuild the table from its inputs")]
    LayoutChanged {
        /// Table name.
        table: String,
    },
    /// The table belongs to another job.
    #[error("table {table} belongs to job {owner}; give the table of this job another name")]
    OwnedByOtherJob {
        /// Table name.
        table: String,
        /// The job it belongs to.
        owner: String,
    },
    /// This build cannot compile the recorded layout.
    #[error("the layout recorded for {table} cannot be read by this build: {reason}; use the version that wrote it")]
    Layout {
        /// Table name.
        table: String,
        /// What is wrong.
        reason: String,
    },
    /// The lease on a job was lost: another run may have taken it.
    #[error(
        "the lease on job {job} was lost: it could not be renewed in time, and another run may have taken it; nothing more was \
         written, and the next run continues"
    )]
    LeaseLost {
        /// The job.
        job: String,
    },
    /// Another writer committed a change that this commit cannot follow.
    #[error("another run changed {table} at the same time ({reason}); nothing was committed, run again")]
    Conflict {
        /// Table name.
        table: String,
        /// The conflicting change.
        reason: String,
    },
    /// The version was removed by vacuum.
    #[error("version {number} of {table} was removed by vacuum; the oldest version is {oldest}")]
    Vacuumed {
        /// Table name.
        table: String,
        /// The requested version.
        number: u64,
        /// The oldest version.
        oldest: u64,
    },
    /// The version does not exist.
    #[error("there is no version {number} of {table}; the newest is {newest}")]
    NoVersion {
        /// Table name.
        table: String,
        /// The requested version.
        number: u64,
        /// The newest version.
        newest: u64,
    },
    /// No version is as old as the requested time.
    #[error(
        "{table} has no version of that time; the oldest is {oldest}, committed at {}",
        Moment(*now)
    )]
    NoVersionAt {
        /// Table name.
        table: String,
        /// The oldest version.
        oldest: u64,
        /// Logical time of its commit, microseconds since the epoch.
        now: i64,
    },
    /// Vacuum may have removed files of a commit before it was made.
    #[error(
        "vacuum may have removed {path}, which waited too long for its commit; nothing was committed to {table}, run again"
    )]
    Fenced {
        /// Table name.
        table: String,
        /// The file.
        path: String,
    },
    /// Vacuum removed a version before its commit was confirmed.
    #[error(
        "cannot tell whether version {number} of {table} was committed: vacuum removed it before this run confirmed it; \
         run again, committed inputs are not loaded twice"
    )]
    OutcomeUnknown {
        /// Table name.
        table: String,
        /// The version.
        number: u64,
    },
    /// A delete without a row key or key prefix.
    #[error("a delete from {table} needs a row key or a key prefix; to empty the table, remove its directory")]
    DeleteNamesNoRow {
        /// Table name.
        table: String,
    },
    /// A delete from a family that the table does not have.
    #[error("table {table} has no family {family} (it has {known})")]
    NoFamily {
        /// Table name.
        table: String,
        /// The requested family.
        family: String,
        /// The families of the table.
        known: String,
    },
    /// A delete of single cells from an upsert table.
    #[error("{table} is an upsert table, where single cells cannot be deleted; delete the row")]
    UpsertCells {
        /// Table name.
        table: String,
    },
    /// Reading rows of an input that is not a file failed.
    #[error("cannot read {input}: {source}")]
    Feed {
        /// The input.
        input: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An input changed while it was being read.
    #[error("{path} changed while it was being read; nothing was committed, run again when it is complete")]
    InputChanged {
        /// The input.
        path: String,
    },
    /// Read rows are not all counted: a bug.
    #[error(
        "{path}: {read} rows were read, but {accepted} accepted, {filtered} filtered, {rejected} rejected and {owed} owed; \
         nothing was committed"
    )]
    Uncounted {
        /// The input.
        path: String,
        /// Rows read.
        read: u64,
        /// Rows accepted.
        accepted: u64,
        /// Rows filtered out.
        filtered: u64,
        /// Rows rejected.
        rejected: u64,
        /// Rows of windows that are left as they are.
        owed: u64,
    },
    /// Whoever ran the units of a load left one out: a fault of this program.
    #[error("unit {unit} of the load was not answered; nothing was committed: run it again")]
    Unanswered {
        /// Its index.
        unit: usize,
    },
    /// Whoever ran units of a load failed.
    #[error(transparent)]
    Runner(Box<dyn std::error::Error + Send + Sync>),
    /// A sum exceeds the 64 bits of its cell.
    #[error(
        "the sum of {column} in row {row} of {table} exceeds int64; nothing was changed: put more \
         into the row key or the qualifier, for example the month, so that fewer values meet in one cell (if the table \
         holds them already, `tidetable delete {table} {row}` makes it readable again)"
    )]
    SumOverflow {
        /// Table name.
        table: String,
        /// Row key.
        row: String,
        /// Family and qualifier.
        column: String,
        /// The row key as bytes.
        key: Vec<u8>,
    },
    /// A HyperLogLog sketch cannot be merged.
    #[error("{column} in row {row} of {table} cannot be merged: {source}; load its inputs again with --rebuild")]
    Sketch {
        /// Table name.
        table: String,
        /// Row key.
        row: String,
        /// Family and qualifier.
        column: String,
        /// The cause.
        source: SketchError,
    },
    /// A row over Bigtable's limit.
    #[error(
        "row {row} of {table} would take {bytes} bytes (family, qualifier, 8 for the timestamp and value of each of its \
         cells), and Bigtable holds at most 268435456 in a row; nothing was committed: put more into the row key, for \
         example the day"
    )]
    RowTooLarge {
        /// Table name.
        table: String,
        /// Row key.
        row: String,
        /// Bytes of its cells.
        bytes: u64,
    },
    /// A row that would exceed Bigtable's limit if a delete uncovered its older cells.
    #[error(
        "row {row} of {table} would take {bytes} bytes with older cells that this delete would uncover, and Bigtable holds at most \
         268435456 in a row; nothing was deleted: delete the older cells first, or the whole row"
    )]
    RowTooLargeAfterDelete {
        /// Table name.
        table: String,
        /// Row key.
        row: String,
        /// Bytes of its cells.
        bytes: u64,
    },
    /// A version violates an invariant: a bug, or a manifest edited by hand.
    #[error("version {version} of {table} violates an invariant: {rule}; run `tidetable doctor`")]
    Invariant {
        /// Table name.
        table: String,
        /// Version number.
        version: u64,
        /// The violation.
        rule: String,
    },
    /// Reading an input failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Encoding a batch into cells failed.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// Decoding cells into records failed.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Combining columns failed.
    #[error("cannot combine columns: {0}")]
    Arrow(#[from] arrow::error::ArrowError),
}

/// The path of a file, with the URL of the bucket that did not serve it: a command may use several.
fn full_path(path: &str, source: &io::Error) -> String {
    match source.get_ref().and_then(|inner| inner.downcast_ref::<BucketError>()) {
        Some(error) if path == ROOT => error.url().to_owned(),
        Some(error) => format!("{}/{path}", error.url().trim_end_matches('/')),
        None => path.to_owned(),
    }
}

/// An instant as shown in messages.
struct Moment(i64);

impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match chrono::DateTime::from_timestamp_micros(self.0) {
            Some(time) => write!(f, "{}", time.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)),
            None => write!(f, "{} us", self.0),
        }
    }
}

impl StoreError {
    /// Sets the table name, which merge operators do not know.
    #[must_use]
    pub(crate) fn of_table(mut self, name: &str) -> Self {
        if let Self::SumOverflow { table, .. }
        | Self::Sketch { table, .. }
        | Self::RowTooLarge { table, .. }
        | Self::RowTooLargeAfterDelete { table, .. } = &mut self
        {
            name.clone_into(table);
        }
        self
    }
}

/// Result of the store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;
