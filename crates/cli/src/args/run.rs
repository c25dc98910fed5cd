//! Options of the commands that run or plan jobs.

use std::path::PathBuf;
use std::sync::LazyLock;

use clap::{Args, ValueEnum};
use tidetable_runner::run::{IfLocked, Selected};

use super::parse::{Day, Here, parse_if_locked, parse_memory, parse_selected, parse_time};

/// Default of `--memory`, in bytes, and the memory budget of `tidetable plan`.
pub const DEFAULT_MEMORY: u64 = 384 << 20;

/// [`DEFAULT_MEMORY`] as help shows it and the command line parses it.
pub(crate) static DEFAULT_MEMORY_TEXT: LazyLock<String> = LazyLock::new(|| format!("{}MiB", DEFAULT_MEMORY >> 20));

/// `tidetable run`
#[derive(Debug, Args)]
#[command(override_usage = "tidetable run [OPTIONS] <JOB>\n       tidetable run [OPTIONS] --all")]
pub struct Run {
    /// Name of a job in jobs/, or path of a job file
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub job: Option<String>,
    /// All jobs of the project, each after those that it depends on
    #[arg(long)]
    pub all: bool,
    /// Run what the schedule asked for since the last run: one run for each missed time that `catch_up` of the job file
    /// selects, at that logical time, and one for this minute if the job is due
    #[arg(long, conflicts_with_all = ["all", "day", "from", "to", "only", "select", "force", "rebuild", "adopt"])]
    pub catch_up: bool,
    /// Only show what would be done, as `tidetable plan` does; with --catch-up, for which times
    #[arg(long)]
    pub dry_run: bool,
    /// Which days, and what is done with them.
    #[command(flatten)]
    pub days: RunDays,
    /// How.
    #[command(flatten)]
    pub how: RunHow,
}

/// The days of a run, and what it does with them.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Days")]
pub struct RunDays {
    /// Only this day: 2018-01-31, today, yesterday, or -3d
    #[arg(long, value_name = "DAY", allow_hyphen_values = true, conflicts_with_all = ["from", "to"])]
    pub day: Option<Day>,
    /// Only this day and later
    #[arg(long, value_name = "DAY", allow_hyphen_values = true)]
    pub from: Option<Day>,
    /// Only this day and earlier
    #[arg(long, value_name = "DAY", allow_hyphen_values = true)]
    pub to: Option<Day>,
    /// Of these days, only those that failed when last tried, or were never published
    #[arg(long, value_name = "STATE", value_enum, value_delimiter = ',')]
    pub only: Option<Vec<OnlyDays>>,
    /// Only this export (export:NAME) or table (table:NAME), and the tables that it needs; may be given more than once
    #[arg(long, value_name = "KIND:NAME", value_delimiter = ',', value_parser = parse_selected)]
    pub select: Vec<Selected>,
    /// Publish the days even if nothing changed
    #[arg(long)]
    pub force: bool,
    /// Rebuild the job's tables from all their inputs (needed after a change of layout); with --select table:NAME only that one
    #[arg(long)]
    pub rebuild: bool,
    /// Remove the rows of a missing input for good, or of those of a pattern; may be given more than once
    #[arg(long, value_name = "FILE")]
    pub without: Vec<String>,
    /// Adopt published files whose list is missing, as they are
    #[arg(long)]
    pub adopt: bool,
    /// Begin a new store where the one that runs wrote to is gone, or go on with another in its place
    #[arg(long)]
    pub new_root: bool,
    /// The logical time of the run [default: the clock]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_time)]
    pub now: Option<i64>,
}

/// Options on how a run works.
#[derive(Debug, Args)]
#[command(next_help_heading = "How it runs")]
pub struct RunHow {
    /// Days to publish at the same time [default: one for each core]
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Stop publishing after the first day that failed
    #[arg(long)]
    pub fail_fast: bool,
    /// If another run of the job is active: fail, skip, wait, or wait=10m at most
    #[arg(long, value_name = "WHAT", default_value = "fail", value_parser = parse_if_locked)]
    pub if_locked: IfLocked,
    /// Approximate memory budget of a load, such as 1GiB; at least 16MiB
    #[arg(long, value_name = "SIZE", default_value = DEFAULT_MEMORY_TEXT.as_str(), value_parser = parse_memory)]
    pub memory: u64,
    /// Folder for temporary files, which a load writes if its cells take more than that [default: the root if it is a folder,
    /// else the system's folder for temporary files]
    #[arg(long, value_name = "DIR", value_parser = Here("a folder for temporary files"))]
    pub temp_dir: Option<PathBuf>,
    /// Run the work on other machines: ballista://HOST:PORT of a scheduler, ballista+tls:// with TLS, or `local` for
    /// this process [default: `url` of `cluster` in tidetable.toml, or `local`]
    #[arg(long, value_name = "URL")]
    pub on: Option<String>,
}

/// States of days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnlyDays {
    /// Days whose last attempt failed.
    Failed,
    /// Days never published.
    Missing,
}

/// `tidetable plan`
#[derive(Debug, Args)]
#[command(override_usage = "tidetable plan [OPTIONS] <JOB>\n       tidetable plan [OPTIONS] --all")]
pub struct Plan {
    /// Name of a job in jobs/, or path of a job file
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub job: Option<String>,
    /// All jobs of the project, each after those that it depends on
    #[arg(long)]
    pub all: bool,
    /// Which days.
    #[command(flatten)]
    pub days: RunDays,
}

/// `tidetable retry`
#[derive(Debug, Args)]
pub struct Retry {
    /// The run, as `tidetable history` names it: its name, a prefix of it, `last`, or a job for its last run
    pub run: String,
    /// How.
    #[command(flatten)]
    pub how: RunHow,
}
