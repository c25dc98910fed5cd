//! `tidetable new`.

use chrono_tz::Tz;
use clap::Args;

use super::parse::parse_zone;

/// `tidetable new`
#[derive(Debug, Args)]
#[command(after_help = "\
Looks at the first 32 MiB of the file: how it is written, the types of its columns, which of them is the time and which
name what the readings are of. Writes jobs/JOB/job.toml with the reasons as comments, and the SQL of what is published: a
table a day, a month, or one of all rows. A file without times becomes a reference table.")]
pub struct New {
    /// Name of the new job
    pub job: String,
    /// CSV (.csv, .tsv, .txt, also with .gz, .zst or .zip) or Parquet (.parquet) file: a path or a URL
    #[arg(long, value_name = "FILE")]
    pub from: String,
    /// Time zone of times that are written without an offset, and of days [default: UTC]
    #[arg(long, value_name = "ZONE", value_parser = parse_zone)]
    pub timezone: Option<Tz>,
    /// Write over a job that is there
    #[arg(long)]
    pub force: bool,
    /// Only show what would be written
    #[arg(long, conflicts_with = "force")]
    pub stdout: bool,
}
