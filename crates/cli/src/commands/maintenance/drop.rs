//! `tidetable drop`: removes a table or an export that no job declares any more.

use std::io::{IsTerminal, Write};

use tidetable_job::{Job, Project};
use tidetable_runner::DropPlan;

use crate::args::{Drop, Global, Output};
use crate::commands::maintenance::agreed;
use crate::commands::{clock, project_if_any, store};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::objects;
use crate::output::values::{bytes, count};
use crate::output::{ResultRows, row, sentences};
use crate::signals::stop_on_signals;

/// Removes the files of a table or an export, or only says what they are.
pub fn drop_name(global: &Global, args: &Drop) -> Result<(), CliError> {
    if !args.yes && !args.dry_run && !std::io::stdin().is_terminal() {
        return Err(CliError::Usage(
            "this removes files, and there is no terminal to ask on: give --yes, or --dry-run to see what",
        ));
    }

    let store = store(global)?;
    let Some(project) = project_if_any(global)? else {
        return Err(CliError::Usage("drop runs in a project (-C DIR): only its job files say what is still declared"));
    };

    let plan = DropPlan::new(&store, &jobs_of(&project)?, &args.name, clock())?;
    let what =
        format!("{} {}: {} of {}", plan.kind.name(), plan.name, count(plan.files as u64, "file"), bytes(plan.bytes));
    let is_meant = args.yes || (!args.dry_run && agreed(&format!("drop {what}"))?);
    if is_meant {
        let stop = stop_on_signals()?;
        let lock = plan.lock(&store, &project, &stop)?;
        // Jobs and runs may have changed while it was asked.
        let again = DropPlan::new(&store, &jobs_of(&project)?, &args.name, clock())?;
        lock.remove(&store, &plan, &again, &stop)?;
    }

    let mut out = sentences(global.output);
    match global.output {
        Output::Table if is_meant => writeln!(out, "{what} removed")?,
        Output::Table if args.dry_run => writeln!(out, "{what} would be removed")?,
        Output::Table => writeln!(out, "nothing was removed")?,
        output => {
            let mut shown = ResultRows::of(objects::DROPPED);
            shown.push(row![plan.name, plan.kind.name(), plan.job, plan.files, plan.bytes, is_meant]);
            shown.write(output, &mut out)?;
        }
    }
    out.flush()?;

    if let (true, Some(table)) = (is_meant, &plan.cataloged) {
        print_message(global, &format!("note: {table} still names the files; drop the table there, too"));
    }
    Ok(())
}

fn jobs_of(project: &Project) -> Result<Vec<Job>, CliError> {
    let mut jobs = Vec::new();
    for name in project.jobs() {
        jobs.push(Job::load(project, &name)?);
    }
    Ok(jobs)
}
