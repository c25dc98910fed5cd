//! Converts the options of the command line to those of a run.

use chrono::NaiveDate;
use chrono_tz::Tz;
use tidetable_runner::run::{IfLocked, Only};
use tidetable_runner::{RunOptions, Stop, UlidIds};
use tidetable_store::load::LEAST_MEMORY;
use tidetable_store::{Ids, ulid_text};

use crate::args::{Day, OnlyDays, RunDays, RunHow};
use crate::commands::clock;
use crate::error::CliError;
use crate::signals::stop_on_signals;

/// Memory budget of a dry run, in bytes.
const DEFAULT_MEMORY: u64 = 384 << 20;

/// Options on how a run works.
#[derive(Debug, Clone)]
pub struct How {
    jobs: usize,
    fail_fast: bool,
    if_locked: IfLocked,
    memory: u64,
    stop: Stop,
}

impl Default for How {
    fn default() -> Self {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        Self { jobs, fail_fast: false, if_locked: IfLocked::Fail, memory: DEFAULT_MEMORY, stop: Stop::default() }
    }
}

impl How {
    pub fn new(args: &RunHow) -> Result<Self, CliError> {
        let usual = Self::default();
        Ok(Self {
            jobs: args.jobs.unwrap_or(usual.jobs).max(1),
            fail_fast: args.fail_fast,
            if_locked: args.if_locked,
            memory: args.memory,
            stop: stop_on_signals()?,
        })
    }
}

/// The options of a run, with days in the time zone `zone`.
pub fn options(args: &RunDays, zone: Tz, how: &How, ids: &UlidIds) -> Result<RunOptions, CliError> {
    let only = |only: &OnlyDays| match only {
        OnlyDays::Failed => Only::Failed,
        OnlyDays::Missing => Only::Missing,
    };
    if how.memory < LEAST_MEMORY {
        return Err(CliError::Usage(
            "--memory is too little to load with, which would write a file for each piece: write 16MiB or more",
        ));
    }
    let now = args.now.unwrap_or_else(clock);
    Ok(RunOptions {
        days: days(args, zone, now)?,
        only: args.only.as_ref().map(|states| states.iter().map(only).collect()),
        parts: None,
        select: args.select.clone(),
        force: args.force,
        now,
        clock,
        run: ulid_text(ids.next()),
        rebuild: args.rebuild,
        adopt: args.adopt,
        without: args.without.clone(),
        reread: Vec::new(),
        memory: how.memory,
        jobs: how.jobs,
        fail_fast: how.fail_fast,
        if_locked: how.if_locked,
        stop: how.stop.clone(),
        plan_only: false,
    })
}

fn days(args: &RunDays, zone: Tz, now: i64) -> Result<Option<std::ops::RangeInclusive<NaiveDate>>, CliError> {
    let at = |day: Option<Day>| day.and_then(|day| day.at(zone, now));
    let range = match (at(args.day), at(args.from), at(args.to)) {
        (Some(day), _, _) => day..=day,
        (None, None, None) => return Ok(None),
        (None, from, to) => from.unwrap_or(NaiveDate::MIN)..=to.unwrap_or(NaiveDate::MAX),
    };
    if range.is_empty() {
        return Err(CliError::Usage("--from is after --to: no day lies between them"));
    }
    Ok(Some(range))
}
