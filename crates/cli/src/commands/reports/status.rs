//! `tidetable status`: the status of jobs.

use std::io::Write;

use chrono_tz::Tz;
use serde_json::{Value, json};
use tidetable_layout::time::{DAY, MINUTE, SECOND};
use tidetable_runner::plan::{owed_notes, ranges, rows_of};
use tidetable_runner::record::{NewestVersions, OwedRecord};
use tidetable_runner::report::{DaysOf, OwedOf, PushedTable, Status, statuses};
use tidetable_store::StoreError;

use crate::commands::{clock, project_if_any, store_if_any};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::output::values::{time, time_to_second};
use crate::output::{ResultRows, row, sentences};
use crate::{args, objects};

/// Shows the status of a job, or of all of them.
pub fn status(global: &args::Global, args: &args::Status) -> Result<(), CliError> {
    let project = project_if_any(global)?;
    let clock = clock();
    let store = store_if_any(global)?;
    let only: Vec<&str> = args.jobs.iter().map(String::as_str).collect();
    let found = statuses(&store, project.as_ref(), &only, clock)?;
    found.problems.iter().for_each(|problem| print_message(global, &format!("warning: {problem}")));

    let newest = NewestVersions::default();
    for table in store.tables()? {
        if let Err(error @ StoreError::VersionLost { .. }) = newest.check_latest(&store, &table) {
            print_message(global, &format!("warning: {error}"));
        }
    }

    if let Some(job) = args.jobs.iter().find(|job| found.jobs.iter().all(|status| status.job != **job)) {
        let known = project.map(|project| project.jobs().join(", ")).unwrap_or_default();
        return Err(CliError::NoJob { job: job.clone(), known });
    }

    let now = args.now.unwrap_or(clock);
    let stale: Vec<String> = found
        .jobs
        .iter()
        .filter(|status| args.fresh.is_some_and(|limit| status.is_overdue(now, limit)))
        .map(|status| format!("{} ({})", status.job, why_stale(status, now, args.fresh.unwrap_or_default())))
        .collect();

    let mut out = sentences(global.output);
    match (global.output, args.jobs.len() == 1) {
        (args::Output::Table, true) => {
            for status in &found.jobs {
                one(status, now, args).write(global.output, &mut out)?;
                for OwedOf { table, windows } in &status.owed {
                    let missing = missing(windows);
                    let rows = store.table(table).latest()?.map_or(0, |version| rows_of(&version, &missing));
                    let notes = owed_notes(table, windows, &missing, rows);
                    notes.iter().for_each(|note| print_message(global, note));
                }
            }
        }
        (args::Output::Table, false) => short(&found.jobs, now).write(global.output, &mut out)?,
        _ => long(&found.jobs, now, args, global.output).write(global.output, &mut out)?,
    }
    out.flush()?;

    match (stale.as_slice(), args.fresh) {
        ([], _) | (_, None) => Ok(()),
        (jobs, Some(limit)) => {
            let verb = if jobs.len() == 1 { "is" } else { "are" };
            Err(CliError::Stale { jobs: format!("{} {verb}", jobs.join(", ")), limit: age(limit) })
        }
    }
}

/// Why a job is stale: what is older than `limit`, microseconds.
fn why_stale(status: &Status, now: i64, limit: i64) -> String {
    if status.last.is_none() {
        return "never ran".to_owned();
    }
    let mut old = Vec::new();
    match Status::age(now, status.good) {
        None => old.push("no good run".to_owned()),
        Some(since) if since > limit => old.push(format!("last good run {} ago", age(since))),
        Some(_) => {}
    }
    match Status::age(now, newest(status)) {
        None if status.publishes => old.push("nothing is published".to_owned()),
        None => old.push("no data".to_owned()),
        Some(since) if since > limit => old.push(format!("newest day ended {} ago", age(since))),
        Some(_) => {}
    }
    old.join(", ")
}

/// A row for each job, for a table.
fn short(jobs: &[Status], now: i64) -> ResultRows {
    let mut rows = ResultRows::new(&[
        "job",
        "last run",
        "began",
        "newest day",
        "day age",
        "good run",
        "gaps",
        "failed",
        "sealed",
        "owed",
        "rejected",
    ])
    .minor(&["began", "sealed", "newest day", "good run", "rejected"]);

    for status in jobs {
        let began = status.last.as_ref().and_then(|last| time_to_second(last.started));
        let newest = newest(status);
        rows.push(row![
            status.job,
            status.state.unwrap_or("never"),
            began,
            newest.and_then(day_before),
            Status::age(now, newest).map(age),
            Status::age(now, status.good).map(age),
            days(&status.gaps),
            days(&status.failed),
            days(&status.sealed),
            owed_windows(&status.owed),
            status.rejected
        ]);
    }
    rows
}

/// All details of one job, for a table.
fn one(status: &Status, now: i64, args: &args::Status) -> ResultRows {
    let mut rows = ResultRows::new(&["what", "value"]);
    rows.fact("job", json!(status.job));
    rows.fact("last run", json!(status.state.unwrap_or("never")));

    if let Some(last) = &status.last {
        rows.fact("  run", json!(last.run));
        if let Some(holder) = &status.holder {
            rows.fact("  held by", json!(holder.place()));
        }
        rows.fact("  logical time", json!(time(last.now)));
        rows.fact("  began", json!(time(last.started)));
        if let Some(finished) = last.finished {
            rows.fact("  ended", json!(time(finished)));
        }
        if let Some(error) = &last.error {
            rows.fact("  error", json!(error));
        }
        rows.fact("  rejected rows", json!(tidetable_runner::record::RunRecord::all_rejected(last)));
    }

    let good = status.good.and_then(|good| with_age(time(good)?, good, now));
    rows.fact("last good run", json!(good));
    // Windows and the days of tables are of UTC, those of exports and checks of the zone of the job.
    let [utc, local] = match status.zone {
        Tz::UTC => [String::new(), String::new()],
        zone => [" (UTC)".to_owned(), format!(" ({zone})")],
    };
    rows.fact(&format!("newest event day{utc}"), json!(day_with_age(status.data_until, now)));
    if status.publishes {
        rows.fact(&format!("newest published day{local}"), json!(day_with_age(status.published_until, now)));
    }

    let of_gaps = if status.publishes { &local } else { &utc };
    rows.fact(&format!("gaps{of_gaps}"), json!(days(&status.gaps)));
    rows.fact(&format!("failed days{local}"), json!(days(&status.failed)));
    rows.fact(&format!("sealed days{local}"), json!(days(&status.sealed)));
    rows.fact(&format!("owed windows{utc}"), json!(owed_windows(&status.owed)));
    rows.fact("rejected rows of its inputs", json!(status.rejected));

    for pushed in &status.pushed {
        let finished = pushed.finished.and_then(time).map(|at| format!(", pushed {at}")).unwrap_or_default();
        let unfinished = if pushed.unfinished { ", a later push did not end" } else { "" };
        let text = format!("version {} of {}{finished}{unfinished}", pushed.version, pushed.newest);
        rows.fact(&format!("{} in {}", pushed.table, pushed.target), json!(text));
    }

    if let Some(limit) = args.fresh {
        rows.fact("fresh", json!(if status.is_overdue(now, limit) { "no" } else { "yes" }));
    }
    rows
}

/// A row for each job with all details.
fn long(jobs: &[Status], now: i64, args: &args::Status, output: args::Output) -> ResultRows {
    let mut rows = ResultRows::of(objects::STATUS);
    for status in jobs {
        let last = status.last.as_ref();

        rows.push(row![
            status.job,
            status.state,
            last.map(|last| &last.run),
            last.and_then(|last| time(last.now)),
            last.and_then(|last| time(last.started)),
            last.and_then(|last| time(last.finished?)),
            last.and_then(|last| last.error.as_ref()),
            status.good.and_then(time),
            age_in_seconds(now, status.good),
            status.data_until.and_then(time),
            age_in_seconds(now, status.data_until),
            status.published_until.and_then(time),
            age_in_seconds(now, status.published_until),
            args.fresh.map(|limit| !status.is_overdue(now, limit)),
            days_value(&status.gaps, output),
            days_value(&status.failed, output),
            days_value(&status.sealed, output),
            owed(&status.owed, output),
            status.rejected,
            last.map(|last| last.all_rejected()),
            pushes(&status.pushed, output)
        ]);
    }
    rows
}

/// The age of a time at `now`, in seconds.
fn age_in_seconds(now: i64, until: Option<i64>) -> Option<i64> {
    Status::age(now, until).map(|age| age / SECOND)
}

/// Days of exports; as text in a table.
fn days_value(of: &[DaysOf], output: args::Output) -> Value {
    if output == args::Output::Json { json!(of) } else { json!(days(of)) }
}

/// The windows that could not be rebuilt; as text in a table.
fn owed(of: &[OwedOf], output: args::Output) -> Value {
    if output == args::Output::Json { json!(of) } else { json!(owed_windows(of)) }
}

/// Names of the windows that could not be rebuilt, by table.
pub(crate) fn owed_windows(of: &[OwedOf]) -> String {
    let mut texts = Vec::new();
    for OwedOf { table, windows } in of {
        let names: Vec<&str> = windows.iter().map(|owed| owed.window.as_str()).collect();
        texts.push(format!("{table}: {}", ranges(&names)));
    }
    texts.join("; ")
}

/// All missing inputs of windows.
fn missing(windows: &[OwedRecord]) -> Vec<String> {
    let mut gone: Vec<String> = windows.iter().flat_map(|owed| owed.gone.iter().cloned()).collect();
    gone.sort();
    gone.dedup();
    gone
}

/// What was pushed into Bigtable; as text in a table.
fn pushes(pushed: &[PushedTable], output: args::Output) -> Value {
    if output != args::Output::Json {
        let texts: Vec<String> = pushed
            .iter()
            .map(|one| format!("{} in {}: {} of {}", one.table, one.target, one.version, one.newest))
            .collect();
        return json!(texts.join("; "));
    }

    let mut objects = Vec::new();
    for one in pushed {
        objects.push(json!({
            "table": one.table,
            "target": one.target,
            "version": one.version,
            "newest": one.newest,
            "finished": one.finished.and_then(time),
            "unfinished": one.unfinished,
        }));
    }
    Value::Array(objects)
}

fn newest(status: &Status) -> Option<i64> {
    if status.publishes { status.published_until } else { status.data_until }
}

/// A time with its age at `now`, as in `2020-01-06 (1d 2h ago)`.
fn with_age(text: String, micros: i64, now: i64) -> Option<String> {
    Some(format!("{text} ({} ago)", age(Status::age(now, Some(micros)).unwrap_or_default())))
}

/// The day that ends at `until`, with its age at `now`.
fn day_with_age(until: Option<i64>, now: i64) -> Option<String> {
    with_age(day_before(until?)?, until?, now)
}

/// The day, in UTC or a zone near it, that ends at `until`.
fn day_before(until: i64) -> Option<String> {
    Some(chrono::DateTime::from_timestamp_micros(until.checked_sub(DAY / 2)?)?.date_naive().to_string())
}

/// Formats the days of several exports.
fn days(of: &[DaysOf]) -> String {
    let mut texts = Vec::new();
    for DaysOf { of, days, .. } in of {
        let labels: Vec<&str> = days.iter().map(String::as_str).collect();
        texts.push(format!("{of}: {}", ranges(&labels)));
    }
    texts.join("; ")
}

/// Formats an age in its two largest units: `3d 4h`.
fn age(micros: i64) -> String {
    let minutes = micros / MINUTE;
    let (days, hours, minutes) = (minutes / 1440, minutes / 60 % 24, minutes % 60);
    match (days, hours) {
        (0, 0) => format!("{minutes}m"),
        (0, _) => format!("{hours}h {minutes}m"),
        _ => format!("{days}d {hours}h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_said_in_two_units() {
        let said = |seconds: i64| age(seconds * SECOND);
        assert_eq!((said(59), said(60), said(3_600)), ("0m".to_owned(), "1m".to_owned(), "1h 0m".to_owned()));
        assert_eq!((said(26 * 3_600), said(90 * 86_400 - 1)), ("1d 2h".to_owned(), "89d 23h".to_owned()));
    }
}
