//! Runs one job and shows the result.

use tidetable_job::{Job, JobError, Project};
use tidetable_runner::record::{CheckRecord, Outcome, PartState, RunRecord, Severity};
use tidetable_runner::run::report_refusal;
use tidetable_runner::{RunOptions, UlidIds, run as run_job};

use super::summary;
use crate::args::Global;
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::log;
use crate::output::values::count;
use crate::progress::Watcher;

/// Loads a job to run. If it is invalid, its hooks are called.
pub fn load(global: &Global, project: &Project, name: &str, options: &RunOptions) -> Result<Job, JobError> {
    Job::load(project, name).inspect_err(|error| {
        let watcher = Watcher::new(global, &options.stop);
        report_refusal(project, name, options, error, &watcher);
        watcher.finish();
    })
}

/// Runs a job and shows the result: its record, or `None` if another run holds the lock and this one was skipped.
pub fn run_one(
    global: &Global,
    project: &Project,
    job: &Job,
    options: &RunOptions,
    ids: &UlidIds,
) -> Result<Option<RunRecord>, CliError> {
    log::about_run(&options.run);
    let watcher = Watcher::new(global, &options.stop);
    let report = run_job(project, job, options, ids, &watcher);
    watcher.finish();
    let Some(report) = report? else {
        print_message(global, &format!("skipped: job {} is already running", job.name));
        return Ok(None);
    };
    let shown = match summary::show(global, project, job, &report) {
        // The reader closed the pipe; the exit code still tells how the run ended.
        Err(error) if error.is_closed_pipe() => Ok(()),
        shown => shown,
    };
    let record = &report.record;
    match record.outcome {
        Outcome::Partial => {
            let mut missed = Vec::new();
            if has_missed(record) {
                missed.push(format!("{} not published", summary::parts(job, record, is_missed)));
            }
            match record.pushes.iter().filter(|push| push.error.is_some()).count() {
                0 => {}
                1 => missed.push("1 push failed".to_owned()),
                pushes => missed.push(format!("{pushes} pushes failed")),
            }
            match record.damage.len() as u64 {
                0 => {}
                steps => missed.push(format!("{} left undone", count(steps, "step"))),
            }
            let again = match missed.is_empty() {
                true => "A run rebuilds them once that is possible".to_owned(),
                false => format!("`tidetable retry {}` tries again", record.run),
            };
            let owed: usize = record.loads.iter().map(|load| load.owed.len()).sum();
            if owed > 0 {
                missed.push(format!("{} not rebuilt", count(owed as u64, "window")));
            }
            // The summary names them, which a quiet run does not show.
            if let (true, Some(why)) = (global.quiet, record.failure()) {
                print_message(global, &format!("warning: {why}"));
            }
            Err(CliError::Partial { missed: missed.join(", "), again })
        }
        Outcome::Checks => {
            let broken = record.checks.iter().filter(|check| is_broken(check)).count();
            Err(CliError::Checks { failed: count(broken as u64, "check") })
        }
        _ => shown.map(|()| Some(report.record)),
    }
}

/// Whether a part was not published.
fn has_missed(record: &RunRecord) -> bool {
    record.exports.iter().any(|part| is_missed(part.state))
}

/// Whether the state is that of a part that a run should have published and did not.
pub fn is_missed(state: PartState) -> bool {
    matches!(state, PartState::Failed | PartState::Checks)
}

/// Whether a check of severity `error` failed.
pub fn is_broken(check: &CheckRecord) -> bool {
    !check.passed && check.severity == Severity::Error
}
