//! `tidetable plan`: what a run would do, and why.

use chrono_tz::Tz;
use tidetable_job::Job;
use tidetable_runner::{UlidIds, plan_job};

use super::run::all::{EachJob, run_all};
use super::run::dry_run::show;
use super::run::options::{ExecutionOptions, options};
use super::{clock, note_if_root_is_new, project};
use crate::args::{Global, Plan};
use crate::error::CliError;

/// Shows the plan of a job.
pub fn plan(global: &Global, args: &Plan) -> Result<(), CliError> {
    let project = project(global)?;
    note_if_root_is_new(global)?;
    let ids = UlidIds::default();
    let execution = ExecutionOptions::default();
    let Some(name) = &args.job else {
        let now = args.days.now.unwrap_or_else(clock);
        let unread = options(&args.days, Tz::UTC, &execution, &ids)?;
        let asked = EachJob { days: &args.days, execution: &execution, ids: &ids, now, unread: &unread };
        return run_all(global, &project, &asked, true);
    };
    let job = Job::load(&project, name)?;
    let options = options(&args.days, job.timezone, &execution, &ids)?;
    show(global, &plan_job(&project, &job, &options, &ids)?)
}
