//! `tidetable heatmap`: row keys by time, of a loaded table.

use std::io::Write;

use serde_json::json;
use tidetable_advisor::heatmap::{Heatmap, Metric, StoredTable, patterns, stored_heatmap};
use tidetable_advisor::spread::spread;

use super::raster::{Canvas, draw};
use super::report::{self, heatmap_page};
use super::{command_line, hex, micros, pattern_names, rounded, share_text, shares};
use crate::args::{self, Global, HeatmapMetric, Output};
use crate::commands::store;
use crate::error::CliError;
use crate::objects;
use crate::objects::{shaped, write_object};
use crate::output::values::{count, time};
use crate::output::{ResultRows, row, stdout};

/// Shows the heatmap of a table.
pub fn heatmap(global: &Global, args: &args::Heatmap) -> Result<(), CliError> {
    let table = StoredTable::new(store(global)?.snapshot(&args.table)?)?;
    let (metric, name, unit) = match args.metric {
        HeatmapMetric::Writes => (Metric::Writes, "writes", "records"),
        HeatmapMetric::Cells => (Metric::Cells, "cells", "cells"),
        HeatmapMetric::Bytes => (Metric::Bytes, "bytes", "bytes"),
    };
    let mut out = stdout();
    let Some((map, log)) = stored_heatmap(&table, metric, args.slice)? else {
        if global.output == Output::Table {
            writeln!(out, "table {} is empty: there is nothing to show", args.table)?;
        }
        return Ok(out.flush()?);
    };
    let spread = spread(&log);
    let patterns = patterns(&spread);
    let found = pattern_names(&patterns);
    let counts: Vec<&[u64]> = (0..map.axis.slices).map(|slice| map.slice(slice)).collect();
    let mut object = json!({
        "table": args.table,
        "metric": name,
        "rows": map.keys,
        "start": micros(map.axis.start),
        "slice_seconds": map.axis.width,
        "total": map.total(),
        "patterns": found,
        "top_share_10": shares(&spread.few),
        "travel": rounded(spread.travel),
        "buckets": map.buckets.iter().map(|key| hex(key)).collect::<Vec<_>>(),
    });
    if let Some(path) = &args.report {
        // The page holds the matrix in its own form.
        let data = shaped(object.clone(), objects::HEATMAP);
        let page = heatmap_page((&args.table, name), command_line(), &map, (&spread, &patterns), data);
        report::write(&page, path)?;
    }
    match global.output {
        Output::Json => {
            object["counts"] = json!(counts);
            write_object(&mut out, object, objects::HEATMAP)?;
        }
        Output::Table => {
            writeln!(
                out,
                "{} of {}: {} in {} of keys and {} of {}s",
                name,
                args.table,
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
        output => cells(&map, name).write(output, &mut out)?,
    }
    out.flush()?;
    Ok(())
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
