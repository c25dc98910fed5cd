//! Why a project or a job could not be loaded.

use std::path::PathBuf;

use miette::Diagnostic;
use thiserror::Error;

use crate::job::problem::JobFileError;

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
        /// Where jobs are looked for.
        folder: PathBuf,
        /// The jobs there.
        known: Vec<String>,
        /// The job whose name is nearest.
        near: Option<String>,
    },
    /// A path that leads to no job file.
    #[error("there is no job file at {}", .path.display())]
    #[diagnostic(help("name a job, a job file (`.toml`), or a folder with a job.toml"))]
    NoFile {
        /// What was asked for.
        path: PathBuf,
    },
    /// A job that is there twice.
    #[error("the job `{name}` is there twice: {} and {}", .folder.display(), .file.display())]
    #[diagnostic(help("keep one of the two"))]
    Twice {
        /// Its name.
        name: String,
        /// Its job.toml.
        folder: PathBuf,
        /// Its NAME.toml.
        file: PathBuf,
    },
    /// A job file that cannot be read.
    #[error("cannot read {}", .path.display())]
    #[diagnostic(help("check that it is a text file and that you may read it"))]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A job file with mistakes.
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] Box<JobFileError>),
}

/// Why a project could not be found.
#[derive(Debug, Error, Diagnostic)]
#[non_exhaustive]
pub enum ProjectError {
    /// Neither the folder nor one above it has a tidetable.toml.
    #[error("no tidetable.toml in {} or a folder above it", .start.display())]
    #[diagnostic(help("create one in the project's folder, with the line: root = \"data\""))]
    NotFound {
        /// Where the search began.
        start: PathBuf,
    },
    /// A folder or file that cannot be read.
    #[error("cannot read {}", .path.display())]
    #[diagnostic(help("check that it is there and that you may read it"))]
    Read {
        /// The folder or file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A tidetable.toml with mistakes.
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
