//! Why no job could be proposed.

use std::path::PathBuf;

use tidetable_source::sample::SampleError;

use crate::job::listed;

/// Why no job could be proposed or written. Each message says what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProposeError {
    /// A name that no job may have.
    #[error(
        "`{name}` is no name of a job: use 1 to 64 letters, digits, `-`, `_` and `.`, and start with one of the first two"
    )]
    BadName {
        /// The name.
        name: String,
    },
    /// A file that is neither CSV nor Parquet by its name.
    #[error(
        "{path}: the ending does not say what it holds; give a .csv, .tsv, .txt (also with .gz, .zst or .zip) or .parquet file"
    )]
    Ending {
        /// The file.
        path: String,
    },
    /// No such file.
    #[error("{path}: there is no such file")]
    NoFile {
        /// The file.
        path: String,
    },
    /// It shows too little.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// No column is a time, and none tells the rows apart.
    #[error(
        "{path}: no column holds times, and of the columns {} none tells the rows apart: add a column with a number of the \
         row, or with times. Times are written as 2018-01-31T01:15:00Z, 2018-01-31, 2018-01 or in the usual other ways; \
         numbers since the epoch need a name such as `ts` or `time`",
        listed(columns)
    )]
    NoKey {
        /// The file.
        path: String,
        /// Its columns.
        columns: Vec<String>,
    },
    /// A job that is there.
    #[error("{} is there already; {}", .path.display(), exists(job, *by_force))]
    Exists {
        /// The file.
        path: PathBuf,
        /// The job.
        job: String,
        /// Whether `--force` writes over it.
        by_force: bool,
    },
    /// The disk refused.
    #[error("cannot write {}: {source}", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
}

fn exists(job: &str, by_force: bool) -> String {
    let first = format!("give the new job another name than {job}");
    let rest = if by_force { ", write over it with --force, or see the proposal with --stdout" } else { "" };
    format!("{first}{rest}")
}
