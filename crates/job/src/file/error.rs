//! Errors of loading a project or a job.

use std::path::PathBuf;

use miette::Diagnostic;
use thiserror::Error;

use crate::file::problem::JobFileError;

/// Why a job could not be loaded. Each message says what to do next.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum JobError {
    /// No job of the project has this name, as a directory or as a file.
    #[error("there is no job `{name}` in {}", .folder.display())]
    #[diagnostic(help("{}", unknown_job(.near.as_deref(), .known)))]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The directory in which jobs are looked for.
        folder: PathBuf,
        /// Names of the jobs of that directory, ascending.
        known: Vec<String>,
        /// The name among them that is most similar, if one is.
        near: Option<String>,
    },
    /// A path that was given for a job, without a job file there.
    #[error("there is no job file at {}", .path.display())]
    #[diagnostic(help("name a job, a job file (`.toml`), or a folder with a job.toml"))]
    NoFile {
        /// The path that was asked for, as given.
        path: PathBuf,
    },
    /// A job in two places, of which neither is preferred.
    #[error("the job `{name}` is there twice: {} and {}", .folder.display(), .file.display())]
    #[diagnostic(help("keep one of the two"))]
    Twice {
        /// The name of the job, which both places declare.
        name: String,
        /// The directory of the job, which has a job.toml.
        folder: PathBuf,
        /// The file NAME.toml beside the directory.
        file: PathBuf,
    },
    /// A job file that is there and cannot be read.
    #[error("cannot read {}", .path.display())]
    #[diagnostic(help("check that it is a text file and that you may read it"))]
    Read {
        /// The job file, as the user named it or as it was found.
        path: PathBuf,
        /// Why the system did not read it, such as a lack of rights.
        source: std::io::Error,
    },
    /// A job file with mistakes, each with its line and column.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] Box<JobFileError>),
}

/// Why a project could not be found, or its tidetable.toml not be used.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum ProjectError {
    /// No tidetable.toml in the directory or one above it.
    #[error("no tidetable.toml in {} or a folder above it", .start.display())]
    #[diagnostic(help(
        "`tidetable new` makes a project of the current folder, as does a tidetable.toml with the line: root = \"data\""
    ))]
    NotFound {
        /// The directory in which the search began; it went upwards from there.
        start: PathBuf,
    },
    /// A directory or file of the project that cannot be read.
    #[error("cannot read {}", .path.display())]
    #[diagnostic(help("check that it is there and that you may read it"))]
    Read {
        /// The directory or file, as an absolute path.
        path: PathBuf,
        /// Why the system did not read it, such as a lack of rights.
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
