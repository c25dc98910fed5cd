//! `tidetable advise`: layouts proposed for a workload.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::Path;

use tidetable_advisor::advice::{Advice, Asking, Explanation, Pair, advise as propose_layouts};
use tidetable_advisor::cost::Prices;
use tidetable_job::workload::Workload;
use tidetable_job::{Job, Project};
use tidetable_page::layouts_page;
use tidetable_runner::run::source_storage;
use tidetable_runner::runtime;

use super::data::job_or_data;
use super::economy::ORDER;
use super::report::{advice_page, refused_text, turns};
use super::sections::Costed;
use super::{command_line, rounded};
use crate::activity::Activity;
use crate::args::{Advise, Global, Output};
use crate::commands::project;
use crate::error::CliError;
use crate::objects;
use crate::objects::{shaped, write_object};
use crate::output::{ResultRows, row, sentences};
use crate::page_file::PageFile;
use crate::signals::stop_on_signals;
use serde_json::{Value, json};

/// Layouts that rules refuse which are shown.
const REFUSED_SHOWN: usize = 8;

/// Proposes layouts, and writes the best into a job.
pub fn advise(global: &Global, args: &Advise) -> Result<(), CliError> {
    let page = PageFile::of(args.report.as_ref())?;
    let project = project(global)?;
    let workload = Workload::load(&args.queries)?;
    let prices = Prices::load(args.prices.as_deref())?;
    let runtime = runtime()?;
    let stop = stop_on_signals()?;
    let from = args.from.join(", ");
    let activity = Activity::begin(global, &format!("measuring layouts for {from}"));
    let job = job_or_data(global, &project, "advised", &args.from, args.timezone, runtime.handle())?;
    if let Some(name) = &args.write {
        refuse_existing(&project, name)?;
    }
    let storage = source_storage(&project, &job, runtime.handle(), &stop)?;
    let advice = propose_layouts(Asking {
        project: &project,
        job: &job,
        storage: &storage,
        workload: &workload,
        prices: &prices,
        sample: args.sample,
        most_tables: usize::from(args.max_tables),
        stop: &stop,
    })?;
    drop(activity);
    let objects = objects_of(&advice, &prices);
    let mut shows = true;
    if let Some(file) = &page {
        let data = objects.iter().map(|object| shaped(object.clone(), objects::ADVICE)).collect();
        let costed = Costed { workload: &workload, economy: &advice.economy, prices: &prices };
        let title = format!("Layouts advised for {from}");
        file.write(global, &layouts_page(&advice_page(title, command_line(), &advice, costed, data))?)?;
        shows = !file.is_stdout();
    }
    let mut out = sentences(global.output);
    match global.output {
        _ if !shows => {}
        Output::Json => objects.into_iter().try_for_each(|object| write_object(&mut out, object, objects::ADVICE))?,
        output => {
            table(&advice).write(output, &mut out)?;
            if output == Output::Table {
                reasons(&advice, &workload, &prices, &mut out)?;
            }
        }
    }
    if let Some(name) = &args.write {
        let path = write(&project, &job, &advice, name)?;
        if global.output == Output::Table && shows {
            writeln!(out, "wrote {path}; next: tidetable run {name}")?;
        }
    }
    out.flush()?;
    Ok(())
}

fn place_of(project: &Project, name: &str) -> std::path::PathBuf {
    project.dir.join("jobs").join(name).join("job.toml")
}

fn refuse_existing(project: &Project, name: &str) -> Result<(), CliError> {
    let path = place_of(project, name);
    if !path.exists() {
        return Ok(());
    }
    let shown = format!("jobs/{name}/job.toml");
    Err(CliError::Folder { path: shown, source: ErrorKind::AlreadyExists.into() })
}

/// Writes a job with the winners; its path.
fn write(project: &Project, job: &Job, advice: &Advice, name: &str) -> Result<String, CliError> {
    let text = advice.job_of_winners(&job.text, name)?;
    let shown = format!("jobs/{name}/job.toml");
    let failed = |source| CliError::Folder { path: shown.clone(), source };
    let path = place_of(project, name);
    fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
    // Write and rename: a full disk leaves no half of a job.
    let aside = path.with_extension("new");
    fs::write(&aside, text).and_then(|()| fs::rename(&aside, &path)).map_err(failed)?;
    // Validates the written file.
    Job::load(project, name)?;
    Ok(shown)
}

/// What `--output json` prints: an object for each layout measured in full, then one for each pair.
fn objects_of(advice: &Advice, prices: &Prices) -> Vec<Value> {
    let layouts = (0..advice.comparison.layouts.len()).map(|at| layout_object(advice, at, prices));
    layouts.chain(advice.pairs.iter().map(|pair| pair_object(pair, prices))).collect()
}

fn layout_object(advice: &Advice, at: usize, prices: &Prices) -> Value {
    let (Some(layout), Some(cost), Some(score)) =
        (advice.comparison.layouts.get(at), advice.economy.costs.get(at), advice.economy.scores.get(at))
    else {
        return Value::Null;
    };
    json!({
        "layouts": [layout.measured.layout],
        "row_keys": [layout.row_key],
        "place": advice.place(at),
        "robust": rounded(score.robust),
        "month_low": cost.month.0,
        "month_high": cost.month.1,
        "nodes_high": cost.nodes.1,
        "busy_month": cost.busy_month,
        "rows_seen_per_second": cost.rows_seen(),
        "bytes_seen_per_second": cost.bytes_seen,
        "duplication": 1.0,
        "unservable": cost.unservable.as_ref().map(ToString::to_string),
        "currency": prices.currency,
        "prices_date": prices.date,
        "region": prices.region,
    })
}

fn pair_object(pair: &Pair, prices: &Prices) -> Value {
    json!({
        "layouts": pair.names,
        "row_keys": pair.row_keys,
        "place": 1,
        "robust": null,
        "month_low": null,
        "month_high": pair.month,
        "nodes_high": pair.nodes,
        "busy_month": null,
        "rows_seen_per_second": pair.loads.iter().map(|load| load.rows_seen).sum::<f64>(),
        "bytes_seen_per_second": pair.bytes_seen,
        "duplication": rounded(pair.duplication),
        "unservable": null,
        "currency": prices.currency,
        "prices_date": prices.date,
        "region": prices.region,
    })
}

fn table(advice: &Advice) -> ResultRows {
    let mut rows = ResultRows::new(&[
        "place",
        "layout",
        "row key",
        "a month",
        "busy",
        "nodes",
        "rows seen",
        "bytes seen",
        "robust",
    ]);
    // A chosen pair is first, and single layouts come behind it.
    if let Some(pair) = advice.pairs.first() {
        rows.push(row![
            1,
            pair.names.join(" + "),
            pair.row_keys.join(" + "),
            format!("{:.0}", pair.month),
            format!("{:.2}", pair.busy_month),
            pair.nodes as u64,
            format!("{:.1}", pair.loads.iter().map(|load| load.rows_seen).sum::<f64>()),
            pair.bytes_seen.round() as u64,
            ""
        ]);
    }
    let behind = advice.pairs.len().min(1);
    let mut order: Vec<usize> = (0..advice.comparison.layouts.len()).collect();
    order.sort_by_key(|at| advice.economy.scores.get(*at).map(|score| score.place));
    for at in order {
        let (Some(layout), Some(cost), Some(score)) =
            (advice.comparison.layouts.get(at), advice.economy.costs.get(at), advice.economy.scores.get(at))
        else {
            continue;
        };
        let month = match cost.unservable {
            Some(_) => "not served".to_owned(),
            None => format!("{:.0}..{:.0}", cost.month.0, cost.month.1),
        };
        rows.push(row![
            score.place + behind,
            layout.measured.layout,
            layout.row_key,
            month,
            format!("{:.2}", cost.busy_month),
            cost.nodes.1 as u64,
            format!("{:.1}", cost.rows_seen()),
            cost.bytes_seen.round() as u64,
            format!("{:.2}", score.robust)
        ]);
    }
    rows
}

/// The choice, what decided, and what would change it.
fn reasons(advice: &Advice, workload: &Workload, prices: &Prices, out: &mut impl Write) -> Result<(), CliError> {
    writeln!(out, "{ORDER}")?;
    let Explanation { choice, facts, order, warnings, method } = advice.explain(workload, prices);
    writeln!(out, "{choice}")?;
    facts.iter().try_for_each(|fact| writeln!(out, "  {fact}"))?;
    writeln!(out, "{order}")?;
    warnings.iter().try_for_each(|warning| writeln!(out, "warning: {warning}"))?;
    if let Some(score) = advice.economy.scores.get(advice.best()).filter(|_| advice.pairs.is_empty()) {
        writeln!(
            out,
            "it stays the best in {:.0} % of the changed workloads (a query or the writes times 10, a query left out, rows kept 10 times as long).",
            score.robust * 100.0
        )?;
    }
    for turn in turns(&advice.comparison, &advice.economy) {
        writeln!(out, "  {turn}")?;
    }
    for refused in advice.refused.iter().take(REFUSED_SHOWN) {
        writeln!(out, "{}", refused_text(refused))?;
    }
    if let Some(more) = advice.refused.len().checked_sub(REFUSED_SHOWN).filter(|more| *more > 0) {
        writeln!(out, "not chosen: {more} more that rules refuse")?;
    }
    writeln!(out, "{method}; list prices of {} ({}, {}).", prices.region, prices.date, prices.currency)?;
    Ok(())
}
