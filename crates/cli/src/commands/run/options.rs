//! Converts the options of the command line to those of a run.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use chrono::NaiveDate;
use chrono_tz::Tz;
use tidetable_ingest::MIN_LOAD_MEMORY;
use tidetable_job::Project;
use tidetable_runner::run::{IfLocked, Only};
use tidetable_runner::{RunOptions, Stop, UlidIds};
use tidetable_store::{Ids, ulid_text};

use crate::args::{DEFAULT_MEMORY, Day, OnlyDays, RunDays, RunHow};
use crate::commands::clock;
use crate::commands::cluster::{Elsewhere, carrier, scheduler_of};
use crate::error::CliError;
use crate::place::writable;
use crate::signals::stop_on_signals;

/// How a run executes, whatever days it publishes. The default is that of a plan.
#[derive(Debug, Clone)]
pub struct ExecutionOptions {
    jobs: usize,
    fail_fast: bool,
    if_locked: IfLocked,
    /// Memory budget in bytes.
    memory: u64,
    /// The folder for temporary files.
    temp_dir: Option<PathBuf>,
    stop: Stop,
    /// The scheduler that the work goes to.
    on: Option<Elsewhere>,
}

impl Default for ExecutionOptions {
    fn default() -> Self {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        let (memory, stop) = (DEFAULT_MEMORY, Stop::default());
        Self { jobs, fail_fast: false, if_locked: IfLocked::Fail, memory, temp_dir: None, stop, on: None }
    }
}

impl ExecutionOptions {
    /// The default in this process, until `stop` is asked for.
    pub fn until(stop: Stop) -> Self {
        Self { stop, ..Self::default() }
    }

    /// Converts `args`, and installs handlers of SIGINT and SIGTERM that stop the run.
    ///
    /// # Errors
    /// If the memory budget is too small to load with, the folder for temporary files cannot be written, or a handler cannot be
    /// installed.
    pub fn from_args(args: &RunHow, project: &Project) -> Result<Self, CliError> {
        if args.memory < MIN_LOAD_MEMORY {
            return Err(CliError::MemoryTooSmall);
        }
        let defaults = Self::default();
        Ok(Self {
            jobs: args.jobs.unwrap_or(defaults.jobs).max(1),
            fail_fast: args.fail_fast,
            if_locked: args.if_locked,
            memory: args.memory,
            temp_dir: args.temp_dir.clone().map(writable).transpose()?,
            stop: stop_on_signals()?,
            on: scheduler_of(args.on.as_deref(), project),
        })
    }
}

/// The options of a run, with a new name for it. Its days are those of the time zone `zone`.
///
/// # Errors
/// If a day is outside the calendar, or `--from` is after `--to`.
pub fn options(args: &RunDays, zone: Tz, execution: &ExecutionOptions, ids: &UlidIds) -> Result<RunOptions, CliError> {
    let now = args.now.unwrap_or_else(clock);
    let run = ulid_text(ids.next());

    Ok(RunOptions {
        days: days(args, zone, now)?,
        only: args.only.as_ref().map(|states| states.iter().map(only_of).collect()),
        parts: None,
        select: args.select.clone(),
        force: args.force,
        now,
        clock,
        rebuild: args.rebuild,
        adopt: args.adopt,
        new_root: args.new_root,
        without: args.without.clone(),
        reread: Vec::new(),
        memory: execution.memory,
        temp_dir: execution.temp_dir.clone(),
        jobs: execution.jobs,
        fail_fast: execution.fail_fast,
        if_locked: execution.if_locked,
        stop: execution.stop.clone(),
        plan_only: false,
        #[cfg(feature = "bigtable")]
        pusher: Some(std::sync::Arc::new(crate::commands::bigtable::run::RunPusher)),
        #[cfg(not(feature = "bigtable"))]
        pusher: None,
        carrier: execution.on.as_ref().map(|on| carrier(on, &run)).transpose()?,
        run,
    })
}

fn only_of(days: &OnlyDays) -> Only {
    match days {
        OnlyDays::Failed => Only::Failed,
        OnlyDays::Missing => Only::Missing,
    }
}

/// The days from --day, --from and --to, inclusive; `None` if none was given. An open end is `NaiveDate::MIN` or `MAX`.
fn days(args: &RunDays, zone: Tz, now: i64) -> Result<Option<RangeInclusive<NaiveDate>>, CliError> {
    let [day, from, to] = [args.day, args.from, args.to].map(|day: Option<Day>| {
        day.map(|day| day.at(zone, now).ok_or(CliError::Usage("the day is outside the calendar"))).transpose()
    });
    let range = match (day?, from?, to?) {
        (Some(day), _, _) => day..=day,
        (None, None, None) => return Ok(None),
        (None, from, to) => from.unwrap_or(NaiveDate::MIN)..=to.unwrap_or(NaiveDate::MAX),
    };
    if range.is_empty() {
        return Err(CliError::Usage("--from is after --to: no day lies between them"));
    }
    Ok(Some(range))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_outside_the_calendar_are_refused() {
        let range = |day: Option<&str>, from: Option<&str>, to: Option<&str>| {
            let [day, from, to] = [day, from, to].map(|text| text.map(|text| text.parse().unwrap()));
            days(&RunDays { day, from, to, ..RunDays::default() }, Tz::UTC, 0)
        };
        let before = NaiveDate::from_ymd_opt(1969, 12, 31).unwrap();
        assert_eq!(range(None, None, None).unwrap(), None);
        assert_eq!(range(Some("-1d"), None, None).unwrap(), Some(before..=before));
        assert_eq!(range(None, Some("-1d"), None).unwrap(), Some(before..=NaiveDate::MAX));
        assert_eq!(range(None, None, Some("-1d")).unwrap(), Some(NaiveDate::MIN..=before));
        let far = Some("-4000000000d");
        for (day, from, to) in [(far, None, None), (None, far, None), (None, None, far)] {
            let error = range(day, from, to).unwrap_err();
            assert_eq!((error.to_string().as_str(), error.exit_code()), ("the day is outside the calendar", 2));
        }
    }
}
