//! `tidetable new`: proposes a job for a data file, and writes it.

pub mod first_look;

use std::io::Write;

use serde_json::{Value, json};
use tidetable_job::scaffold::{Proposal, propose};
use tidetable_job::{Job, Project, ProjectError};
use tidetable_runner::{files_storage, runtime};

use super::advisor::advise::advise;
use super::project;
use super::run::summary::quoted;
use crate::activity::Activity;
use crate::args::{Advise, Global, New, Output};
use crate::error::CliError;
use crate::objects;
use crate::objects::write_object;
use crate::output::{ResultRows, sentences, stdout};

/// Proposes the job, writes it, and shows the next steps.
pub fn new(global: &Global, args: &New) -> Result<(), CliError> {
    if let Some(queries) = &args.queries {
        return advise(global, &Advise::for_new(&args.job, &args.from, queries, args.timezone));
    }

    let project = match project(global) {
        Err(CliError::Project(ProjectError::NotFound { start })) => {
            Project::begin(&start).with_root(global.root.as_ref())
        }
        found => found?,
    };
    let runtime = runtime()?;
    let proposal = match super::bigtable::new::proposal(args, runtime.handle())? {
        Some(proposal) => proposal,
        None => {
            let storage = files_storage(&project, &args.job, &args.from, runtime.handle().clone())?;
            let _reading = Activity::begin(global, &format!("reading {}", args.from.join(", ")));
            propose(&project, &storage, &args.job, &args.from, args.timezone)?
        }
    };
    if args.stdout {
        return print(global, &proposal);
    }

    let files = proposal.write(&project, args.force)?;
    // Validates the written file.
    Job::load(&project, &proposal.job)?;
    let files: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();

    let mut out = sentences(global.output);
    if global.output == Output::Table {
        for file in &files {
            writeln!(out, "wrote {file}")?;
        }
        writeln!(out, "table {} with row key {}", proposal.table, proposal.row_key)?;
        for note in proposal.notes.iter().filter(|_| !global.quiet) {
            writeln!(out, "note: {note}")?;
        }

        writeln!(out, "\nTry next:")?;
        if let Some(table) = args.from.first().filter(|from| from.starts_with("projects/")) {
            writeln!(out, "  tidetable pull {table} --into {}", proposal.job)?;
        }
        writeln!(out, "  tidetable run {}", proposal.job)?;
        writeln!(out, "  tidetable sql -c 'select * from {} limit 5'", quoted(&proposal.table))?;
    } else {
        let mut rows = ResultRows::of(objects::NEW);
        let job = [&proposal.job, &proposal.table, &proposal.row_key].map(|text| json!(text));
        rows.push(job.into_iter().chain([json!(files), json!(proposal.notes)]).collect());
        rows.write(global.output, &mut out)?;
    }

    out.flush()?;
    Ok(())
}

/// Writes the files of a proposal to standard output.
fn print(global: &Global, proposal: &Proposal) -> Result<(), CliError> {
    let mut out = stdout();
    if global.output == Output::Json {
        let queries = proposal.queries.iter().map(|(name, sql)| json!({ "file": name, "sql": sql }));
        let queries: Value = queries.collect();
        let shown = json!({ "job": proposal.job, "job_toml": proposal.text, "queries": queries });
        write_object(&mut out, shown, objects::PROPOSAL)?;
    } else {
        writeln!(out, "# jobs/{}/job.toml\n{}", proposal.job, proposal.text)?;
        for (name, sql) in &proposal.queries {
            writeln!(out, "-- jobs/{}/{name}\n{sql}", proposal.job)?;
        }
    }
    out.flush()?;
    Ok(())
}
