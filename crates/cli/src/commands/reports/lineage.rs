//! `tidetable lineage`: which inputs and versions tables and parts were made from.

use tidetable_runner::report::Lineage;
use tidetable_store::published::Published;

use crate::args::Global;
use crate::commands::{clock, find_run, project_if_any, store};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::output::values::time;
use crate::output::{ResultRows, row};
use crate::{args, objects};

/// Shows the links of a table, an export, a part or an input.
pub fn lineage(global: &Global, args: &args::Lineage) -> Result<(), CliError> {
    let store = store(global)?;
    let lineage = Lineage::read(&store, project_if_any(global)?.as_ref())?;
    let now = clock();
    let day = args.day.and_then(|day| day.at(chrono_tz::UTC, now));
    let run = args.run.as_ref().map(|run| find_run(&store, run)).transpose()?;

    let (what, name, links) = match (&args.input, &args.name, &run) {
        (_, _, Some(record)) => ("run", record.run.as_str(), Some(lineage.of_run(&record.run))),
        (Some(input), _, _) => ("input", input.as_str(), lineage.of_input(input)),
        (None, name, _) => {
            let name = name.as_deref().unwrap_or_default();
            ("table, export or part", name, lineage.of(name, day))
        }
    };

    let Some(links) = links else {
        let mut known = store.tables()?;
        known.extend(Published::all(store.blobs().as_ref())?.into_iter().map(|export| export.name));
        return Err(CliError::NoLineage { what, name: name.to_owned(), known });
    };

    if let (true, Some(day)) = (links.is_empty(), day) {
        print_message(global, &format!("{what} {name}: nothing is known of {day}"));
    }
    let mut rows = ResultRows::of(objects::LINKS).ids(&["run", "fingerprint"]).minor(&[
        "fingerprint",
        "now",
        "sequence",
        "version",
        "rejected",
        "owed",
        "rows",
        "run",
    ]);

    for link in links {
        rows.push(row![
            link.from.0.name(),
            link.from.1,
            link.into.0.name(),
            link.into.1,
            link.days,
            link.sequence,
            link.rows,
            link.rejected,
            link.owed,
            link.version,
            link.run,
            link.now.and_then(time),
            link.fingerprint
        ]);
    }
    rows.print(global.output)
}
