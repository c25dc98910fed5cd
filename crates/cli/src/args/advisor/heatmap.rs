//! `tidetable heatmap`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tidetable_advisor::spread::parse_slice;

/// `tidetable heatmap`
#[derive(Debug, Args)]
#[command(after_help = "\
Row keys go down, in at most 1,000 buckets of equal count, and time goes to the right, in at most 720 slices. The terminal \
shows runs of both; --output json and csv have all of them. Brightness grows with the logarithm of the count: the legend \
gives its numbers.")]
pub struct Heatmap {
    /// The table
    pub table: String,
    /// What is counted
    #[arg(long, value_enum, default_value_t)]
    pub metric: HeatmapMetric,
    /// Width of the slices of time at least: 15m, 1h, 1d [default: the narrowest of which 720 suffice]
    #[arg(long, value_name = "WIDTH", value_parser = parse_slice)]
    pub slice: Option<i64>,
    /// Write a page of HTML, too: figures, heatmaps, queries and cost in one file that needs no network
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// What a heatmap counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum HeatmapMetric {
    /// Records: source rows that are still there.
    #[default]
    Writes,
    /// Cells, by their timestamps.
    Cells,
    /// Bytes of these cells, before compression.
    Bytes,
}
