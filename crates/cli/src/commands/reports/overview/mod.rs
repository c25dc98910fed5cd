//! `tidetable report`: a job at a glance.

mod page;
mod stored;
mod text;

use std::io::Write;

use tidetable_page::runs_page;
use tidetable_runner::record::state_of;
use tidetable_runner::report::Overview;

use crate::args::{Global, Output, Report};
use crate::commands::{clock, project_if_any, store};
use crate::error::CliError;
use crate::objects::{self, shape::shaped};
use crate::output::sentences;
use crate::page_file::PageFile;

/// Shows days, runs, checks and lineage of a job, and writes them as a page if asked.
pub fn report(global: &Global, args: &Report) -> Result<(), CliError> {
    let file = PageFile::of(args.report.as_ref())?;
    let store = store(global)?;
    let project = project_if_any(global)?;
    let clock = clock();
    let Some(overview) = Overview::read(&store, project.as_ref(), &args.job, clock)? else {
        let known = project.map(|project| project.jobs().join(", ")).unwrap_or_default();
        return Err(CliError::NoJob { job: args.job.clone(), known });
    };

    let states = overview.runs.iter().map(|record| state_of(store.blobs().as_ref(), record, clock));
    let states = states.collect::<Result<Vec<_>, _>>()?;
    let stored = stored::overview(&args.job, &overview, &states);

    let shown = file.as_ref().is_none_or(|file| !file.is_stdout());
    if shown {
        let mut out = sentences(global.output);
        match global.output {
            Output::Json => objects::write_object(&mut out, stored.clone(), objects::REPORT)?,
            output => text::write(&args.job, &overview, &states, output, &mut out)?,
        }
        out.flush()?;
    }

    if let Some(file) = file {
        let data = shaped(stored, objects::REPORT);
        let page = page::of(&args.job, project.as_ref(), &overview, &states, data);
        file.write(global, &runs_page(&page)?)?;
    }
    Ok(())
}
