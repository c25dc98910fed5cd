//! `tidetable replay`: reads the inputs of rejected rows again.

use tidetable_job::Job;
use tidetable_runner::record::rejected_rows;
use tidetable_runner::{RunOptions, UlidIds, open_store};

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
    let blobs = store.blobs().as_ref();
    let record = find_run(&store, &args.run)?;
    let rows = rejected_rows(blobs, &record)?;
    let mut reread: Vec<String> = rows.iter().map(|row| row.file.clone()).collect();
    reread.sort_unstable();
    reread.dedup();
    if reread.is_empty() {
        let why = if record.all_rejected() > 0 { " any more (they were cleaned away)" } else { "" };
        return Err(CliError::NothingRejected { run: record.run.clone(), why });
    }

    let job = Job::load(&project, &record.job)?;
    let ids = UlidIds::default();
    let execution = ExecutionOptions::from_args(&args.how, &project)?;
    let asked = RunDays { without: args.without.clone(), now: args.now, ..RunDays::default() };
    let options = RunOptions { reread: reread.clone(), ..options(&asked, job.timezone, &execution, &ids)? };

    let Some(done) = run_one(global, &project, &job, &options, &ids)? else { return Ok(()) };
    let still = rejected_rows(blobs, &done)?.iter().filter(|row| reread.contains(&row.file)).count() as u64;
    let (then, inputs) = (count(rows.len() as u64, "row"), count(reread.len() as u64, "input"));

    let text = match still {
        still if still >= rows.len() as u64 => format!(
            "read {inputs} of run {} again: none of the rows rejected then is accepted now ({} rejected)",
            record.run,
            count(still, "row"),
        ),
        still => format!("read {inputs} of run {} again: {then} rejected then, {still} now", record.run),
    };
    print_message(global, &text);
    Ok(())
}
