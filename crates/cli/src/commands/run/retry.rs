//! `tidetable retry`: tries again what a run left over.

use chrono::NaiveDate;
use tidetable_job::Job;
use tidetable_runner::{RunOptions, UlidIds, open_store};

use super::one::{is_broken, is_missed, run_one};
use super::options::{ExecutionOptions, options};
use crate::args::{Global, Retry, RunDays, selected_of};
use crate::commands::{find_run, project};
use crate::diagnostics::print_message;
use crate::error::CliError;

pub fn retry(global: &Global, args: &Retry) -> Result<(), CliError> {
    let project = project(global)?;
    let store = open_store(&project)?;
    let record = find_run(&store, &args.run)?;
    let job = Job::load(&project, &record.job)?;
    let ids = UlidIds::default();
    let execution = ExecutionOptions::from_args(&args.how, &project)?;

    let parts: Vec<(String, String)> = record
        .exports
        .iter()
        .filter(|part| is_missed(part.state))
        .map(|part| (part.export.clone(), part.label.clone()))
        .collect();

    let is_open = record.outcome.is_open();
    let owes = !record.damage.is_empty() || record.loads.iter().any(|load| !load.owed.is_empty());
    let failed_pushes = record.pushes.iter().any(|push| push.error.is_some());
    // Any run of the job repeats failed checks of tables, and pushes.
    let is_done = parts.is_empty() && !failed_pushes && !record.checks.iter().any(is_broken);
    if is_done && !is_open && !owes {
        print_message(global, &format!("run {} left nothing to try again", record.run));
        return Ok(());
    }

    // An interrupted run has tried only some of its parts. Which parts an owed window changes is known when it is rebuilt.
    let parts = if is_open || owes { record.asked.parts.clone() } else { Some(parts) };
    let (from, to) = (record.asked.from, record.asked.to);
    let days = (from.is_some() || to.is_some()).then(|| from.unwrap_or(NaiveDate::MIN)..=to.unwrap_or(NaiveDate::MAX));

    let asked = RunDays {
        select: selected_of(&record.asked.select),
        force: record.asked.force,
        rebuild: record.asked.rebuild,
        without: record.asked.without.clone(),
        now: Some(record.now),
        ..RunDays::default()
    };
    let reread = record.asked.reread.clone();
    let options = RunOptions { days, parts, reread, ..options(&asked, job.timezone, &execution, &ids)? };
    run_one(global, &project, &job, &options, &ids)?;
    Ok(())
}
