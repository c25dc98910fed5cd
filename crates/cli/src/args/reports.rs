//! Commands that report: on runs, tables and inputs.

use std::path::PathBuf;

use clap::Args;
use tidetable_source::Location;

use super::parse::{Anywhere, Day, Here, parse_age, parse_time};
use super::run::RunHow;

/// `tidetable status`
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes with --fresh: 0 all jobs are fresh, 1 one is stale.\n\nA job is stale if its last good run, or its \
    newest day, is older than that. The newest day is that of the export furthest behind; without exports, the newest with \
    events in its tables. The age of a day counts from its end."
)]
pub struct Status {
    /// Only these jobs
    pub jobs: Vec<String>,
    /// Fail if a job is older than this: 26h, 2d or 90m
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    pub fresh: Option<i64>,
    /// The logical time for ages [default: the clock]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_time)]
    pub now: Option<i64>,
}

/// `tidetable report`
#[derive(Debug, Args)]
#[command(
    after_help = "A day is late if a run after its end could have published it and did not. The page is one file and needs no \
    network."
)]
pub struct Report {
    /// The job
    pub job: String,
    /// Also write a page into this file; an existing one is replaced. - is standard output
    #[arg(long, value_name = "FILE", value_parser = Anywhere)]
    pub report: Option<Location>,
}

/// `tidetable history`
#[derive(Debug, Args)]
pub struct History {
    /// Only runs of this job
    pub job: Option<String>,
    /// Show one run in full: its name, a prefix of it, `last`, or a job for its last run
    #[arg(long, value_name = "RUN", conflicts_with_all = ["job", "since", "failed"])]
    pub run: Option<String>,
    /// Only runs that began since then: a time in RFC 3339, or an age such as 7d
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    pub since: Option<Since>,
    /// Only runs that did not end well
    #[arg(long)]
    pub failed: bool,
    /// At most this many runs, the newest; 0 for all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
}

/// An instant or an age, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// Since the epoch.
    At(i64),
    /// Age.
    Ago(i64),
}

/// `tidetable lineage`
#[derive(Debug, Args)]
#[command(
    override_usage = "tidetable lineage [OPTIONS] <NAME> [DAY]\n       tidetable lineage [OPTIONS] --input <FILE>\n       tidetable lineage [OPTIONS] --run <RUN>"
)]
pub struct Lineage {
    /// A table, an export, or a published part of one
    #[arg(required_unless_present_any = ["input", "run"], conflicts_with_all = ["input", "run"])]
    pub name: Option<String>,
    /// Only this day: 2018-01-31, today, yesterday, or -3d
    #[arg(allow_hyphen_values = true, conflicts_with_all = ["input", "run"])]
    pub day: Option<Day>,
    /// Show what was made from this input: its path as the job sees it, or the end of it
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    pub input: Option<String>,
    /// Show what this run loaded and published, unless replaced since: its name, a prefix of it, `last`, or a job for
    /// its last run
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
}

/// `tidetable rejects`
#[derive(Debug, Args)]
#[command(
    after_help = "--output csv writes the rows as in their inputs, with the header: fix them, and put the file where the job \
    reads. Then remove the rows from the first file, or they are rejected again."
)]
pub struct Rejects {
    /// The job
    pub job: String,
    /// Rows of this run: its name, a prefix of it, or `last` [default: the last that has some]
    #[arg(long, value_name = "RUN")]
    pub run: Option<String>,
    /// Only rows of this input
    #[arg(long, value_name = "FILE")]
    pub file: Option<String>,
    /// At most this many rows in a table; 0 for all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub limit: usize,
}

/// `tidetable replay`
#[derive(Debug, Args)]
pub struct Replay {
    /// The run, as `tidetable history` names it: its name, a prefix of it, `last`, or a job for its last run
    pub run: String,
    /// The logical time of the new run [default: the clock]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_time)]
    pub now: Option<i64>,
    /// Remove the rows of a missing input for good, or of those of a pattern; may be given more than once
    #[arg(long, value_name = "FILE")]
    pub without: Vec<String>,
    /// How.
    #[command(flatten)]
    pub how: RunHow,
}

fn parse_since(text: &str) -> Result<Since, String> {
    parse_age(text)
        .map(Since::Ago)
        .or_else(|_| parse_time(text).map(Since::At))
        .map_err(|_| "write an age, as in 7d, or a time, as in 2018-01-31T01:15:00Z".to_owned())
}

/// `tidetable describe`
#[derive(Debug, Args)]
pub struct Describe {
    /// The table
    pub table: String,
    /// Also write a page into this file; an existing one is replaced. - is standard output
    #[arg(long, value_name = "FILE", value_parser = Anywhere)]
    pub report: Option<Location>,
}

/// `tidetable inspect`
#[derive(Debug, Args)]
pub struct Inspect {
    /// An SST
    #[arg(value_parser = Here("an SST to inspect"))]
    pub file: PathBuf,
}

/// `tidetable proto`
#[derive(Debug, Args)]
pub struct Proto {
    /// The table
    pub table: String,
}
