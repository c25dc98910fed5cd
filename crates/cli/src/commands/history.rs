//! `tidetable history`: past runs, the newest first.

use std::io::Write;
use std::path::Path;

use serde_json::json;
use tidetable_runner::{PartState, RunError, RunRecord, Runs, state_of};

use super::{store, time};
use crate::args::{Global, History, Output, Since};
use crate::error::CliError;
use crate::output::{Rows, stdout};

/// Lists runs.
pub fn history(global: &Global, args: &History) -> Result<(), CliError> {
    let store = store(global)?;
    let root = store.blobs().display();
    let since = args.since.map(|since| match since {
        Since::At(time) => time,
        Since::Ago(age) => chrono::Utc::now().timestamp_micros().saturating_sub(age),
    });
    let mut columns = vec![
        "run",
        "job",
        "outcome",
        "now",
        "started",
        "seconds",
        "read",
        "rejected",
        "published",
        "failed",
        "new attempts",
        "error",
    ];
    if global.output == Output::Table {
        // Errors are sentences: `status JOB` shows the last one.
        columns.pop();
    }
    let limit = if args.limit == 0 { usize::MAX } else { args.limit };
    let (mut rows, mut shown) = (Rows::new(&columns), 0);
    for record in Runs::of(store.blobs().as_ref()).newest_first(args.job.as_deref())? {
        if shown == limit {
            break;
        }
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                crate::tell_line(global, &format!("warning: {error}"));
                continue;
            }
        };
        if since.is_some_and(|since| record.started < since) {
            break;
        }
        let path = || tidetable_runner::lock_path(Path::new(&root), &record.job);
        let state = state_of(Path::new(&root), &record).map_err(|source| RunError::Lock { path: path(), source })?;
        if args.failed && matches!(state, "ok" | "running") {
            continue;
        }
        let mut row = row(&record, state);
        row.truncate(columns.len());
        rows.push(row);
        shown += 1;
    }
    let mut out = stdout();
    rows.write(global.output, &mut out)?;
    out.flush()?;
    Ok(())
}

fn row(record: &RunRecord, state: &str) -> Vec<serde_json::Value> {
    let parts = |states: &[PartState]| record.exports.iter().filter(|part| states.contains(&part.state)).count();
    let seconds = record.finished.map(|finished| (finished - record.started) as f64 / 1e6);
    vec![
        json!(record.run),
        json!(record.job),
        json!(state),
        json!(time(record.now)),
        json!(time(record.started)),
        json!(seconds.map(|seconds| (seconds * 1e3).round() / 1e3)),
        json!(record.totals().rows_read),
        json!(record.all_rejected()),
        json!(parts(&[PartState::Published])),
        json!(parts(&[PartState::Failed, PartState::Checks])),
        json!(record.attempts.len()),
        json!(record.error),
    ]
}
