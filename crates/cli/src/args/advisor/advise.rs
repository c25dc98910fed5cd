//! `tidetable advise`.

use std::path::{Path, PathBuf};

use chrono_tz::Tz;
use clap::Args;
use tidetable_advisor::trial::Sample;
use tidetable_source::Location;

use super::compare::parse_sample;
use crate::args::parse::{Anywhere, Here, parse_zone};

/// Most tables unless the command line says otherwise.
const MOST_TABLES: u8 = 2;
/// The part of the entities by which candidates are ranked unless it says otherwise.
const SAMPLE: Sample = Sample { fraction: 0.1 };

/// `tidetable advise`
#[derive(Debug, Args)]
#[command(after_help = "\
Candidates are the orders of the key columns, with the time after or before them, in buckets from a single event to all time, \
and values as cells, columns or protobuf messages. All are measured on a sample, and the best five in full.")]
pub struct Advise {
    /// Name of a job in jobs/, path of a job file, or a CSV or Parquet file
    pub from: String,
    /// File of queries
    #[arg(long, value_name = "FILE", value_parser = Here("a file of queries"))]
    pub queries: PathBuf,
    /// File of prices, capacities and limits instead of those of this release
    #[arg(long, value_name = "FILE", value_parser = Here("a file of prices"))]
    pub prices: Option<PathBuf>,
    /// Maximum number of tables for the rows: 1 or 2
    #[arg(long, value_name = "N", default_value_t = MOST_TABLES, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub max_tables: u8,
    /// The share of entities on which all candidates are ranked
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = parse_sample)]
    pub sample: Sample,
    /// Time zone of times without an offset in a data file [default: UTC]
    #[arg(long, value_name = "ZONE", value_parser = parse_zone)]
    pub timezone: Option<Tz>,
    /// Write a job with the best layout
    #[arg(long, value_name = "JOB")]
    pub write: Option<String>,
    /// Also write an HTML page of the layouts measured in full, like `compare --report`
    #[arg(long, value_name = "FILE", value_parser = Anywhere)]
    pub report: Option<Location>,
}

impl Advise {
    /// The advice for a new job made of a data file.
    pub fn for_new(job: &str, file: &str, queries: &Path, timezone: Option<Tz>) -> Self {
        Self {
            from: file.to_owned(),
            queries: queries.to_owned(),
            prices: None,
            max_tables: MOST_TABLES,
            sample: SAMPLE,
            timezone,
            write: Some(job.to_owned()),
            report: None,
        }
    }
}
