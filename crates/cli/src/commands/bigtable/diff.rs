//! `tidetable diff`: compares a table with one in Bigtable.

use std::io::Write;
use std::sync::Arc;

use serde_json::{Value, json};
use tidetable_bigtable::diff::{Diff as BigtableDiff, DiffReport, Difference, FamilyKinds};
use tidetable_runner::record::PullOrigins;
use tidetable_runner::runtime;
use tidetable_store::Snapshot;

use super::{client, target};
use crate::args::{Diff, Global, Output};
use crate::commands::ranges::key_range;
use crate::commands::{open_newest, store, warn_of_lost_windows};
use crate::error::CliError;
use crate::objects;
use crate::objects::write_object;
use crate::output::values::{count, time};
use crate::output::{Length, sentences, write_bytes};
use crate::signals::stop_on_signals;

/// Compares the table, and shows the first differences.
pub fn diff(global: &Global, args: &Diff) -> Result<(), CliError> {
    let store = store(global)?;
    let snapshot = match args.version {
        Some(version) => {
            let table = store.table(&args.table);
            Snapshot::new(table.clone(), Arc::new(table.version(version)?))?
        }
        None => open_newest(&store, &args.table)?,
    };
    warn_of_lost_windows(global, [&snapshot]);

    let runtime = runtime()?;
    let target = target(&args.target)?.table_or(&args.table).map_err(|error| CliError::Bigtable(error.into()))?;
    let version = snapshot.version().number;
    let job = snapshot.version().table.job.clone();

    let diff = BigtableDiff {
        now: args.now.unwrap_or(snapshot.version().now),
        snapshot,
        client: client(&args.service, runtime.handle())?,
        target: target.clone(),
        range: key_range(args.prefix.as_deref(), args.start.as_deref(), args.end.as_deref())?,
        most: args.limit,
        stop: stop_on_signals()?,
    };
    let report = diff.run(runtime.handle())?;

    let mut out = sentences(global.output);
    match global.output {
        Output::Json => write_object(&mut out, object(&report, version, &target.to_string()), objects::COMPARED_CELLS)?,
        _ => text(&report, &format!("{} version {version}", args.table), &target.to_string(), &mut out)?,
    }
    out.flush()?;
    if report.is_equal() {
        return Ok(());
    }

    let target = target.to_string();
    let origins = PullOrigins::load(store.blobs().as_ref(), &args.table)?;
    if origins.sources.contains(&target) {
        let raw = if origins.raw { " --raw" } else { "" };
        return Err(CliError::DiffersFromSource { table: args.table.clone(), target, job, raw });
    }
    Err(CliError::Differs { table: args.table.clone(), target })
}

fn object(report: &DiffReport, version: u64, target: &str) -> Value {
    let first: Vec<Value> = report
        .first
        .iter()
        .map(|found| {
            json!({
                "key": hex::encode(&found.key),
                "family": found.family.as_ref(),
                "qualifier": hex::encode(&found.qualifier),
                "timestamp": found.timestamp,
                "here": found.here.as_ref().map(hex::encode),
                "there": found.there.as_ref().map(hex::encode),
            })
        })
        .collect();
    let families: Vec<String> = report.families.iter().map(family_kinds).collect();
    json!({
        "target": target,
        "version": version,
        "equal": report.is_equal(),
        "rows_equal": report.rows_equal,
        "rows_differ": report.rows_differ,
        "rows_here": report.rows_here,
        "rows_there": report.rows_there,
        "cells_equal": report.cells_equal,
        "cells_differ": report.cells_differ,
        "cells_here": report.cells_here,
        "cells_there": report.cells_there,
        "cells_expired": report.expired,
        "families_differ": families,
        "first": first,
    })
}

fn family_kinds(found: &FamilyKinds) -> String {
    format!("{} is {} here and {} there", found.family, found.here, found.there)
}

fn text(report: &DiffReport, here: &str, there: &str, out: &mut dyn Write) -> Result<(), CliError> {
    writeln!(out, "{here} against {there}")?;
    for (what, rows, cells) in [
        ("equal", report.rows_equal, report.cells_equal),
        ("differ", report.rows_differ, report.cells_differ),
        ("only here", report.rows_here, report.cells_here),
        ("only there", report.rows_there, report.cells_there),
    ] {
        writeln!(out, "  {what:<14} {:>16} {:>18}", count(rows, "row"), count(cells, "cell"))?;
    }

    if report.expired > 0 {
        writeln!(out, "  {} there had expired, and count for nothing", count(report.expired, "cell"))?;
    }
    for found in &report.families {
        writeln!(out, "  family {}", family_kinds(found))?;
    }
    for found in &report.first {
        difference(found, out)?;
    }
    Ok(())
}

fn difference(found: &Difference, out: &mut dyn Write) -> Result<(), CliError> {
    let [here, there] =
        [&found.here, &found.there].map(|value| value.as_deref().map_or_else(|| "no cell".to_owned(), shown));
    let at = time(found.timestamp).unwrap_or_else(|| found.timestamp.to_string());
    let column = format!("{}:{}", found.family, shown(&found.qualifier));
    writeln!(out, "{} {column} @ {at}", shown(&found.key))?;
    writeln!(out, "  here   {}\n  there  {}", here, there)?;
    Ok(())
}

/// Bytes as a terminal shows them.
fn shown(bytes: &[u8]) -> String {
    let mut text = Vec::new();
    write_bytes(bytes, Length::Short, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}
