//! `tidetable new`.

use std::path::PathBuf;

use chrono_tz::Tz;
use clap::Args;

use super::parse::{Here, parse_zone};

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
    #[arg(long, value_name = "ZONE", value_parser = parse_zone)]
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
