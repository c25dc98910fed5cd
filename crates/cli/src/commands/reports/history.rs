//! `tidetable history`: past runs, newest first.

use std::io::Write;

use serde_json::json;
use tidetable_job::Job;
use tidetable_runner::record::{PartState, RunRecord, Runs, state_of};
use tidetable_store::Store;

use crate::args::{Global, History, Output, Since};
use crate::commands::run::summary;
use crate::commands::{clock, find_run, project_if_any, store};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::objects;
use crate::objects::write_object;
use crate::output::values::{time, time_to_second};
use crate::output::{ResultRows, row, sentences};

/// Lists the runs of a job, or of all, the newest first; with `--run` shows one in full.
pub fn history(global: &Global, args: &History) -> Result<(), CliError> {
    let store = store(global)?;
    if let Some(run) = &args.run {
        return one(global, &store, &find_run(&store, run)?);
    }

    let since = args.since.map(|since| match since {
        Since::At(time) => time,
        Since::Ago(age) => clock().saturating_sub(age),
    });
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };

    let mut rows = ResultRows::of(objects::HISTORY).ids(&["run"]).below(&["error"]).minor(&[
        "new_attempts",
        "now",
        "seconds",
        "read",
        "published",
        "failed",
        "rejected",
    ]);

    let mut shown = 0;
    for record in Runs::of(store.blobs().as_ref()).known_newest_first(args.job.as_deref())? {
        if shown == limit {
            break;
        }

        let record = match record {
            Ok(record) => record,
            Err(error) => {
                print_message(global, &format!("warning: {error}"));
                continue;
            }
        };

        if since.is_some_and(|since| record.started < since) {
            break;
        }
        let state = state(&store, &record)?;
        if args.failed && matches!(state, "ok" | "running") {
            continue;
        }

        rows.push(row(&record, state, global.output));
        shown += 1;
    }

    if let (Some(job), 0) = (&args.job, shown) {
        known(global, &store, job)?;
    }
    rows.print(global.output)
}

/// The outcome of a run, or `running`.
fn state(store: &Store, record: &RunRecord) -> Result<&'static str, CliError> {
    Ok(state_of(store.blobs().as_ref(), record, clock())?)
}

/// Shows one run in full.
fn one(global: &Global, store: &Store, record: &RunRecord) -> Result<(), CliError> {
    let mut out = sentences(global.output);
    if global.output == Output::Json {
        let mut stored = serde_json::to_value(record)?;
        stored["outcome"] = json!(state(store, record)?);
        write_object(&mut out, stored, objects::RUN)?;
        return Ok(out.flush()?);
    }

    let mut rows = ResultRows::new(&["what", "value"]);
    rows.fact("run", json!(record.run));
    rows.fact("job", json!(record.job));
    rows.fact("outcome", json!(state(store, record)?));
    rows.fact("logical time", json!(time(record.now)));
    rows.fact("began", json!(time(record.started)));
    rows.fact("ended", json!(record.finished.and_then(time)));

    let asked = serde_json::to_value(&record.asked)?;
    for (what, value) in asked.as_object().into_iter().flatten() {
        if !matches!(value, serde_json::Value::Null | serde_json::Value::Bool(false)) && *value != json!([]) {
            rows.fact(&format!("asked: {what}"), value.clone());
        }
    }

    if let Some(before) = &record.continues {
        rows.fact("continues run", json!(before));
    }
    rows.fact("rejected rows", json!(record.all_rejected()));
    if let Some(error) = &record.error {
        rows.fact("error", json!(error));
    }
    for attempt in &record.attempts {
        rows.fact(&format!("attempt {} of {} {}", attempt.attempt, attempt.stage, attempt.name), json!(attempt.error));
    }
    record.notes.iter().for_each(|note| rows.fact("note", json!(note)));

    rows.write(global.output, &mut out)?;

    if global.output == Output::Table {
        let project = project_if_any(global)?;
        let job = project.and_then(|project| Job::load(&project, &record.job).ok());
        summary::of_record(global, job.as_ref(), record, &mut out)?;
    }

    out.flush()?;
    Ok(())
}

/// Fails for an unknown job, when it has no runs to list.
fn known(global: &Global, store: &Store, job: &str) -> Result<(), CliError> {
    let mut known = project_if_any(global)?.map(|project| project.jobs()).unwrap_or_default();
    for record in Runs::of(store.blobs().as_ref()).known_newest_first(None)? {
        // Unreadable records were reported above.
        known.extend(record.ok().map(|record| record.job));
    }
    known.sort_unstable();
    known.dedup();
    if known.iter().any(|known| known == job) {
        return Ok(());
    }
    Err(CliError::NoJob { job: job.to_owned(), known: known.join(", ") })
}

fn row(record: &RunRecord, state: &str, output: Output) -> Vec<serde_json::Value> {
    let time = if output == Output::Table { time_to_second } else { time };
    let published = record.exports.iter().filter(|part| part.state == PartState::Published).count();
    let failed =
        record.exports.iter().filter(|part| matches!(part.state, PartState::Failed | PartState::Checks)).count();
    let seconds = record.finished.map(|finished| (finished - record.started) as f64 / 1e6);
    row![
        record.run,
        record.job,
        state,
        time(record.now),
        time(record.started),
        seconds.map(|seconds| (seconds * 1e3).round() / 1e3),
        record.totals().rows_read,
        record.all_rejected(),
        published,
        failed,
        record.attempts.len(),
        record.error
    ]
}
