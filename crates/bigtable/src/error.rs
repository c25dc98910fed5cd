//! Errors of this crate. Each message states what failed and what to do next.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use arrow::error::ArrowError;
use parquet::errors::ParquetError;
use tidetable_blobs::BlobError;
use tidetable_layout::error::ShapeError;
use tidetable_serving::ServingError;
use tidetable_source::SourceError;
use tidetable_sql::SqlError;
use tidetable_store::StoreError;
use tonic::{Code, Status};

use crate::names::NameError;
use crate::row_merger::ChunkError;

/// An error of a transfer to or from Bigtable, or of the server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum BigtableError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A block does not match its schema.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// SQL that is not valid, or failed.
    #[error(transparent)]
    Sql(#[from] Box<SqlError>),
    /// The server cannot start, or cannot read a table.
    #[error(transparent)]
    Serving(#[from] ServingError),
    /// The server can take no more connections.
    #[error("the server on {address} failed: {source}; start it again")]
    Listener { address: String, source: io::Error },
    /// A row that takes more memory than a request may hold.
    #[error(
        "the row `{key}` takes more than the {most} bytes that a row of a request may hold: ask for fewer of its columns or versions, or \
         start the server with a larger --request-memory"
    )]
    LargeRow { key: String, most: usize },
    /// A name that is none.
    #[error(transparent)]
    Name(#[from] NameError),
    /// A URL that cannot be connected to.
    #[error("cannot use the endpoint {url}: {reason}")]
    Endpoint {
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No application default credentials.
    #[error(
        "there are no application default credentials: {reason}. Run `gcloud auth application-default login`, name a file in \
         GOOGLE_APPLICATION_CREDENTIALS, or BIGTABLE_EMULATOR_HOST for an emulator"
    )]
    Credentials { reason: String },
    /// A request failed, for good or for too long.
    #[error("{method} of {subject} failed{}: {message}{}", tried(.waited), advice(*.code))]
    Request {
        method: &'static str,
        subject: String,
        /// The code of the last answer.
        code: Code,
        message: String,
        /// For how long it was repeated.
        waited: Duration,
    },
    /// More rows that the layout cannot have written than the source allows.
    #[error(
        "{rejected} of {read} rows of {source_table} do not fit the layout of table {table}, more than max_rejected = {limit} of \
         the job allows; what was pulled before stays. All of them, with keys and reasons: {list}. `tidetable new JOB --from \
         {source_table}` proposes a layout, --raw pulls any cells"
    )]
    TooManyUndecoded {
        source_table: String,
        /// The table of the job.
        table: String,
        rejected: u64,
        read: u64,
        /// The limit as in the job file.
        limit: String,
        /// The file of their keys and reasons.
        list: String,
    },
    /// A row that the service refused.
    #[error("{target} refused the row `{key}`: {message} ({code:?})")]
    RowRefused {
        target: String,
        key: String,
        /// The code of the answer.
        code: Code,
        message: String,
    },
    /// The table to push into is not there.
    #[error("there is no table {target}: `--create` makes it")]
    NoTarget { target: String },
    /// A table without rows.
    #[error("{source_table} has no rows, so nothing can be proposed for it")]
    NothingToSample { source_table: String },
    /// A table for which no layout is found.
    #[error(
        "no layout is found for {source_table}: {reason}. `tidetable pull {source_table} --raw --into JOB` keeps its cells as they are"
    )]
    NoProposal { source_table: String, reason: &'static str },
    /// The table to read is not there.
    #[error("there is no table {source_table}")]
    NoSource { source_table: String },
    /// A family to read that the table does not have.
    #[error("{source_table} has no family {family}: it has {}", known_families(.known))]
    UnknownFamily { source_table: String, family: String, known: Vec<String> },
    /// A table without families, which holds no cells.
    #[error("{source_table} has no column families, so there are no cells to pull: make a family first")]
    NoFamilies { source_table: String },
    /// A family whose cells merge in a way that this build does not know.
    #[error(
        "family {family} of {source_table} is an aggregate that this build does not know: leave it out with --family, or use \
         a newer build"
    )]
    UnknownAggregate { source_table: String, family: String },
    /// A directory with what was pulled from elsewhere, or another selection.
    #[error(
        "{} holds {held}, not {asked}: name another job or directory, or pull with --replace to put it in its place",
        directory.display()
    )]
    OtherPull { directory: PathBuf, held: String, asked: String },
    /// A push into the table that the rows were pulled from.
    #[error(
        "the rows of {table} were pulled from {target}, and a push would replace what is there by what is here: pull again to \
         follow it, or push with --to-source if that is meant"
    )]
    PushToSource { table: String, target: String },
    /// A list of a pull, or what it names.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A family of the table to push into is not there.
    #[error("{target} has no family {family}: `--create` adds it")]
    NoTargetFamily { target: String, family: String },
    /// A family that merges cells otherwise; this is fixed when it is made.
    #[error("family {family} of {target} has the kind {there}, here it has {here}: push into another table")]
    FamilyKind { target: String, family: String, there: String, here: &'static str },
    /// Timestamps that the table to push into does not take.
    #[error("{target} takes timestamps in milliseconds, and the table here has microseconds: push into another table")]
    Granularity { target: String },
    /// A version that a push needs was vacuumed.
    #[error(
        "version {version} of {table}, which {target} holds, was vacuumed, so what changed since is unknown: \
         `push --compare` compares with the cells there"
    )]
    VersionGone { table: String, version: u64, target: String },
    /// Cells of an aggregate family that no push of ours wrote.
    #[error(
        "{target} has cells in the aggregate family {family}, such as in row `{key}`, and what is pushed would be added to \
         them: push into another table, or compare with `--compare`"
    )]
    AggregatesThere { target: String, family: String, key: String },
    /// A cell of an aggregate family whose new state does not follow from the old one.
    #[error(
        "row `{key}` of {table}: no merge makes the {kind} in family {family} what it is here, as it went back; push into \
         another table"
    )]
    NoMerge {
        table: String,
        key: String,
        family: String,
        /// The kind of the family.
        kind: &'static str,
    },
    /// A cell of an aggregate family that someone else changed while it was pushed.
    #[error(
        "the sum in family {family} of row `{key}` of {target} is neither what it was before nor what was pushed: does \
         someone else write? Push into another table"
    )]
    ForeignMerge { target: String, key: String, family: String },
    /// A layout from which a column of the source cannot be read back.
    #[error(
        "rows of {table} cannot become records: column {column} cannot be read back, {reason}. `--raw` keeps the cells as they \
         are"
    )]
    NoWayBack {
        /// The table of the job.
        table: String,
        column: String,
        reason: String,
    },
    /// A pull lost cells: its files are not taken.
    #[error(
        "{read} cells were read, of which {written} were written and {rejected} rejected: the pull before stays. Please report \
         this"
    )]
    Unconserved { read: u64, written: u64, rejected: u64 },
    /// A file of a pull.
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    /// Records could not be built.
    #[error("records cannot be built: {0}")]
    Arrow(#[from] ArrowError),
    /// A Parquet file could not be written.
    #[error("a Parquet file cannot be written: {0}")]
    Parquet(#[from] ParquetError),
    /// A signal ended the work.
    #[error("stopped; what was done is recorded, and the same command goes on from there")]
    Stopped {
        /// The signal; 0 for an end of the process's own.
        signal: u8,
    },
    /// A stream of rows broke the protocol.
    #[error("the rows of {table} cannot be read: {source}")]
    Chunks { table: String, source: ChunkError },
}

impl From<BlobError> for BigtableError {
    fn from(error: BlobError) -> Self {
        Self::Store(error.into())
    }
}

impl BigtableError {
    /// Whether a later attempt may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Request { code, .. } => {
                matches!(code, Code::Unavailable | Code::DeadlineExceeded | Code::Aborted | Code::ResourceExhausted)
            }
            Self::Chunks { .. } => true,
            _ => false,
        }
    }

    /// The exit code of a command that it ends.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Stopped { signal } if *signal > 0 => 128_u8.saturating_add(*signal),
            Self::Name(_)
            | Self::NoTarget { .. }
            | Self::NoSource { .. }
            | Self::NoTargetFamily { .. }
            | Self::UnknownFamily { .. }
            | Self::NoFamilies { .. }
            | Self::UnknownAggregate { .. }
            | Self::OtherPull { .. }
            | Self::PushToSource { .. }
            | Self::FamilyKind { .. }
            | Self::Granularity { .. }
            | Self::NoWayBack { .. }
            | Self::Store(StoreError::NoTable { .. }) => 2,
            _ => 1,
        }
    }

    /// The error of a failed request.
    pub(crate) fn request(method: &'static str, subject: &str, status: &Status, waited: Duration) -> Self {
        let message = match status.message() {
            "" => format!("{:?}", status.code()),
            message => message.to_owned(),
        };
        Self::Request { method, subject: subject.to_owned(), code: status.code(), message, waited }
    }
}

/// The families of a table.
fn known_families(known: &[String]) -> String {
    if known.is_empty() { "none".to_owned() } else { known.join(", ") }
}

/// For how long a request was repeated.
fn tried(waited: &Duration) -> String {
    if waited.as_secs() == 0 { String::new() } else { format!(", repeated for {} s", waited.as_secs()) }
}

/// What to do after a code.
fn advice(code: Code) -> &'static str {
    match code {
        Code::Unavailable => ". Is the server there, and the network?",
        Code::Unauthenticated => {
            ". Run `gcloud auth application-default login`, or name a file in GOOGLE_APPLICATION_CREDENTIALS"
        }
        Code::PermissionDenied => ". The account needs the role Bigtable User, and Bigtable Admin to create tables",
        _ => "",
    }
}

/// Results of this crate.
pub type Result<T, E = BigtableError> = std::result::Result<T, E>;
