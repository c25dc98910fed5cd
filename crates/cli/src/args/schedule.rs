//! `tidetable schedule`.

use std::path::PathBuf;

use chrono_tz::Tz;
use clap::{Args, ValueEnum};

use super::parse::{Here, parse_time, parse_zone};

/// `tidetable schedule`
#[derive(Debug, Args)]
#[command(after_help = "\
Jobs are those of jobs/ with a `schedule`, which is meant in their `timezone`. Cron knows one time zone, the machine's: \
a job of another one is started in every hour, and asks whether it is due. Lines and units call `run JOB --catch-up`, \
which makes up for missed runs as `catch_up` of the job file says.

  tidetable schedule                                     lines to add with: crontab -e
  tidetable schedule --format systemd --write ~/.config/systemd/user
  systemctl --user daemon-reload && systemctl --user enable --now tidetable-JOB.timer")]
pub struct Schedule {
    /// The scheduler
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
    /// Write the units of systemd into this folder instead of printing them
    #[arg(long, value_name = "DIR", conflicts_with_all = ["check", "due"], value_parser = Here("a folder of units"))]
    pub write: Option<PathBuf>,
    /// Folder of the logs of jobs that cron runs [default: logs in the project's folder]
    #[arg(long, value_name = "DIR", value_parser = Here("a folder of logs"))]
    pub logs: Option<PathBuf>,
    /// Time zone that cron runs in [default: that of this machine]
    #[arg(long, value_name = "ZONE", value_parser = parse_zone)]
    pub cron_zone: Option<Tz>,
    /// List what runs in the next 7 days, and what was missed since the last run
    #[arg(long, conflicts_with = "due")]
    pub check: bool,
    /// Exit with 0 if the job is due in this minute, with 1 if not
    #[arg(long, value_name = "JOB")]
    pub due: Option<String>,
    /// The current time [default: the clock]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = parse_time)]
    pub now: Option<i64>,
}

/// A scheduler.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Lines of a crontab.
    #[default]
    Crontab,
    /// A service and a timer for each job.
    Systemd,
}
