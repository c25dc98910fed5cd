//! `tidetable heatmap`.

use std::path::PathBuf;

use clap::Args;
use tidetable_advisor::spread::parse_slice;
use tidetable_source::Location;

use crate::args::parse::{Anywhere, Here};

/// `tidetable heatmap`
#[derive(Debug, Args)]
#[command(after_help = "\
Row keys go down, in at most 1,000 buckets of equal count, and time goes to the right, in at most 720 slices. The terminal \
shows runs of both; --output json and csv have all of them. Brightness grows with the logarithm of the count: the legend \
gives its numbers.

--metric: writes (source rows that are still there), cells, bytes (of these cells, before compression), or reads:QUERY with a \
query of --queries: the source rows in the key ranges of each of its draws, at the time at which they were written. Parameters \
that are drawn come from the records of the table.")]
pub struct Heatmap {
    /// The table
    pub table: String,
    /// What is counted: writes, cells, bytes or reads:QUERY
    #[arg(long, value_name = "METRIC", default_value = "writes", value_parser = parse_metric)]
    pub metric: HeatmapMetric,
    /// File of queries, for --metric reads:QUERY
    #[arg(long, value_name = "FILE", value_parser = Here("a file of queries"))]
    pub queries: Option<PathBuf>,
    /// Width of the slices of time at least: 15m, 1h, 1d [default: the narrowest that gives at most 720]
    #[arg(long, value_name = "WIDTH", value_parser = parse_slice)]
    pub slice: Option<i64>,
    /// Also write an HTML page: figures, heatmaps, queries and cost in one file that needs no network
    #[arg(long, value_name = "FILE", value_parser = Anywhere)]
    pub report: Option<Location>,
}

/// What a heatmap counts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum HeatmapMetric {
    /// Records: source rows that are still there.
    #[default]
    Writes,
    /// Cells, by their timestamps.
    Cells,
    /// Bytes of these cells, before compression.
    Bytes,
    /// Records that the query of this name reads.
    Reads(String),
}

/// `writes`, `cells`, `bytes` or `reads:one_day`.
fn parse_metric(text: &str) -> Result<HeatmapMetric, String> {
    match text.split_once(':') {
        None if text == "writes" => Ok(HeatmapMetric::Writes),
        None if text == "cells" => Ok(HeatmapMetric::Cells),
        None if text == "bytes" => Ok(HeatmapMetric::Bytes),
        Some(("reads", query)) if !query.is_empty() => Ok(HeatmapMetric::Reads(query.to_owned())),
        _ => Err("write writes, cells, bytes, or reads: and the name of a query, as in reads:one_day".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_have_a_query() {
        assert_eq!(parse_metric("writes"), Ok(HeatmapMetric::Writes));
        assert_eq!(parse_metric("reads:a:b"), Ok(HeatmapMetric::Reads("a:b".to_owned())));
        for wrong in ["", "reads", "reads:", "write", "writes:a", "cells:"] {
            assert!(parse_metric(wrong).is_err(), "{wrong}");
        }
    }
}
