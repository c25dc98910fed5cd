//! `tidetable schedule`: crontab lines, systemd units, and due jobs.

pub(crate) mod crontab;
pub(crate) mod entry;
pub(crate) mod systemd;

use std::io::Write;

use chrono_tz::Tz;
use serde_json::json;
use tidetable_job::schedule::{done_until, is_due, minute_of, missed, scheduled_times, to_run};
use tidetable_job::{Job, Project};
use tidetable_layout::time::DAY;
use tidetable_runner::open_store;
use tidetable_runner::record::Runs;

use super::{named_root_is_there, project};
use crate::args::{Format, Global, Output, Schedule};
use crate::commands::clock;
use crate::error::CliError;
use crate::objects;
use crate::output::values::{local_time, time};
use crate::output::{ResultRows, row, stdout};
use entry::{Invocation, Scheduled};

/// Days that `--check` looks ahead.
const AHEAD: i64 = 7 * DAY;
/// Most times of a job in a table.
const SHOWN: usize = 14;

/// Prints lines or units, or what is due.
pub fn schedule(global: &Global, args: &Schedule) -> Result<(), CliError> {
    let project = project(global)?;
    let now = args.now.unwrap_or_else(clock);
    if let Some(name) = &args.due {
        let job = Job::load(&project, name)?;
        let cron = job.cron().ok_or_else(|| CliError::NoSchedule { job: name.clone() })?;
        return if is_due(&cron, job.timezone, now) { Ok(()) } else { Err(CliError::NotDue) };
    }
    let jobs = scheduled(&project)?;
    if args.check {
        named_root_is_there(global)?;
        return check(global, &project, &jobs, now);
    }
    let invocation = invocation(global, &project, args)?;
    let mut out = stdout();
    match (args.format, &args.write) {
        (Format::Crontab, None) => {
            let cron_zone = args.cron_zone.or_else(machine_zone);
            write!(out, "{}", crontab::lines(&jobs, &invocation, cron_zone, now))?;
        }
        (Format::Crontab, Some(_)) => return Err(CliError::Usage("--write goes with --format systemd")),
        (Format::Systemd, None) => {
            for (name, text) in systemd::units(&jobs, &invocation) {
                writeln!(out, "# {name}\n{text}")?;
            }
        }
        (Format::Systemd, Some(dir)) => {
            let failed = |source| CliError::Folder { path: dir.display().to_string(), source };
            std::fs::create_dir_all(dir).map_err(failed)?;
            for (name, text) in systemd::units(&jobs, &invocation) {
                std::fs::write(dir.join(&name), text).map_err(failed)?;
                writeln!(out, "wrote {}", dir.join(name).display())?;
            }
        }
    }
    out.flush()?;
    Ok(())
}

/// The jobs of the project with a schedule. An invalid job file is an error, since the job would not run.
fn scheduled(project: &Project) -> Result<Vec<Scheduled>, CliError> {
    let mut found = Vec::new();
    for name in project.jobs() {
        let job = Job::load(project, &name)?;
        if let Some((cron, written)) = job.cron().zip(job.schedule.clone()) {
            found.push(Scheduled { job, written, cron });
        }
    }
    Ok(found)
}

fn invocation(global: &Global, project: &Project, args: &Schedule) -> Result<Invocation, CliError> {
    let binary =
        std::env::current_exe().map_err(|source| CliError::File { path: "this program".to_owned(), source })?;
    let logs = match &args.logs {
        Some(given) => std::path::absolute(given)
            .map_err(|source| CliError::Folder { path: given.display().to_string(), source })?,
        None => project.dir.join("logs"),
    };
    Ok(Invocation {
        binary: binary.display().to_string(),
        folder: project.dir.display().to_string(),
        root: global.root.as_ref().map(|_| project.root.clone()),
        logs: logs.display().to_string(),
    })
}

/// The time zone of the machine, if known.
fn machine_zone() -> Option<Tz> {
    iana_time_zone::get_timezone().ok()?.parse().ok()
}

/// Lists scheduled and missed runs.
fn check(global: &Global, project: &Project, jobs: &[Scheduled], now: i64) -> Result<(), CliError> {
    let store = open_store(project)?;
    let runs = Runs::of(store.blobs().as_ref());
    let mut rows = ResultRows::of(objects::SCHEDULED);
    for Scheduled { job, cron, .. } in jobs {
        let zone = job.timezone;
        let shown = |moment: i64| {
            // JSON has all times in UTC.
            if global.output == Output::Json {
                return json!(time(moment));
            }
            json!(local_time(zone, moment))
        };
        let before = runs.last(&job.name)?;
        let done = done_until(runs, &job.name, now)?;
        let due = to_run(cron, zone, job.catch_up, job.catch_up_window, done, now);
        let mut gone = missed(cron, zone, job.catch_up_window, done, now);
        gone.extend(due.iter().filter(|moment| !gone.contains(moment)).copied().collect::<Vec<_>>());
        let mut list = |moments: &[i64], what: &dyn Fn(usize) -> String| {
            let short = if global.output == Output::Table { SHOWN } else { usize::MAX };
            for (at, moment) in moments.iter().enumerate().take(short) {
                rows.push(row![job.name, shown(*moment), what(at)]);
            }
            if moments.len() > short {
                rows.push(row![job.name, (), format!("and {} more", moments.len() - short)]);
            }
        };
        if let Some(run) = before {
            let outcome = run.outcome.name();
            list(&[run.now], &|_| format!("last run: {}", outcome));
        }
        list(&gone, &|at| match gone.get(at) {
            Some(moment) if due.contains(moment) && *moment >= minute_of(now) => "due now".to_owned(),
            Some(moment) if due.contains(moment) => "missed, to be made up".to_owned(),
            _ => "missed".to_owned(),
        });
        list(&scheduled_times(cron, zone, now, now.saturating_add(AHEAD)), &|_| "to run".to_owned());
    }
    let mut out = stdout();
    if jobs.is_empty() && global.output == Output::Table {
        writeln!(out, "no job of {} has a `schedule`", project.dir.display())?;
    } else {
        rows.write(global.output, &mut out)?;
    }
    out.flush()?;
    Ok(())
}
