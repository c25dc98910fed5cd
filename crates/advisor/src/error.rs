//! Errors of this crate.

use std::path::PathBuf;

use tidetable_blobs::BlobError;
use tidetable_job::JobError;
use tidetable_layout::error::{DecodeError, LayoutError, ShapeError};
use tidetable_runner::run::Stopped;
use tidetable_source::SourceError;
use tidetable_sql::ExpressionError;
use tidetable_store::StoreError;

/// The result of a measurement.
pub type Result<T, E = AdvisorError> = std::result::Result<T, E>;

/// Why layouts could not be measured. Each message says what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum AdvisorError {
    /// No table of the job can be measured.
    #[error(
        "job {job} has no table that is loaded from files: only those can be measured; derived tables follow from them"
    )]
    NothingToMeasure { job: String },
    /// A layout that the job does not have.
    #[error("job {job} has no table {name} that is loaded from files; those it has: {}", known.join(", "))]
    UnknownLayout { job: String, name: String, known: Vec<String> },
    /// A candidate whose source the job does not have.
    #[error(
        "layout {layout} is from source {source_name}, which the job does not have; name one that it has in `from`"
    )]
    UnknownSource { layout: String, source_name: String },
    /// A layout that does not compile.
    #[error("layout {layout}: {}", errors.first().map(ToString::to_string).unwrap_or_default())]
    Layout { layout: String, errors: Vec<LayoutError> },
    /// No row of the inputs was accepted.
    #[error(
        "no row was measured: {read} rows were read, {rejected} of them rejected; run `tidetable check JOB --data` to see why"
    )]
    NoRows { read: u64, rejected: u64 },
    /// The directory for the encoded layouts.
    #[error("the directory for encoded layouts below {}: {source}; set TMPDIR to a directory with space", path.display())]
    Temporary { path: PathBuf, source: std::io::Error },
    /// A table whose cells do not tell when they were written.
    #[error("the cells of table {table} have no times: `tidetable compare JOB` measures writes from the job's inputs")]
    NoTimes { table: String },
    /// Records that cannot be read back.
    #[error("layout {layout}: {source}")]
    Decode { layout: String, source: DecodeError },
    /// A predicate that is not valid over the records of a layout.
    #[error("query {query}: {source}")]
    Predicate { query: String, source: ExpressionError },
    /// A parameter of a query that has no value.
    #[error(
        "query {query}: ${name} is neither a column of the source nor second, minute, hour, day, week or month; give it a list in `params`"
    )]
    Parameter { query: String, name: String },
    /// A query that the file of queries does not have.
    #[error("there is no query {name}; those of the file of queries: {}", known.join(", "))]
    UnknownQuery { name: String, known: Vec<String> },
    /// A generated job that is invalid.
    #[error(transparent)]
    Job(#[from] JobError),
    /// A job file that cannot be made of another.
    #[error("no job file can be made of it: {reason}")]
    Written { reason: String },
    /// Prices that cannot be read.
    #[error("{}: {reason}", path.display())]
    Prices { path: PathBuf, reason: String },
    /// A file of an encoded layout.
    #[error("file {id} of an encoded layout: {source}; try again, and report this as a defect if it stays")]
    File { id: String, source: Box<dyn std::error::Error + Send + Sync> },
    /// Records of a query that cannot be filtered.
    #[error(transparent)]
    Arrow(#[from] arrow::error::ArrowError),
    /// A block of cells that could not be compressed.
    #[error("cells could not be compressed: {reason}; measure without packed sizes, or report this as a defect")]
    Compression { reason: String },
    /// The measurement was stopped.
    #[error("{0}; nothing was written")]
    Stopped(#[from] Stopped),
    /// An input cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The encoded layouts cannot be written or read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A block of cells that does not match its schema.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

impl From<BlobError> for AdvisorError {
    fn from(error: BlobError) -> Self {
        Self::Store(error.into())
    }
}

impl AdvisorError {
    /// That a temporary directory, or a file in it, could not be written.
    pub(crate) fn temporary(source: std::io::Error) -> Self {
        Self::Temporary { path: std::env::temp_dir(), source }
    }

    /// The exit code of a command that ends with it: 2 if what was asked for is wrong, 128 and the signal if it was stopped.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NothingToMeasure { .. }
            | Self::UnknownLayout { .. }
            | Self::UnknownSource { .. }
            | Self::Layout { .. }
            | Self::Predicate { .. }
            | Self::Parameter { .. }
            | Self::UnknownQuery { .. }
            | Self::Prices { .. }
            | Self::NoTimes { .. } => 2,
            Self::Stopped(stopped) => 128_u8.saturating_add(stopped.0),
            _ => 1,
        }
    }
}
