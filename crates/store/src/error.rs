//! Errors of the store. Each message states what failed and what to do next.

use tidetable_blobs::BlobError;
use tidetable_layout::error::{DecodeError, EncodeError};
use tidetable_layout::hll::SketchError;
use tidetable_source::SourceError;
use tidetable_sstable::{ReadError, WriteError};

/// An error of the store. Its message states what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum StoreError {
    /// Files of the store could not be read or written.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// No table of this name.
    #[error("there is no table {name} in {root}; run the job that makes it (tables here: {known})")]
    NoTable { name: String, root: String, known: String },
    /// A manifest that this build cannot read.
    #[error(
        "cannot read manifest {path}: {reason}; older versions are intact: restore the file from a \
         backup, or run `tidetable doctor` to see what is lost without it"
    )]
    Manifest { path: String, reason: String },
    /// Newer versions of a table than the newest with a manifest.
    #[error(
        "the newest manifest of {table} is that of version {newest}, but {named_by} names version {version}: what was loaded or \
         deleted since is lost. Put the newer manifests in tables/{table}/manifest back from a backup; or `tidetable doctor \
         --fix` goes on from version {newest}: then a run loads again what is missing, and deletes have to be repeated"
    )]
    VersionLost {
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
        path: String,
        /// What it should be, with article.
        what: &'static str,
        reason: String,
    },
    /// A file in a format newer than this build.
    #[error("{path} has format {format}, and this build reads up to {known}: a newer build wrote it, use that build")]
    Newer {
        path: String,
        format: u32,
        /// The newest that this build reads.
        known: u32,
    },
    /// An SST is damaged.
    #[error("{path} is damaged: {source}; {}", remedy(path))]
    Sst {
        path: String,
        /// The cause, naming the page.
        source: ReadError,
    },
    /// An SST is missing.
    #[error("{path} is missing; {}", remedy(path))]
    SstMissing { path: String },
    /// An SST is not the file that the manifest names.
    #[error("{path} is not the file that the manifest names: {reason}; {}", remedy(path))]
    Swapped { path: String, reason: &'static str },
    /// The content of an SST differs from its description in the manifest.
    #[error("{path} does not match its manifest: {reason} differs; {}", remedy(path))]
    Differs { path: String, reason: &'static str },
    /// An SST named for repair is not damaged.
    #[error("{sst} is not a damaged SST of the newest version of {table}; run `tidetable repair {table}` to list them")]
    NotDamaged { table: String, sst: String },
    /// Sorted cells could not be written as an SST.
    #[error("cannot encode an SST of {table}: {source}")]
    Write { table: String, source: WriteError },
    /// The layout of the job differs from the one the table was built with.
    #[error(
        "the layout of {table} changed: {change}; undo that, or run again with --rebuild to rebuild the table from its inputs, \
         all of which it needs"
    )]
    LayoutChanged {
        table: String,
        /// The first change, in words.
        change: String,
    },
    /// The table belongs to another job.
    #[error(
        "table {table} belongs to job {owner}; give the table of this job another name or, if the job was renamed, its old name \
         back to the job"
    )]
    OwnedByOtherJob {
        table: String,
        /// The job it belongs to.
        owner: String,
    },
    /// This build cannot compile the recorded layout.
    #[error("the layout recorded for {table} cannot be read by this build: {reason}; use the version that wrote it")]
    Layout { table: String, reason: String },
    /// Another writer committed a change that this commit cannot follow.
    #[error("another run changed {table} at the same time ({reason}); nothing was committed, run again")]
    Conflict { table: String, reason: String },
    /// The version is older than those that are kept.
    #[error(
        "version {number} of {table} is not kept: it was removed by vacuum, or is not in the backup that was restored; the oldest \
         version is {oldest}"
    )]
    Vacuumed { table: String, number: u64, oldest: u64 },
    /// The version does not exist.
    #[error("there is no version {number} of {table}; the newest is {newest}")]
    NoVersion { table: String, number: u64, newest: u64 },
    /// No version is as old as the requested time.
    #[error(
        "{table} has no version of that time; the oldest is {oldest}, committed at {}",
        Moment(*now)
    )]
    NoVersionAt {
        table: String,
        oldest: u64,
        /// Logical time of its commit, microseconds since the epoch.
        now: i64,
    },
    /// Vacuum may have removed files of a commit before it was made.
    #[error(
        "vacuum may have removed {path}, which waited too long for its commit; nothing was committed to {table}, run again"
    )]
    Fenced { table: String, path: String },
    /// Vacuum removed a version before its commit was confirmed.
    #[error(
        "cannot tell whether version {number} of {table} was committed: vacuum removed it before this run confirmed it; \
         run again, committed inputs are not loaded twice"
    )]
    OutcomeUnknown { table: String, number: u64 },
    /// A delete without a row key or key prefix.
    #[error(
        "a delete from {table} needs a row key or a key prefix, which is not empty; `tidetable run JOB --rebuild` builds the whole table anew \
         from its inputs"
    )]
    DeleteNamesNoRow { table: String },
    /// A delete from a family that the table does not have.
    #[error("table {table} has no family {family} (it has {known})")]
    NoFamily {
        table: String,
        family: String,
        /// The families of the table.
        known: String,
    },
    /// A delete of single cells from an upsert table.
    #[error("{table} is an upsert table, where single cells cannot be deleted; delete the row")]
    UpsertCells { table: String },
    /// Reading rows of an input that is not a file failed.
    #[error("cannot read {input}: {source}")]
    Feed { input: String, source: Box<dyn std::error::Error + Send + Sync> },
    /// An input changed while it was being read.
    #[error("{path} changed while it was being read; nothing was committed, run again when it is complete")]
    InputChanged { path: String },
    /// Read rows are not all counted: a bug.
    #[error(
        "{path}: {read} rows were read, but {accepted} accepted, {filtered} filtered, {rejected} rejected and {owed} owed; \
         nothing was committed"
    )]
    Uncounted {
        path: String,
        read: u64,
        accepted: u64,
        filtered: u64,
        rejected: u64,
        /// Rows of windows that are left as they are.
        owed: u64,
    },
    /// A temporary file of a load cannot be created, written or read.
    #[error(
        "cannot {action} a temporary file in {folder}: {source}; the load has {written} bytes there, and nothing was committed: free \
         space there, name another folder with --temp-dir, or give more --memory, so that less is written"
    )]
    Temporary {
        action: &'static str,
        folder: String,
        /// Bytes that the load has written to it.
        written: u64,
        source: std::io::Error,
    },
    /// Whoever ran the units of a load left one out: a fault of this program.
    #[error("unit {unit} of the load was not answered; nothing was committed: run it again")]
    Unanswered { unit: usize },
    /// Whoever ran units of a load failed.
    #[error(transparent)]
    Runner(Box<dyn std::error::Error + Send + Sync>),
    /// A sum exceeds the 64 bits of its cell.
    #[error(
        "the sum of {column} in row {row} of {table} exceeds int64; nothing was changed: put more \
         into the row key or the qualifier, for example the month, so that fewer values meet in one cell (if the table \
         holds them already, `tidetable delete {table} --row '{row}'` makes it readable again)"
    )]
    SumOverflow {
        table: String,
        row: String,
        column: String,
        /// The row key as bytes.
        key: Vec<u8>,
    },
    /// A HyperLogLog sketch cannot be merged.
    #[error("{column} in row {row} of {table} cannot be merged: {source}; load its inputs again with --rebuild")]
    Sketch { table: String, row: String, column: String, source: SketchError },
    /// A row over Bigtable's limit.
    #[error(
        "row {row} of {table} would take {bytes} bytes (family, qualifier, 8 for the timestamp and value of each of its \
         cells), and Bigtable holds at most 268435456 in a row; nothing was committed: put more into the row key, for \
         example the day"
    )]
    RowTooLarge { table: String, row: String, bytes: u64 },
    /// A row that would exceed Bigtable's limit if a delete uncovered its older cells.
    #[error(
        "row {row} of {table} would take {bytes} bytes with older cells that this delete would uncover, and Bigtable holds at most \
         268435456 in a row; nothing was deleted: delete the older cells first, or the whole row"
    )]
    RowTooLargeAfterDelete { table: String, row: String, bytes: u64 },
    /// A version violates an invariant: a bug, or a manifest edited by hand.
    #[error("version {version} of {table} violates an invariant: {rule}; run `tidetable doctor`")]
    Invariant { table: String, version: u64, rule: String },
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

/// What to do about a damaged SST.
fn remedy(path: &str) -> String {
    let table = table_and_sst(path).map_or("TABLE", |(table, _)| table);
    format!(
        "restore it from a backup, or take it out with `tidetable repair {table} --yes` and run the job, which rebuilds \
         its window from the inputs, if they are still there"
    )
}

/// The table and the id of an SST, from its path inside the store.
fn table_and_sst(path: &str) -> Option<(&str, &str)> {
    let (table, file) = path.strip_prefix("tables/")?.split_once('/')?;
    let (_, name) = file.rsplit_once('/')?;
    Some((table, name.strip_suffix(".sst")?))
}

impl StoreError {
    /// The table and the id of the SST that is damaged or missing, if that is the error.
    pub fn damaged_sst(&self) -> Option<(&str, &str)> {
        match self {
            Self::Sst { path, .. }
            | Self::SstMissing { path }
            | Self::Swapped { path, .. }
            | Self::Differs { path, .. } => table_and_sst(path),
            _ => None,
        }
    }

    /// Sets the table name, which merge operators do not know.
    #[must_use]
    pub fn of_table(mut self, name: &str) -> Self {
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
