//! `tidetable repair`: removes damaged SSTs from a table, and reports what is lost with them.

use std::io::Write;

use tidetable_layout::time::window_name;
use tidetable_runner::plan::{ranges, rows_of, up_to};
use tidetable_runner::record::NewestVersions;
use tidetable_runner::report::InputPlaces;
use tidetable_runner::{UlidIds, runtime};
use tidetable_upkeep::{RepairDone, RepairPlan, SstReport};

use super::verify::findings;
use crate::args::{Global, Output, Repair};
use crate::commands::{project_if_any, store};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::objects;
use crate::output::values::{bytes, count, time};
use crate::output::{ResultRows, bytes_value, row, sentences};

/// Removes damaged SSTs, or reports what that would lose.
pub fn repair(global: &Global, args: &Repair) -> Result<(), CliError> {
    let store = store(global)?;
    NewestVersions::default().check_latest(&store, &args.table)?;
    let project = project_if_any(global)?;

    let runtime = runtime()?;
    let newest = store.table(&args.table).latest().ok().flatten();
    let job = newest.map(|version| version.table.job).unwrap_or_default();
    let places = project.as_ref().map(|project| InputPlaces::new(project, &job, &args.table, runtime.handle()));
    let is_gone = |path: &str| places.as_ref().is_some_and(|places| places.is_gone(path));
    let plan = RepairPlan::new(&store, &args.table, &args.drop, is_gone)?;

    let acts = args.yes || !args.drop.is_empty();
    let done = if acts && !plan.is_empty() { Some(plan.run(&UlidIds::default())?) } else { None };
    if let Some(warning) = owed(&plan) {
        print_message(global, &warning);
    }

    let mut out = sentences(global.output);
    match global.output {
        Output::Table => tell(&args.table, &plan, done.as_ref(), global.verbose, &mut out)?,
        output => rows(&args.table, &plan, done.as_ref()).write(output, &mut out)?,
    }
    out.flush()?;
    Ok(())
}

/// The warning about windows that the next run cannot rebuild, because inputs of them are gone.
fn owed(plan: &RepairPlan) -> Option<String> {
    let (first, rest) = plan.gone.split_first()?;
    let (is, it) = if rest.is_empty() { ("is", "it") } else { ("are", "them") };
    let others =
        if rest.is_empty() { String::new() } else { format!(" and {}", count(rest.len() as u64, "more input")) };
    let windows: Vec<String> =
        plan.stuck().into_iter().map(|start| window_name(plan.version().table.spec.window, start)).collect();
    let windows: Vec<&str> = windows.iter().map(String::as_str).collect();
    let job = &plan.version().table.job;
    Some(format!(
        "warning: {first}{others} {is} missing or empty: window {} cannot be rebuilt, and its published days stay as they are, until you \
         put {it} back, restore a backup, or give up {} with `tidetable run {job} --without FILE`",
        ranges(&windows),
        up_to(rows_of(plan.version(), &plan.gone))
    ))
}

fn tell(
    table: &str,
    plan: &RepairPlan,
    done: Option<&RepairDone>,
    verbose: bool,
    out: &mut impl Write,
) -> Result<(), CliError> {
    for error in &plan.manifests {
        writeln!(out, "{table}: {error}")?;
    }
    if plan.is_empty() {
        writeln!(out, "{table}: no SST is damaged")?;
        return Ok(());
    }

    let ssts = count(plan.lost.len() as u64, "damaged SST");
    match done {
        Some(done) => writeln!(out, "{table}: {ssts} taken out, version {}", done.version)?,
        None => writeln!(out, "{table}: {ssts}; --yes removes them")?,
    }

    for file in &plan.lost {
        let sst = &file.sst;
        writeln!(out, "  {} of {}", sst.id, bytes(sst.bytes))?;
        findings(&file.damage, verbose).iter().try_for_each(|line| writeln!(out, "    {line}"))?;
        let (rows, cells) = (count(sst.rows, "row"), count(sst.cells, "cell"));
        writeln!(out, "    lost     up to {rows}, {cells}, of window {}", window(plan, file))?;
        writeln!(out, "    keys     {} to {}", sst.first_key.escape_ascii(), sst.last_key.escape_ascii())?;
        if let (Some(first), Some(last)) = (sst.min_timestamp.and_then(time), sst.max_timestamp.and_then(time)) {
            writeln!(out, "    times    {first} to {last}")?;
        }
    }

    writeln!(out, "  inputs to read again:")?;
    plan.inputs.iter().try_for_each(|input| writeln!(out, "    {}", input.path))?;

    if let Some(done) = done {
        done.kept.iter().try_for_each(|path| writeln!(out, "  a copy is kept: {path}"))?;
        let job = &plan.version().table.job;
        let stuck = plan.stuck().len() as u64;
        match stuck {
            0 => writeln!(out, "the next run rebuilds those windows from their inputs\n  tidetable run {job}")?,
            _ => writeln!(
                out,
                "the next run rebuilds what it can, and ends with exit code 4 as long as {} cannot be rebuilt\n  tidetable run {job}",
                count(stuck, "window")
            )?,
        }
    }
    Ok(())
}

fn rows(table: &str, plan: &RepairPlan, done: Option<&RepairDone>) -> ResultRows {
    let mut rows = ResultRows::of(objects::LOST_SSTS);
    for file in &plan.lost {
        let sst = &file.sst;
        let damage: Vec<String> = file.damage.iter().map(ToString::to_string).collect();
        let windows = file.windows();
        let inputs = plan.inputs.iter().filter(|input| input.touches().any(|start| windows.contains(&start)));

        rows.push(row![
            table,
            sst.id,
            window(plan, file),
            bytes_value(&sst.first_key),
            bytes_value(&sst.last_key),
            sst.min_timestamp.and_then(time),
            sst.max_timestamp.and_then(time),
            sst.rows,
            sst.cells,
            damage.join("; "),
            inputs.map(|input| input.path.as_str()).collect::<Vec<_>>(),
            done.map(|done| done.version)
        ]);
    }
    rows
}

/// The window, or the first and the last of several.
fn window(plan: &RepairPlan, file: &SstReport) -> String {
    let unit = plan.version().table.spec.window;
    match file.windows().as_slice() {
        [first, .., last] => format!("{} to {}", window_name(unit, *first), window_name(unit, *last)),
        windows => windows.iter().map(|start| window_name(unit, *start)).collect(),
    }
}
