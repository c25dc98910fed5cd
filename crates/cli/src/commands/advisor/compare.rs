//! `tidetable compare`: the layouts of a job, measured on its inputs.

use std::io::Write;

use serde_json::{Value, json};
use tidetable_advisor::comparison::{Compared, Comparison, Economy, Extent, compare as compare_trial, economy};
use tidetable_advisor::cost::Prices;
use tidetable_advisor::lint::{Report, lint_apart, survey_compared};
use tidetable_advisor::measure::Quantiles;
use tidetable_advisor::queries::{draw_specs, profiled_of};
use tidetable_advisor::trial::{Trial, TrialOptions};
use tidetable_job::workload::Workload;
use tidetable_page::layouts_page;
use tidetable_runner::run::source_storage;
use tidetable_runner::runtime;

use super::data::job_or_data;
use super::declared::Declared;
use super::economy::{answers_of, cost_of, show};
use super::findings::{linted, page_findings, show_errors};
use super::report::comparison_page;
use super::sections::Costed;
use super::{command_line, micros, outliers_text, pattern_names, rounded, share_text, shares};
use crate::activity::Activity;
use crate::args::{Compare, Global, Output};
use crate::commands::project;
use crate::error::CliError;
use crate::objects;
use crate::objects::{shaped, write_object};
use crate::output::values::{count, length};
use crate::output::{ResultRows, sentences};
use crate::page_file::PageFile;
use crate::signals::stop_on_signals;

/// Measures the layouts and shows them side by side.
pub fn compare(global: &Global, args: &Compare) -> Result<(), CliError> {
    let page = PageFile::of(args.report.as_ref())?;
    let project = project(global)?;
    let runtime = runtime()?;
    let job = job_or_data(global, &project, "compared", &args.job, None, runtime.handle())?;
    let declared = Declared::of(&job, &args.layouts)?;
    let candidates = declared.candidates(&job)?;
    let workload = args.queries.as_deref().map(Workload::load).transpose()?;
    let prices = Prices::load(args.prices.as_deref())?;
    let specs = match (&workload, candidates.first()) {
        (Some(workload), Some(first)) => draw_specs(&workload.queries, &first.schema)?,
        _ => Vec::new(),
    };
    let stop = stop_on_signals()?;
    let storage = source_storage(&project, &job, runtime.handle(), &stop)?;
    let profiled = profiled_of(&candidates, workload.as_ref());
    let options = TrialOptions { sample: args.sample, draws: specs.clone(), profiled, stop, ..TrialOptions::default() };
    let activity = Activity::begin(global, &format!("measuring layouts of {}", job.name));
    let trial = Trial::load(&job, &storage, &candidates, &options)?;
    let comparison = compare_trial(&trial, args.slice, Extent::ALL)?;
    let economy =
        workload.as_ref().map(|workload| economy(&trial, &comparison, workload, &specs, &prices)).transpose()?;
    drop(activity);
    let facts = survey_compared(&trial, &comparison, workload.as_ref().zip(economy.as_ref()));
    let reports = lint_apart(&job, &declared.measured(&comparison), &declared.text, Some(&facts), &prices);
    let errors: Vec<usize> = reports.iter().map(|report| report.refusals().count()).collect();
    let economy = economy.map(|economy| economy.with_errors(&errors));
    let sample = args.sample.map(|sample| sample.fraction);
    let objects = objects_of(&comparison, &reports, economy.as_ref(), sample, &prices);
    if let Some(file) = &page {
        let costed = workload.as_ref().zip(economy.as_ref());
        let costed = costed.map(|(workload, economy)| Costed { workload, economy, prices: &prices });
        let data = objects.iter().map(|object| shaped(object.clone(), objects::COMPARED)).collect();
        let title = format!("Layouts of {}", job.name);
        let mut page = comparison_page(title, command_line(), &comparison, sample, costed, data);
        page.findings = page_findings(&reports, &declared.path);
        file.write(global, &layouts_page(&page)?)?;
        if file.is_stdout() {
            return Ok(());
        }
    }
    let mut out = sentences(global.output);
    match global.output {
        Output::Json => objects.into_iter().try_for_each(|object| write_object(&mut out, object, objects::COMPARED))?,
        output => {
            table(&comparison, sample.is_some()).write(output, &mut out)?;
            if output == Output::Table {
                notes(&comparison, sample, &mut out)?;
                show_errors(&comparison, &reports, &mut out)?;
                if let Some(economy) = &economy {
                    show(economy, &comparison, &prices, &mut out)?;
                }
            }
        }
    }
    out.flush()?;
    Ok(())
}

/// What `--output json` prints.
fn objects_of(
    comparison: &Comparison,
    reports: &[Report],
    economy: Option<&Economy>,
    sample: Option<f64>,
    prices: &Prices,
) -> Vec<Value> {
    let with_economy = |(at, layout): (usize, &Compared)| {
        let mut object = object(comparison, layout, sample);
        object["findings"] = reports.get(at).map_or(json!([]), |report| report.findings.iter().map(linted).collect());
        object["queries"] = economy.map_or(json!([]), |economy| answers_of(economy, at));
        object["cost"] = economy.map_or(Value::Null, |economy| cost_of(economy, at, prices));
        object
    };
    comparison.layouts.iter().enumerate().map(with_economy).collect()
}

fn object(comparison: &Comparison, compared: &Compared, sample: Option<f64>) -> Value {
    let Compared { measured, spread, hottest_row, patterns, .. } = compared;
    let bytes = measured.bytes;
    let largest = &measured.largest_row;
    json!({
        "layout": measured.layout,
        "sample": sample,
        "factor": measured.factor,
        "source_rows": measured.source_rows,
        "rejected": measured.rejected,
        "rows": measured.rows,
        "cells": measured.cells,
        "bytes_as_cells": bytes.total(),
        "bytes": {
            "key": bytes.key,
            "family": bytes.family,
            "qualifier": bytes.qualifier,
            "value": bytes.value,
            "timestamp": bytes.timestamp,
        },
        "bytes_written": measured.bytes_written,
        "packed": { "snappy": measured.packed.snappy, "zstd": measured.packed.zstd },
        "cells_a_row": quantiles(measured.cells_a_row),
        "bytes_a_row": quantiles(measured.bytes_a_row),
        "largest_row": { "key": hex::encode(&largest.key), "cells": largest.cells, "bytes": largest.bytes },
        "versions_a_column": quantiles(measured.versions_a_column),
        "own_bytes": measured.own_bytes,
        "duplication": rounded(duplication(comparison, bytes.total())),
        "overwritten_rows": measured.overwritten.rows,
        "overwritten_cells": measured.overwritten.cells,
        "first": measured.seconds.map(|(first, _)| micros(first)),
        "last": measured.seconds.map(|(_, last)| micros(last)),
        "slice_seconds": comparison.axis.width,
        "top_share_10": shares(&spread.few),
        "top_share_100": shares(&spread.many),
        "hindsight_share_10": shares(&spread.hindsight),
        "hottest_row_share": shares(&spread.rows),
        "hottest_row": hottest_row.as_ref().map(|row| json!({
            "key": hex::encode(&row.key),
            "time": micros(row.second),
            "share": rounded(row.share),
            "rows": row.rows,
        })),
        "travel": rounded(spread.travel),
        "patterns": pattern_names(patterns),
    })
}

/// Bytes as a multiple of those of the smallest layout.
fn duplication(comparison: &Comparison, bytes: u64) -> f64 {
    let least = comparison.layouts.iter().map(|layout| layout.measured.bytes.total()).min().unwrap_or_default();
    bytes as f64 / least.max(1) as f64
}

fn quantiles(quantiles: Quantiles) -> Value {
    json!({ "p50": quantiles.p50, "p99": quantiles.p99, "max": quantiles.max })
}

fn table(comparison: &Comparison, sampled: bool) -> ResultRows {
    let mut rows = ResultRows::new(&[
        "layout",
        "rows",
        "cells",
        "bytes as cells",
        "packed",
        "cells a row",
        "largest row",
        "own bytes",
        "top share",
        "hottest row",
        "travel",
        "writes",
    ])
    .minor(&["writes", "travel", "cells a row", "hottest row", "packed", "largest row"]);
    for Compared { measured, spread, patterns, .. } in &comparison.layouts {
        let scaled = |count: u64| match sampled {
            // Of a sample only the first digits mean anything; all are shown, so that sums can be checked.
            true => json!(format!("~{}", (count as f64 * measured.factor).round())),
            false => json!(count),
        };
        let packed = [measured.packed.zstd, measured.packed.snappy].map(|size| match scaled(size) {
            Value::String(text) => text,
            number => number.to_string(),
        });
        let Quantiles { p50, max, .. } = measured.cells_a_row;
        rows.push(vec![
            json!(measured.layout),
            scaled(measured.rows),
            scaled(measured.cells),
            scaled(measured.bytes.total()),
            json!(packed.join("..")),
            json!(format!("{p50}/{max}")),
            json!(measured.largest_row.bytes),
            scaled(measured.own_bytes),
            json!(share_text(spread.few.quantile(500))),
            json!(share_text(spread.rows.quantile(500))),
            json!(format!("{:.2}", spread.travel)),
            json!(pattern_names(patterns).join(", ")),
        ]);
    }
    rows
}

/// What the columns are.
fn notes(comparison: &Comparison, sample: Option<f64>, out: &mut impl Write) -> Result<(), CliError> {
    let width = length(comparison.axis.width);
    let slices = |layout: &Compared| layout.spread.totals.iter().filter(|total| **total > 0).count();
    let written = comparison.layouts.iter().map(slices).max().unwrap_or_default();
    writeln!(
        out,
        "packed: zstd..Snappy, in blocks of 64 KiB. cells a row: median/most. largest row: bytes as cells. own bytes: of files here."
    )?;
    writeln!(
        out,
        "top share: of 10 ranges, median of {} of {width} with writes; hottest row: the same of one row.",
        count(written as u64, "slice")
    )?;
    if let Some(outliers) = comparison.outliers {
        writeln!(out, "{}", outliers_text(outliers))?;
    }
    if let Some(fraction) = sample {
        writeln!(
            out,
            "~ from a sample of {}% of the entities; a row, shares and travel are those of the sample.",
            fraction * 100.0
        )?;
    }
    let overwritten = comparison.layouts.iter().map(|it| &it.measured).filter(|it| it.overwritten.rows > 0);
    for measured in overwritten {
        writeln!(
            out,
            "{}: {} source rows lost {} cells to later ones with the same key, column and time.",
            measured.layout, measured.overwritten.rows, measured.overwritten.cells
        )?;
    }
    let rejected = comparison.layouts.iter().map(|it| &it.measured).filter(|it| it.rejected > 0);
    for measured in rejected {
        let rejected = count(measured.rejected, "rejected source row");
        writeln!(out, "{}: no figure includes {rejected}.", measured.layout)?;
    }
    Ok(())
}
