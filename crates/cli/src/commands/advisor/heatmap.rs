//! `tidetable heatmap`: row keys by time, of a loaded table.

use std::io::Write;

use serde_json::json;
use tidetable_advisor::AdvisorError;
use tidetable_advisor::heatmap::{Heatmap, Metric, StoredTable, patterns, stored_heatmap, stored_reads};
use tidetable_advisor::spread::{WriteLog, spread};
use tidetable_job::workload::{Query, Workload};
use tidetable_page::layouts_page;

use super::raster::{Canvas, draw};
use super::report::heatmap_page;
use super::{command_line, micros, pattern_names, rounded, share_text, shares};
use crate::activity::Activity;
use crate::args::{self, Global, HeatmapMetric, Output};
use crate::commands::{open_newest, store, warn_of_lost_windows};
use crate::error::CliError;
use crate::objects;
use crate::objects::{shaped, write_object};
use crate::output::values::{count, time};
use crate::output::{ResultRows, row, sentences};
use crate::page_file::PageFile;

/// What is counted, in words.
struct Counted {
    /// In JSON, and as a title.
    name: String,
    /// As a column of rows.
    column: &'static str,
    /// What one of it is.
    unit: &'static str,
    /// Draws, if it is a query.
    draws: Option<usize>,
}

/// Shows the heatmap of a table.
pub fn heatmap(global: &Global, args: &args::Heatmap) -> Result<(), CliError> {
    let file = PageFile::of(args.report.as_ref())?;
    let query = query(args)?;
    let snapshot = open_newest(&store(global)?, &args.table)?;
    warn_of_lost_windows(global, [&snapshot]);
    let table = StoredTable::new(snapshot)?;
    let activity = Activity::begin(global, &format!("counting cells of {}", args.table));
    let found = counted(&table, args, query.as_ref())?;
    drop(activity);
    let mut out = sentences(global.output);
    let Some((map, log, counted)) = found else {
        if global.output == Output::Table {
            writeln!(out, "table {} is empty: there is nothing to show", args.table)?;
        }
        return Ok(out.flush()?);
    };
    let (name, column, unit, draws) = (&counted.name, counted.column, counted.unit, counted.draws);
    let spread = spread(&log);
    let patterns = patterns(&spread);
    let found = pattern_names(&patterns);
    let counts: Vec<&[u64]> = (0..map.axis.slices).map(|slice| map.slice(slice)).collect();
    let mut object = json!({
        "table": args.table,
        "metric": name,
        "draws": draws,
        "rows": map.keys,
        "start": micros(map.axis.start),
        "slice_seconds": map.axis.width,
        "total": map.total(),
        "patterns": found,
        "top_share_10": shares(&spread.few),
        "travel": rounded(spread.travel),
        "buckets": map.buckets.iter().map(hex::encode).collect::<Vec<_>>(),
    });
    if let Some(file) = &file {
        // The page holds the matrix in its own form.
        let data = shaped(object.clone(), objects::HEATMAP);
        let page = heatmap_page((&args.table, table.layout(), name), command_line(), &map, (&spread, &patterns), data);
        file.write(global, &layouts_page(&page)?)?;
        if file.is_stdout() {
            return Ok(());
        }
    }
    match global.output {
        Output::Json => {
            object["counts"] = json!(counts);
            write_object(&mut out, object, objects::HEATMAP)?;
        }
        Output::Table => {
            writeln!(
                out,
                "{} of {}{}: {} in {} of keys and {} of {}s",
                name,
                args.table,
                draws.map(|draws| format!(", {}", count(draws as u64, "draw"))).unwrap_or_default(),
                count(u64::from(map.keys), "row"),
                count(map.buckets.len() as u64, "bucket"),
                count(map.axis.slices as u64, "slice"),
                map.axis.width
            )?;
            draw(&map, unit, Canvas::of_stdout(), &mut out)?;
            writeln!(
                out,
                "{}: top share {} of 10 ranges (median), hottest row {}, travel {:.2}",
                found.join(", "),
                share_text(spread.few.quantile(500)),
                share_text(spread.rows.quantile(500)),
                spread.travel
            )?;
        }
        output => cells(&map, column).write(output, &mut out)?,
    }
    out.flush()?;
    Ok(())
}

/// The query of `reads:QUERY`.
fn query(args: &args::Heatmap) -> Result<Option<Query>, CliError> {
    let HeatmapMetric::Reads(name) = &args.metric else { return Ok(None) };
    let Some(file) = &args.queries else {
        return Err(CliError::Usage("--metric reads:QUERY needs --queries FILE, which has the query"));
    };
    let mut queries = Workload::load(file)?.queries;
    let Some(at) = queries.iter().position(|query| query.name == *name) else {
        let known = queries.into_iter().map(|query| query.name).collect();
        return Err(AdvisorError::UnknownQuery { name: name.clone(), known }.into());
    };
    Ok(Some(queries.swap_remove(at)))
}

/// The map of a metric, the log whose patterns are named, and what it counts; `None` if the table is empty.
fn counted(
    table: &StoredTable,
    args: &args::Heatmap,
    query: Option<&Query>,
) -> Result<Option<(Heatmap, WriteLog, Counted)>, CliError> {
    if let Some(query) = query {
        let reads = stored_reads(table, query, args.slice)?;
        return Ok(reads.map(|reads| {
            let name = format!("reads:{}", query.name);
            (reads.map, reads.log, Counted { name, column: "reads", unit: "records", draws: Some(reads.draws) })
        }));
    }
    let (metric, column, unit) = match args.metric {
        HeatmapMetric::Cells => (Metric::Cells, "cells", "cells"),
        HeatmapMetric::Bytes => (Metric::Bytes, "bytes", "bytes"),
        HeatmapMetric::Writes | HeatmapMetric::Reads(_) => (Metric::Writes, "writes", "records"),
    };
    let found = stored_heatmap(table, metric, args.slice)?;
    Ok(found.map(|(map, log)| (map, log, Counted { name: column.to_owned(), column, unit, draws: None })))
}

/// The cells of the map that are not 0.
fn cells(map: &Heatmap, metric: &'static str) -> ResultRows {
    let mut rows = ResultRows::new(&["slice", "bucket", "first key", metric]);
    for slice in 0..map.axis.slices {
        let start = time(micros(map.axis.start_of(slice)));
        for (bucket, count) in map.slice(slice).iter().enumerate().filter(|(_, count)| **count > 0) {
            let key = map.buckets.get(bucket).map(|key| String::from_utf8_lossy(key).into_owned());
            rows.push(row![start, bucket, key, count]);
        }
    }
    rows
}
