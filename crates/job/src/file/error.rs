//! Errors of loading a project or a job.

use std::path::PathBuf;

use miette::Diagnostic;
use thiserror::Error;

use crate::file::problem::JobFileError;

/// Why a job could not be loaded.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum JobError {
    /// No job of the project has this name.
    #[error("there is no job `{name}` in {}", .folder.display())]
    #[diagnostic(help("{}", unknown_job(.near.as_deref(), .known)))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The directory of jobs.
        folder: PathBuf,
        /// The jobs of that directory, ascending.
        known: Vec<String>,
        /// The most similar name.
        near: Option<String>,
    },
    /// A path without a job file.
    #[error("there is no job file at {}", .path.display())]
    #[diagnostic(help("name a job, a job file (`.toml`), or a folder with a job.toml"))]
    NoFile {
        /// What was asked for.
        path: PathBuf,
    },
    /// A job in two places.
    #[error("the job `{name}` is there twice: {} and {}", .folder.display(), .file.display())]
    #[diagnostic(help("keep one of the two"))]
    Twice {
        /// The name of the job, which both places declare.
        name: String,
        /// The directory of the job, with its job.toml.
        folder: PathBuf,
        /// The file NAME.toml beside it.
        file: PathBuf,
    },
    /// A job file that cannot be read.
    #[error("cannot read {}", .path.display())]
    #[diagnostic(help("check that it is a text file and that you may read it"))]
    Read {
        /// The job file, as the user named it.
        path: PathBuf,
        /// Why the system did not read it.
        source: std::io::Error,
    },
    /// An invalid job file.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] Box<JobFileError>),
}

/// Why a project could not be found.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum ProjectError {
    /// No tidetable.toml in the directory or one above it.
    #[error("no tidetable.toml in {} or a folder above it", .start.display())]
    #[diagnostic(help(
        "`tidetable new` makes a project of the current folder, as does a tidetable.toml with the line: root = \"data\""
    ))]
    NotFound {
        /// Where the search began.
        start: PathBuf,
    },
    /// A directory or file that cannot be read.
    #[error("cannot read {}", .path.display())]
    #[diagnostic(help("check that it is there and that you may read it"))]
    Read {
        /// The directory or file.
        path: PathBuf,
        /// Why the system did not read it.
        source: std::io::Error,
    },
    /// A tidetable.toml with mistakes, each with its line and column.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] Box<JobFileError>),
}

fn unknown_job(near: Option<&str>, known: &[String]) -> String {
    let jobs = match known {
        [] => "no job is there yet: create jobs/NAME/job.toml".to_owned(),
        known => format!("jobs: {}", known.join(", ")),
    };
    match near {
        Some(near) => format!("did you mean `{near}`? {jobs}"),
        None => jobs,
    }
}
