//! `tidetable replay`: reads the inputs of rejected rows again.

use std::collections::BTreeSet;

use tidetable_ingest::RejectedRow;
use tidetable_job::Job;
use tidetable_runner::record::{InputState, RunRecord, Runs, rejected_rows};
use tidetable_runner::{RunOptions, UlidIds, open_store};
use tidetable_store::Store;

use crate::args::{Global, Replay, RunDays};
use crate::commands::run::one::run_one;
use crate::commands::run::options::{ExecutionOptions, options};
use crate::commands::{find_run, project};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::output::values::count;

/// Runs the job of a run again, treating the inputs with rejected rows as changed.
pub fn replay(global: &Global, args: &Replay) -> Result<(), CliError> {
    let project = project(global)?;
    let store = open_store(&project)?;
    let (record, rows) = asked_run(&store, &args.run)?;
    let reread: BTreeSet<String> = rows.iter().map(|row| row.file.clone()).collect();

    let job = Job::load(&project, &record.job)?;
    let ids = UlidIds::default();
    let execution = ExecutionOptions::from_args(&args.how, &project)?;
    let asked = RunDays { without: args.without.clone(), now: args.now, ..RunDays::default() };
    let options = options(&asked, job.timezone, &execution, &ids)?;
    let options = RunOptions { reread: reread.iter().cloned().collect(), ..options };

    let Some(done) = run_one(global, &project, &job, &options, &ids)? else { return Ok(()) };
    let read = files_read(&done);
    let (there, absent): (Vec<&str>, Vec<&str>) =
        reread.iter().map(String::as_str).partition(|file| read.contains(file));
    if !there.is_empty() {
        let then = rows.iter().filter(|row| there.contains(&row.file.as_str())).count();
        let now = rejected_rows(store.blobs().as_ref(), &done)?;
        let now = now.iter().filter(|row| there.contains(&row.file.as_str())).count();
        print_message(global, &outcome(&record.run, there.len() as u64, then as u64, now as u64));
    }
    match absent.is_empty() {
        true => Ok(()),
        false => Err(CliError::NotReadAgain { files: absent.join(", ") }),
    }
}

/// The run that was asked for with its rejected rows. Of a job it is the newest run that has some.
fn asked_run(store: &Store, asked: &str) -> Result<(RunRecord, Vec<RejectedRow>), CliError> {
    let blobs = store.blobs().as_ref();
    let record = find_run(store, asked)?;
    let rows = rejected_rows(blobs, &record)?;
    if !rows.is_empty() {
        return Ok((record, rows));
    }

    let why = if record.all_rejected() > 0 { " any more (they were cleaned away)" } else { "" };
    let is_of_job = record.job == asked;
    for earlier in Runs::of(blobs).known_newest_first(Some(&record.job))?.filter_map(Result::ok) {
        let rows = rejected_rows(blobs, &earlier)?;
        if rows.is_empty() {
            continue;
        }
        if is_of_job {
            return Ok((earlier, rows));
        }
        return Err(CliError::NothingRejected { run: record.run, why, other: Some(earlier.run) });
    }
    Err(CliError::NothingRejected { run: record.run, why, other: None })
}

/// The files that a run read.
fn files_read(done: &RunRecord) -> BTreeSet<&str> {
    let inputs = done.loads.iter().flat_map(|load| &load.inputs);
    let read = inputs.filter(|input| {
        matches!(input.state, InputState::New | InputState::Changed | InputState::Grown | InputState::ReadAgain)
    });
    read.map(|input| input.path.as_str()).collect()
}

/// What came of reading `inputs` inputs of a run again: rows rejected then, and now.
fn outcome(run: &str, inputs: u64, then: u64, now: u64) -> String {
    let inputs = count(inputs, "input");
    if now >= then {
        let rows = count(now, "row");
        return format!(
            "read {inputs} of run {run} again: none of the rows rejected then is accepted now ({rows} rejected)"
        );
    }
    format!("read {inputs} of run {run} again: {} rejected then, {now} now", count(then, "row"))
}
