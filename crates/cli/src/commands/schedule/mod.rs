//! `tidetable schedule`: crontab lines, systemd units, and due jobs.

pub(crate) mod crontab;
pub(crate) mod entry;
pub(crate) mod systemd;

use std::io::Write;
use std::path::{Path, PathBuf};

use chrono_tz::Tz;
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
use crate::output::{ResultRows, row, sentences, stdout};
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
            for path in write_units(dir, systemd::units(&jobs, &invocation))? {
                writeln!(out, "wrote {}", path.display())?;
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
        let before = runs.last(&job.name)?;
        let done = done_until(runs, &job.name, now)?;

        let due = to_run(cron, zone, job.catch_up, job.catch_up_window, done, now);
        let mut gone = missed(cron, zone, job.catch_up_window, done, now);
        gone.extend(due.iter().filter(|moment| !gone.contains(moment)).copied().collect::<Vec<_>>());

        if let Some(run) = before {
            list(&mut rows, job, global.output, &[(run.now, &format!("last run: {}", run.outcome.name()))]);
        }
        let gone: Vec<(i64, &str)> = gone
            .into_iter()
            .map(|moment| match due.contains(&moment) {
                true if moment >= minute_of(now) => (moment, "due now"),
                true => (moment, "missed, to be made up"),
                false => (moment, "missed"),
            })
            .collect();
        list(&mut rows, job, global.output, &gone);
        let ahead = scheduled_times(cron, zone, now, now.saturating_add(AHEAD));
        list(&mut rows, job, global.output, &ahead.into_iter().map(|moment| (moment, "to run")).collect::<Vec<_>>());
    }

    let mut out = sentences(global.output);
    if jobs.is_empty() && global.output == Output::Table {
        writeln!(out, "no job of {} has a `schedule`", project.dir.display())?;
    } else {
        rows.write(global.output, &mut out)?;
    }
    out.flush()?;
    Ok(())
}

/// Adds a row for each time, with what is said of it; for people only the first ones, and how many more there are.
fn list(rows: &mut ResultRows, job: &Job, output: Output, moments: &[(i64, &str)]) {
    let short = if output == Output::Table { SHOWN } else { usize::MAX };
    for (moment, what) in moments.iter().take(short) {
        // JSON has all times in UTC.
        let shown = if output == Output::Json { time(*moment) } else { local_time(job.timezone, *moment) };
        rows.push(row![job.name, shown, what]);
    }
    if moments.len() > short {
        rows.push(row![job.name, (), format!("and {} more", moments.len() - short)]);
    }
}

/// Writes units into a directory, which is created if it does not exist. Returns their paths.
fn write_units(dir: &Path, units: impl IntoIterator<Item = (String, String)>) -> Result<Vec<PathBuf>, CliError> {
    let failed = |source| CliError::Folder { path: dir.display().to_string(), source };
    std::fs::create_dir_all(dir).map_err(failed)?;

    let mut written = Vec::new();
    for (name, text) in units {
        let path = dir.join(name);
        std::fs::write(&path, text).map_err(failed)?;
        written.push(path);
    }
    Ok(written)
}
