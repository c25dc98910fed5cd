//! `tidetable run`: runs a job, or all of them.

pub(crate) mod all;
pub(crate) mod catch_up;
pub(crate) mod dry_run;
pub(crate) mod jobs;
pub(crate) mod one;
pub(crate) mod options;
pub(crate) mod retry;
pub(crate) mod summary;

use chrono_tz::Tz;
use tidetable_job::Job;
use tidetable_runner::{UlidIds, plan_job};

use super::project;
use crate::args::{Global, Run};
use crate::commands::clock;
use crate::error::CliError;
use all::{EachJob, run_all};
use one::{load, run_one};
use options::{ExecutionOptions, options};

/// Runs the job, or all of them.
pub fn run(global: &Global, args: &Run) -> Result<(), CliError> {
    let project = project(global)?;
    let ids = UlidIds::default();
    let execution = ExecutionOptions::from_args(&args.how, &project)?;
    // The time zone of an invalid job file is unknown.
    let unread = options(&args.days, Tz::UTC, &execution, &ids)?;
    let Some(name) = &args.job else {
        // All jobs share the logical time.
        let now = args.days.now.unwrap_or_else(clock);
        let asked = EachJob { days: &args.days, execution: &execution, ids: &ids, now, unread: &unread };
        return run_all(global, &project, &asked, args.dry_run);
    };

    let job = if args.dry_run { Job::load(&project, name) } else { load(global, &project, name, &unread) }?;
    let options = options(&args.days, job.timezone, &execution, &ids)?;

    if args.catch_up {
        return catch_up::catch_up(global, &project, &job, &options, args.dry_run, &ids);
    }
    if args.dry_run {
        return dry_run::show(global, &plan_job(&project, &job, &options, &ids)?);
    }

    run_one(global, &project, &job, &options, &ids)?;
    Ok(())
}
