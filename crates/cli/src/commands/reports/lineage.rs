//! `tidetable lineage`: what came from what.

use std::io::Write;

use serde_json::json;
use tidetable_runner::Lineage;
use tidetable_store::Published;

use crate::args::Global;
use crate::commands::{find_run, project_if_any, store, time};
use crate::error::CliError;
use crate::output::{Rows, stdout};
use crate::{args, objects};

/// Shows the links of a table, an export, a part or an input.
pub fn lineage(global: &Global, args: &args::Lineage) -> Result<(), CliError> {
    let store = store(global)?;
    let lineage = Lineage::read(&store, project_if_any(global)?.as_ref())?;
    let now = chrono::Utc::now().timestamp_micros();
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
    let mut rows = Rows::of(objects::LINKS);
    for link in links {
        rows.push(vec![
            json!(link.from.0.name()),
            json!(link.from.1),
            json!(link.into.0.name()),
            json!(link.into.1),
            json!(link.days),
            json!(link.sequence),
            json!(link.rows),
            json!(link.rejected),
            json!(link.version),
            json!(link.run),
            json!(link.now.and_then(time)),
            json!(link.fingerprint),
        ]);
    }
    let mut out = stdout();
    rows.write(global.output, &mut out)?;
    out.flush()?;
    Ok(())
}
