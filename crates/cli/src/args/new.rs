//! `tidetable new` and `tidetable try`.

use std::path::PathBuf;

use chrono_tz::Tz;
use clap::Args;
use tidetable_source::Location;

use super::parse::{Anywhere, Here, parse_memory, parse_zone};

/// `tidetable new`
#[derive(Debug, Args)]
#[command(after_help = "\
Reads the first 32 MiB of the file, or the beginnings of several, to find its format, the types of its columns, the event time, and the entity of the \
readings. Writes jobs/JOB/job.toml with the reasons as comments, and the SQL of an export: per day, per month, or of all \
rows. A file without times becomes a reference table.")]
pub struct New {
    /// Name of the new job
    pub job: String,
    /// CSV, JSON lines, Parquet, Arrow or Avro file, also with .gz or .zst: a path or a URL; or a table of Bigtable:
    /// projects/P/instances/I/tables/T
    ///
    /// Several files, a directory, or a pattern: all files are read by one job
    #[arg(long, value_name = "FILE", required = true, num_args = 1..)]
    pub from: Vec<String>,
    /// Time zone of times that are written without an offset, and of days [default: UTC]
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true, value_parser = parse_zone)]
    pub timezone: Option<Tz>,
    /// Choose the layout by a file of queries, as `advise --write` does
    #[arg(long, value_name = "FILE", conflicts_with_all = ["force", "stdout"], value_parser = Here("a file of queries"))]
    pub queries: Option<PathBuf>,
    /// Overwrite an existing job
    #[arg(long)]
    pub force: bool,
    /// Only show what would be written
    #[arg(long, conflicts_with = "force")]
    pub stdout: bool,
}

/// `tidetable try`
#[derive(Debug, Args)]
#[command(after_help = "\
Proposes a job as `tidetable new` does, loads all of it into a store of its own in the system's folder for temporary files, and removes that \
again. What stays is the page. Nothing is written beside the files.")]
pub struct Try {
    /// CSV, JSON lines, Parquet, Arrow or Avro files, a directory, or a pattern: paths, or URLs such as https://.. of a file
    /// and s3://bucket/in/*.csv
    #[arg(value_name = "FILE", required = true, num_args = 1..)]
    pub files: Vec<String>,
    /// Time zone of times that are written without an offset [default: UTC]
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true, value_parser = parse_zone)]
    pub timezone: Option<Tz>,
    /// Largest size of the files together, as they are stored
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_memory)]
    pub limit: u64,
    /// Write the page into this file [default: tidetable-NAME.html in the system's folder for temporary files]
    #[arg(long, value_name = "FILE", value_parser = Anywhere)]
    pub report: Option<Location>,
    /// Open no browser; without a terminal and a screen none is opened
    #[arg(long)]
    pub no_open: bool,
}
