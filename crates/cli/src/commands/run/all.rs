//! Runs all jobs of a project, or shows their plans.

use std::collections::{BTreeSet, HashMap};

use tidetable_job::{Job, Project};
use tidetable_runner::plan::TableReason;
use tidetable_runner::run::{check_without_of_all, input_names, without_of_job};
use tidetable_runner::{RunOptions, UlidIds, open_store, plan_job};

use super::dry_run::show;
use super::one::{load, run_one};
use super::options::{ExecutionOptions, options};
use crate::args::{Global, RunDays};
use crate::commands::run::jobs::in_order;
use crate::diagnostics::{print_error, print_message};
use crate::error::CliError;
use crate::output::values::count;

/// What was asked of the runs of all jobs.
pub struct EachJob<'a> {
    /// The days, and the other options of a run.
    pub days: &'a RunDays,
    /// How each run executes.
    pub execution: &'a ExecutionOptions,
    /// Makes the name of each run.
    pub ids: &'a UlidIds,
    /// The logical time, microseconds since the epoch, which all jobs share.
    pub now: i64,
    /// The options for a job whose file cannot be read: its time zone is unknown.
    pub unread: &'a RunOptions,
}

impl EachJob<'_> {
    /// The options for the run of a job.
    ///
    /// # Errors
    /// If a day is outside the calendar of its time zone.
    fn options(&self, job: &Job) -> Result<RunOptions, CliError> {
        let options = options(self.days, job.timezone, self.execution, self.ids)?;
        Ok(RunOptions { now: self.now, ..options })
    }
}

/// A job that did not end well.
struct Failed {
    job: String,
    code: u8,
    /// Whether the jobs that depend on it wait. They do not for one that did all it could.
    holds_back: bool,
}

/// Runs every job of the project in dependency order, or shows the plans. If a job fails, those that
/// depend on it do not run; the others do.
pub fn run_all(global: &Global, project: &Project, asked: &EachJob<'_>, dry_run: bool) -> Result<(), CliError> {
    let (ids, unread) = (asked.ids, asked.unread);
    let jobs = in_order(project).inspect_err(|_| {
        if !dry_run {
            project.jobs().iter().for_each(|name| drop(load(global, project, name, unread)));
        }
    })?;

    let names = names_for_without(project, unread, &jobs)?;
    let mut failed: Vec<Failed> = Vec::new();
    let mut unmade: Vec<&str> = Vec::new();

    for (job, after) in &jobs {
        if let Some(before) = after.iter().find(|before| holds_back(&failed, before)) {
            print_message(global, &format!("warning: {} is not run: {before}, which it depends on, failed", job.name));
            failed.push(Failed { job: job.name.clone(), code: 1, holds_back: true });
            continue;
        }

        let mut options = asked.options(job)?;
        // An input belongs to one job, or to a few.
        options.without = names.get(&job.name).map_or_else(Vec::new, |names| without_of_job(&options.without, names));

        let done = match dry_run {
            true => match plan_job(project, job, &options, ids) {
                Ok(plan) => {
                    if plan.tables.iter().any(|table| table.reason == Some(TableReason::Missing)) {
                        unmade.push(&job.name);
                    }
                    show(global, &plan)
                }
                // Its inputs do not exist before those have run.
                Err(_) if after.iter().any(|before| unmade.contains(&before.as_str())) => {
                    unmade.push(&job.name);
                    let text = format!("{}: what it does is known once {} has run", job.name, after.join(", "));
                    print_message(global, &text);
                    Ok(())
                }
                Err(error) => Err(error.into()),
            },
            false => run_one(global, project, job, &options, ids).map(drop),
        };

        if let Err(error) = done {
            let (code, holds_back) = (error.exit_code(), !matches!(error, CliError::Partial { .. }));
            if options.stop.asked().is_some() || error.is_closed_pipe() {
                return Err(error);
            }
            print_error(global, error);
            failed.push(Failed { job: job.name.clone(), code, holds_back });
        }
    }

    match failed.first() {
        None => Ok(()),
        Some(Failed { code, .. }) => Err(CliError::Several { failed: count(failed.len() as u64, "job"), code: *code }),
    }
}

/// Whether the jobs that depend on `before` wait.
fn holds_back(failed: &[Failed], before: &str) -> bool {
    failed.iter().any(|failed| failed.job == before && failed.holds_back)
}

/// The names of the inputs of each job, if `--without` is given; each of its names must be one of them.
fn names_for_without(
    project: &Project,
    options: &RunOptions,
    jobs: &[(Job, Vec<String>)],
) -> Result<HashMap<String, BTreeSet<String>>, CliError> {
    let mut names = HashMap::new();
    if options.without.is_empty() {
        return Ok(names);
    }
    let store = open_store(project)?;
    for (job, _) in jobs {
        names.insert(job.name.clone(), input_names(&store, job)?);
    }
    let all = names.values().flatten().cloned().collect();
    check_without_of_all(&all, &options.without)?;
    Ok(names)
}
