//! A job at a glance in JSON.

use serde_json::{Value, json};
use tidetable_runner::record::{PartState, RunRecord, Severity};
use tidetable_runner::report::Overview;

/// The object of [`REPORT`](crate::objects::REPORT), with times as they are stored. `states` are those of the runs.
pub(super) fn overview(job: &str, overview: &Overview, states: &[&str]) -> Value {
    let days = overview.days.iter().map(|day| {
        json!({
            "of": day.of,
            "day": day.day.to_string(),
            "state": day.state.name(),
            "rows": day.rows,
            "rejected": day.rejected,
            "run": day.run,
        })
    });

    let checks = overview.rules.iter().map(|rule| {
        let values = rule.values.iter().map(|value| {
            json!({ "label": value.label, "measured": value.measured, "passed": value.passed, "run": value.run })
        });
        json!({
            "check": rule.check,
            "on": rule.on,
            "rule": rule.rule,
            "severity": if rule.severity == Severity::Error { "error" } else { "warn" },
            "values": values.collect::<Value>(),
        })
    });

    let steps = overview.steps.iter().map(|step| {
        json!({
            "from": step.from.kind.name(),
            "name": step.from.name,
            "into": step.into.kind.name(),
            "into_name": step.into.name,
            "items": step.items,
            "rows": step.rows,
            "rejected": step.rejected,
        })
    });
    json!({
        "job": job,
        "days": days.collect::<Value>(),
        "runs": overview.runs.iter().zip(states).map(|(record, state)| run(record, state)).collect::<Value>(),
        "checks": checks.collect::<Value>(),
        "lineage": steps.collect::<Value>(),
    })
}

fn run(record: &RunRecord, state: &str) -> Value {
    json!({
        "run": record.run,
        "outcome": state,
        "now": record.now,
        "started": record.started,
        "seconds": seconds(record),
        "read": record.totals().rows_read,
        "rejected": record.all_rejected(),
        "published": published(record),
        "error": record.error,
    })
}

/// How long a run took, to the millisecond; `None` if it did not end.
pub(super) fn seconds(record: &RunRecord) -> Option<f64> {
    record.finished.map(|finished| ((finished - record.started) as f64 / 1e3).round() / 1e3)
}

/// Parts that a run published.
pub(super) fn published(record: &RunRecord) -> u64 {
    record.exports.iter().filter(|part| part.state == PartState::Published).count() as u64
}
