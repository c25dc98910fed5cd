//! `tidetable run JOB --catch-up`: a run for each scheduled time to make up for, at its logical time.

use serde_json::json;
use tidetable_job::schedule::{done_until, minute_of, scheduled_times, to_run};
use tidetable_job::{Cron, Job, Project};
use tidetable_layout::time::DAY;
use tidetable_runner::record::Runs;
use tidetable_runner::{RunOptions, UlidIds, open_store};
use tidetable_store::{Ids, Store, ulid_text};

use super::one::run_one;
use crate::args::{Global, Output};
use crate::commands::root::is_not_lost;
use crate::diagnostics::{print_error, print_message};
use crate::error::CliError;
use crate::objects;
use crate::output::values::{count, local_time, time};
use crate::output::{ResultRows, row};

/// How far to search for the next scheduled time.
const AHEAD: i64 = 366 * DAY;

/// The schedule and state of a job.
struct CatchUp<'a> {
    job: &'a Job,
    cron: Cron,
    store: Store,
    /// The current time, microseconds since the epoch; scheduled times up to it are due.
    now: i64,
}

/// Runs `job` for the scheduled times that are due, or lists them. A failed run stops those after
/// it; unpublished days do not, since the next run tries them again.
pub(crate) fn catch_up(
    global: &Global,
    project: &Project,
    job: &Job,
    options: &RunOptions,
    dry_run: bool,
    ids: &UlidIds,
) -> Result<(), CliError> {
    let cron = job.cron().ok_or_else(|| CliError::NoSchedule { job: job.name.clone() })?;
    let due = CatchUp { job, cron, store: open_store(project)?, now: options.now };
    let scheduled_times = due.scheduled_times()?;
    if dry_run {
        return due.list(global, &scheduled_times);
    }
    if scheduled_times.is_empty() {
        is_not_lost(project)?;
        print_message(global, &due.nothing());
        return Ok(());
    }
    let mut in_part = None;
    for (at, moment) in scheduled_times.iter().enumerate() {
        // Another run may have done it meanwhile.
        if at > 0 && !due.scheduled_times()?.contains(moment) {
            print_message(global, &format!("{} is done already", due.shown(*moment)));
            continue;
        }
        let of = if scheduled_times.len() > 1 {
            format!(" ({} of {})", at + 1, scheduled_times.len())
        } else {
            String::new()
        };
        print_message(global, &format!("{} as of {}{of}", job.name, due.shown(*moment)));
        let later = scheduled_times.get(at + 1..).unwrap_or_default();
        let options = RunOptions { now: *moment, run: ulid_text(ids.next()), ..options.clone() };
        match run_one(global, project, job, &options, ids) {
            Ok(Some(_)) => {}
            // Another run holds the lock.
            Ok(None) => return Ok(()),
            Err(error @ (CliError::Partial { .. } | CliError::Checks { .. }))
                if !later.is_empty() && !options.fail_fast =>
            {
                in_part = Some(error.exit_code());
                print_error(global, error);
            }
            Err(error) => {
                due.tell_left(global, later);
                return Err(error);
            }
        }
    }
    match in_part {
        Some(code) => Err(CliError::InPart { code }),
        None => Ok(()),
    }
}

impl CatchUp<'_> {
    /// The times for which the job is to run, by the current records.
    fn scheduled_times(&self) -> Result<Vec<i64>, CliError> {
        let Self { job, cron, store, now } = self;
        let last = done_until(Runs::of(store.blobs().as_ref()), &job.name, *now)?;
        Ok(to_run(cron, job.timezone, job.catch_up, job.catch_up_window, last, *now))
    }

    /// A time in the time zone of the job.
    fn shown(&self, moment: i64) -> String {
        local_time(self.job.timezone, moment).unwrap_or_default()
    }

    /// The message that nothing is due, with the next time.
    fn nothing(&self) -> String {
        let next = scheduled_times(&self.cron, self.job.timezone, self.now, self.now.saturating_add(AHEAD));
        let next = next.first().map(|next| format!("; next is {}", self.shown(*next))).unwrap_or_default();
        format!("{} is not due, and has no missed run to make up for{next}", self.job.name)
    }

    fn list(&self, global: &Global, found: &[i64]) -> Result<(), CliError> {
        let mut rows = ResultRows::of(objects::MOMENTS);
        for moment in found {
            let why = if *moment >= minute_of(self.now) { "due" } else { "missed" };
            // JSON has all times in UTC.
            let time = if global.output == Output::Json { json!(time(*moment)) } else { json!(self.shown(*moment)) };
            rows.push(row![self.job.name, time, why]);
        }
        rows.print(global.output)?;
        if found.is_empty() {
            print_message(global, &self.nothing());
        }
        Ok(())
    }

    /// Reports the times that are skipped after a failure.
    fn tell_left(&self, global: &Global, left: &[i64]) {
        let (Some(first), Some(last)) = (left.first(), left.last()) else { return };
        let which = match left.len() {
            1 => self.shown(*first),
            number => {
                format!("{}, {} to {}", count(number as u64, "scheduled time"), self.shown(*first), self.shown(*last))
            }
        };
        print_message(global, &format!("not run after that: {which}; run --catch-up again makes up for all"));
    }
}
