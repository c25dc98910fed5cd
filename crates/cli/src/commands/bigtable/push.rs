//! `tidetable push`: writes a table into Bigtable.

use std::io::Write;
use std::time::Instant;

use serde_json::json;
use tidetable_bigtable::push::{Push as BigtablePush, PushChoices, PushPlan};
use tidetable_runner::record::{PushBase, PushCounts};
use tidetable_runner::run::lock_named;
use tidetable_runner::{UlidIds, runtime};
use tidetable_store::{Ids, ulid_text};

use super::{client, target};
use crate::args::{Global, Output, Push};
use crate::commands::ranges::key_range;
use crate::commands::{clock, project_of_store, store};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::objects;
use crate::output::values::count;
use crate::output::{ResultRows, row, sentences};
use crate::signals::stop_on_signals;

/// Pushes the table, or shows the plan.
pub fn push(global: &Global, args: &Push) -> Result<(), CliError> {
    let store = store(global)?;
    let runtime = runtime()?;
    let stop = stop_on_signals()?;
    let push = BigtablePush {
        store: store.clone(),
        table: args.table.clone(),
        target: target(&args.to)?.table_or(&args.table).map_err(|error| CliError::Bigtable(error.into()))?,
        client: client(&args.service, runtime.handle())?,
        choices: PushChoices {
            range: key_range(args.prefix.as_deref(), args.start.as_deref(), args.end.as_deref())?,
            changed_since: args.changed_since,
            compare: args.compare,
            create: args.create,
            to_source: args.to_source,
        },
        rate: args.rate,
        workers: args.service.parallel.into(),
        name: ulid_text(UlidIds::default().next()),
        clock,
        stop: stop.clone(),
    };
    let project = project_of_store(global)?;
    // One push of a table into a target at a time.
    let _lock = match args.dry_run {
        true => None,
        false => Some(lock_named(&project, store.blobs(), &push.lock_name(), &push.name, &stop)?),
    };
    let mut rows = ResultRows::of(objects::PUSHED);
    let mut out = sentences(global.output);
    let mut choices = push.choices.clone();
    loop {
        let push = BigtablePush { choices: choices.clone(), ..push.clone() };
        let plan = push.plan(runtime.handle())?;
        let shows_plan = args.dry_run || (plan.creates() && !args.yes);
        if global.output == Output::Table {
            describe(&plan, &args.table, &mut out)?;
        } else {
            plan.notes.iter().for_each(|note| print_message(global, &format!("note: {note}")));
        }
        if shows_plan {
            if !args.dry_run {
                print_message(global, "nothing is written: add --yes to create it and push");
            }
            rows.push(result(&plan, &PushCounts::default(), 0.0));
            break;
        }
        let begun = Instant::now();
        let watch = |counts: &PushCounts| {
            let seconds = begun.elapsed().as_secs_f64();
            let rate = counts.cells as f64 / seconds.max(0.001);
            print_message(
                global,
                &format!("{}: {} written, {:.0} cells/s", args.table, count(counts.cells, "cell"), rate),
            );
        };
        let state = push.run(&plan, &watch, runtime.handle())?;
        let counts = if plan.is_done { PushCounts::default() } else { state.counts };
        let seconds = begun.elapsed().as_secs_f64();
        rows.push(result(&plan, &counts, seconds));
        if global.output == Output::Table {
            summary(&plan, &counts, seconds, &args.table, &mut out)?;
        }
        out.flush()?;
        // A push that went on may have been of an older version.
        if !plan.resumes || store.table(&args.table).latest_number()? == plan.version {
            break;
        }
        choices.compare = false;
        choices.changed_since = None;
    }
    if global.output != Output::Table {
        rows.write(global.output, &mut out)?;
    }
    out.flush()?;
    Ok(())
}

/// The word for what a version is compared with.
fn base(plan: &PushPlan) -> String {
    match plan.base {
        PushBase::Nothing => "all cells".to_owned(),
        PushBase::Version(version) => format!("changes since version {version}"),
        PushBase::Target => "differences from the cells there".to_owned(),
    }
}

fn describe(plan: &PushPlan, table: &str, out: &mut dyn Write) -> Result<(), CliError> {
    if plan.is_done && !plan.creates() {
        writeln!(out, "{} holds version {} of {table}: nothing to push", plan.target, plan.version)?;
        return Ok(());
    }
    writeln!(out, "{table}, version {}, into {}: {}", plan.version, plan.target, base(plan))?;
    if plan.creates_table {
        let parts = plan.splits.len() as u64 + 1;
        writeln!(out, "  creates the table, in {}", count(parts, "part"))?;
    }
    for (family, rule) in &plan.families {
        writeln!(out, "  creates family {family}: {rule}")?;
    }
    for note in &plan.notes {
        writeln!(out, "  note: {note}")?;
    }
    Ok(())
}

fn summary(
    plan: &PushPlan,
    counts: &PushCounts,
    seconds: f64,
    table: &str,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    if plan.is_done {
        return Ok(());
    }

    let rate = counts.cells as f64 / seconds.max(0.001);
    writeln!(
        out,
        "{table}: {} of {} written, {} deleted, in {seconds:.1} s ({rate:.0} cells/s)",
        count(counts.cells, "cell"),
        count(counts.rows, "row"),
        count(counts.deleted, "cell"),
    )?;
    if counts.repeated > 0 {
        writeln!(out, "  {} sent again after errors", count(counts.repeated, "row"))?;
    }
    Ok(())
}

fn result(plan: &PushPlan, counts: &PushCounts, seconds: f64) -> Vec<serde_json::Value> {
    let families: Vec<&str> = plan.families.iter().map(|(family, _)| family.as_str()).collect();
    row![
        plan.target.to_string(),
        plan.version,
        plan.before,
        base(plan),
        plan.creates_table,
        json!(families),
        counts.rows,
        counts.cells,
        counts.deleted,
        counts.requests,
        counts.repeated,
        seconds
    ]
}
