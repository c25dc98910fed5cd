//! Options of the commands that run jobs, or say what that would do.

use clap::{Args, ValueEnum};
use tidetable_runner::{IfLocked, Selected};

use super::parse::{Day, parse_if_locked, parse_memory, parse_selected, parse_time};

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
    /// Run what the schedule asked for since the last run: one run for each moment that `catch_up` of the job file makes
    /// up for, at its logical time, and for this minute if the job is due. If nothing is due, nothing is run
    #[arg(long, conflicts_with_all = ["all", "day", "from", "to", "only", "select", "force", "rebuild", "adopt"])]
    pub catch_up: bool,
    /// Only say what would be done, as `tidetable plan` does; with --catch-up, for which moments
    #[arg(long)]
    pub dry_run: bool,
    /// Which days, and what is done with them.
    #[command(flatten)]
    pub days: RunDays,
    /// How.
    #[command(flatten)]
    pub how: RunHow,
}

/// Which days a run looks at, and what it does with them.
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
    /// Publish the days though nothing changed
    #[arg(long)]
    pub force: bool,
    /// Build the job's tables anew from all their inputs (needed after a change of layout)
    #[arg(long)]
    pub rebuild: bool,
    /// Take an input that is gone out of the table for good; may be given more than once
    #[arg(long, value_name = "FILE")]
    pub without: Vec<String>,
    /// Take published files whose list is gone for those of this job, as they are
    #[arg(long)]
    pub adopt: bool,
    /// The logical time of the run [default: the clock]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_time)]
    pub now: Option<i64>,
}

/// How a run does what it does.
#[derive(Debug, Args)]
#[command(next_help_heading = "How it runs")]
pub struct RunHow {
    /// Days that are published side by side [default: one for each core]
    #[arg(long, value_name = "N")]
    pub jobs: Option<usize>,
    /// Try no other day after one that failed
    #[arg(long)]
    pub fail_fast: bool,
    /// If another run of the job goes on: fail, skip, wait, or wait=10m at most
    #[arg(long, value_name = "WHAT", default_value = "fail", value_parser = parse_if_locked)]
    pub if_locked: IfLocked,
    /// Memory that loading may take, about, such as 1GiB
    #[arg(long, value_name = "SIZE", default_value = "384MiB", value_parser = parse_memory)]
    pub memory: u64,
}

/// States of days.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OnlyDays {
    /// Those that could not be published when last tried.
    Failed,
    /// Those that were never published.
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
    /// The run, as `tidetable history` names it: its name, the beginning of it, `last`, or a job for its last run
    pub run: String,
    /// How.
    #[command(flatten)]
    pub how: RunHow,
}
