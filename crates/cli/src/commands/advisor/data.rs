//! Jobs for data files, which `advise` and `compare` take as they take jobs.

use std::fs;

use chrono_tz::Tz;
use tempfile::TempDir;
use tidetable_job::scaffold::{is_data, propose};
use tidetable_job::{Job, Project};
use tidetable_runner::files_storage;
use tokio::runtime::Handle;

use crate::args::Global;
use crate::diagnostics::print_message;
use crate::error::CliError;

/// The job that `from` names; for data files, a job of this name as `new` proposes it, with the notes of the proposal.
pub(super) fn job_or_data(
    global: &Global,
    project: &Project,
    name: &str,
    from: &[String],
    timezone: Option<Tz>,
    handle: &Handle,
) -> Result<Job, CliError> {
    if let ([job], false) = (from, is_data(project, from)) {
        return Ok(Job::load(project, job)?);
    }
    let storage = files_storage(project, name, from, handle.clone())?;
    let proposal = propose(project, &storage, name, from, timezone)?;
    proposal.notes.iter().for_each(|note| print_message(global, &format!("note: {note}")));

    let failed = |source| CliError::Folder { path: std::env::temp_dir().display().to_string(), source };
    let folder = TempDir::new().map_err(failed)?;
    let own = folder.path().join(&proposal.job);
    fs::create_dir(&own).map_err(failed)?;
    for (file, text) in &proposal.queries {
        fs::write(own.join(file), text).map_err(failed)?;
    }
    fs::write(own.join("job.toml"), &proposal.text).map_err(failed)?;
    Ok(Job::load(project, &own.join("job.toml").display().to_string())?)
}
