//! Errors of proposing a job.

use std::path::PathBuf;

use tidetable_source::Format;
use tidetable_source::sample::SampleError;

use crate::file::{JobError, listed};

/// Why no job could be proposed or written. Each message says what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProposeError {
    /// A name that no job can have, because names are those of folders.
    #[error(
        "`{name}` cannot be the name of a job: use 1 to 64 letters, digits, `-`, `_` and `.`, and start with one of the first two"
    )]
    BadName {
        /// The name as given on the command line.
        name: String,
    },
    /// A file whose name ends like no format that is read.
    #[error(
        "{path}: the ending does not say what it holds; give a file that ends in {} (also with .gz, .zst or .zip)",
        Format::endings()
    )]
    Ending {
        /// Path or URL of the file, as given on the command line.
        path: String,
    },
    /// The file that was given does not exist.
    #[error("{path}: there is no such file; give a file, a directory, or a pattern in quotes, such as 'in/*.csv'")]
    NoFile {
        /// Path or URL of the file, as given on the command line.
        path: String,
    },
    /// A pattern or directory without files that can be read.
    #[error(
        "{path}: there is no file with a name that ends in {} (also with .gz, .zst or .zip){}",
        Format::endings(),
        notes.iter().map(|note| format!("\n  {note}")).collect::<String>()
    )]
    NoMatch {
        /// The pattern or directory, as given on the command line.
        path: String,
        /// Notes on names that are there and not read, with what to do about them.
        notes: Vec<String>,
    },
    /// The sample is too small or cannot be read.
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// No column has times, and none is unique.
    #[error(
        "{path}: no column holds times, and {}: add a column with a number of the row, or with times. Times are written as \
         2018-01-31T01:15:00Z, 2018-01-31, 2018-01 or in the usual other ways; numbers since the epoch need a name such as \
         `ts` or `time`{}",
        keyless(columns),
        unread(left_out)
    )]
    NoKey {
        /// The files that were sampled, as given on the command line.
        path: String,
        /// Names of the columns that were read.
        columns: Vec<String>,
        /// Columns that cannot be read, each with its type.
        left_out: Vec<String>,
    },
    /// The job exists already, as a folder or as a file.
    #[error("{} is there already; {}", .path.display(), exists(job, *by_force))]
    Exists {
        /// The file that would be written, relative to the current directory.
        path: PathBuf,
        /// Name of the job that was proposed.
        job: String,
        /// Whether `--force` overwrites it; not if it is in another place.
        by_force: bool,
    },
    /// The proposal is not a valid job, which its own reader found before it was kept.
    #[error("the job that was found cannot be written: {0}")]
    Invalid(#[from] Box<JobError>),
    /// A file of the job could not be written, such as on a full disk.
    #[error("cannot write {}: {source}", .path.display())]
    Write {
        /// The file or directory, relative to the current directory.
        path: PathBuf,
        /// What the operating system says about it.
        source: std::io::Error,
    },
}

fn keyless(columns: &[String]) -> String {
    match columns {
        [] => "none of its columns can be read".to_owned(),
        columns => format!("of the columns {} none tells the rows apart", listed(columns)),
    }
}

fn unread(left_out: &[String]) -> String {
    match left_out {
        [] => String::new(),
        left_out => format!(". Not read: {}", left_out.join(", ")),
    }
}

fn exists(job: &str, by_force: bool) -> String {
    let first = format!("give the new job another name than {job}");
    let rest = if by_force { ", write over it with --force, or see the proposal with --stdout" } else { "" };
    format!("{first}{rest}")
}
