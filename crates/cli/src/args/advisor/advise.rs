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
Candidates follow from the queries: keys begin with the columns that a query fixes, the time comes behind these or last, in \
buckets from a single event to a month, and values are cells, columns or protobuf messages. All are ranked on a sample of \
50,000 rows at most, and the best five are measured on 300,000. What rules refuse at the declared scale is listed with the rule.")]
pub struct Advise {
    /// Name of a job in jobs/, path of a job file, or files of CSV, JSON lines, Parquet, Arrow or Avro: their paths, a directory, or a pattern
    #[arg(required = true)]
    pub from: Vec<String>,
    /// File of queries
    #[arg(long, value_name = "FILE", value_parser = Here("a file of queries"))]
    pub queries: PathBuf,
    /// File of prices, capacities and limits instead of those of this release
    #[arg(long, value_name = "FILE", value_parser = Here("a file of prices"))]
    pub prices: Option<PathBuf>,
    /// Maximum number of tables, 1 or 2: a table for each day, or of the newest rows, counts as one
    #[arg(long, value_name = "N", default_value_t = MOST_TABLES, value_parser = clap::value_parser!(u8).range(1..=2))]
    pub max_tables: u8,
    /// The share of rows on which all candidates are ranked, at most
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = parse_sample)]
    pub sample: Sample,
    /// Time zone of times without an offset in a data file [default: UTC]
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true, value_parser = parse_zone)]
    pub timezone: Option<Tz>,
    /// Write a job with the best layout
    #[arg(long, value_name = "JOB")]
    pub write: Option<String>,
    /// Also write an HTML page of the layouts measured last, like `compare --report`
    #[arg(long, value_name = "FILE", value_parser = Anywhere)]
    pub report: Option<Location>,
}

impl Advise {
    /// The advice for a new job made of a data file.
    pub fn for_new(job: &str, files: &[String], queries: &Path, timezone: Option<Tz>) -> Self {
        Self {
            from: files.to_owned(),
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
