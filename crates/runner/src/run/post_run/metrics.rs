//! The metrics of the last run of a job, in Prometheus' text format.
//!
//! ```text
//! # HELP tidetable_run_exit_code Exit code of the last run.
//! # TYPE tidetable_run_exit_code gauge
//! tidetable_run_exit_code{job="smart-meters"} 0
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;

use tidetable_record::{Outcome, PartState, RunRecord, Severity};

const LAST_SUCCESS: &str = "tidetable_last_success_timestamp_seconds";
const OUTCOMES: [Outcome; 5] = [Outcome::Ok, Outcome::Partial, Outcome::Checks, Outcome::Failed, Outcome::Interrupted];
const STATES: [PartState; 7] = [
    PartState::Published,
    PartState::Unchanged,
    PartState::Empty,
    PartState::Withdrawn,
    PartState::Failed,
    PartState::Checks,
    PartState::Sealed,
];
const MICROS: f64 = 1e6;
/// The metrics of how a run ended; the others are of what it found and did.
const ENDING: [&str; 5] = [
    "tidetable_run_outcome",
    "tidetable_run_exit_code",
    "tidetable_run_start_timestamp_seconds",
    "tidetable_run_finish_timestamp_seconds",
    "tidetable_run_duration_seconds",
];

/// The values that metrics are made from.
pub(crate) struct Figures<'a> {
    pub(crate) record: &'a RunRecord,
    pub(crate) exit_code: u8,
    /// The end of the last successful run of the job, microseconds since the epoch.
    pub(crate) last_success: Option<i64>,
    pub(crate) newest: Vec<NewestDay>,
}

/// The newest published day of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewestDay {
    pub(crate) export: String,
    /// Its start in seconds since the epoch.
    pub(crate) start: i64,
}

/// The metrics as text.
pub(crate) fn text(figures: &Figures<'_>) -> String {
    let Figures { record, exit_code, last_success, newest } = figures;
    let job = ("job", record.job.as_str());
    let mut out = Text { text: String::new() };

    out.ending(record, *exit_code);
    if let Some(success) = last_success {
        out.gauge(LAST_SUCCESS, "When a run last ended well, since the epoch.");
        out.line(LAST_SUCCESS, &[job], *success as f64 / MICROS);
    }

    out.tables(record);
    out.parts(record);

    let name = "tidetable_export_newest_day_timestamp_seconds";
    out.gauge(name, "Start of the newest published day, since the epoch.");
    for NewestDay { export, start } in newest {
        out.line(name, &[job, ("export", export.as_str())], *start as f64);
    }

    out.checks(record);
    out.text
}

/// The metrics after a run that was refused: how it ended, and `before`, the text of the run before it, for the rest.
pub(crate) fn refused(before: &str, record: &RunRecord, exit_code: u8) -> String {
    let mut out = Text { text: String::new() };
    out.ending(record, exit_code);
    for line in before.lines().filter(|line| !metric(line).is_some_and(|name| ENDING.contains(&name))) {
        out.text.push_str(line);
        out.text.push('\n');
    }
    out.text
}

/// The metric that a line is about.
fn metric(line: &str) -> Option<&str> {
    let line = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE ")).unwrap_or(line);
    line.split(['{', ' ']).next()
}

/// The end of the last successful run, parsed from an earlier metrics file.
pub(crate) fn last_success_in(text: &str, job: &str) -> Option<i64> {
    let mut wanted = Text { text: String::new() };
    wanted.name(LAST_SUCCESS, &[("job", job)]);
    let value = text.lines().find_map(|line| line.strip_prefix(wanted.text.as_str()))?;
    let seconds: f64 = value.trim().parse().ok()?;
    Some((seconds * MICROS).round() as i64)
}

struct Text {
    text: String,
}

impl Text {
    /// How a run of a job ended: the metrics [`ENDING`].
    fn ending(&mut self, record: &RunRecord, exit_code: u8) {
        let job = ("job", record.job.as_str());

        self.gauge("tidetable_run_outcome", "How the last run ended: 1 for its outcome, 0 for the others.");
        for outcome in OUTCOMES {
            self.line(
                "tidetable_run_outcome",
                &[job, ("outcome", outcome.name())],
                f64::from(record.outcome == outcome),
            );
        }

        self.gauge("tidetable_run_exit_code", "Exit code of the last run.");
        self.line("tidetable_run_exit_code", &[job], f64::from(exit_code));

        self.gauge("tidetable_run_start_timestamp_seconds", "When the last run began, since the epoch.");
        self.line("tidetable_run_start_timestamp_seconds", &[job], record.started as f64 / MICROS);

        if let Some(finished) = record.finished {
            self.gauge("tidetable_run_finish_timestamp_seconds", "When the last run ended, since the epoch.");
            self.line("tidetable_run_finish_timestamp_seconds", &[job], finished as f64 / MICROS);
            self.gauge("tidetable_run_duration_seconds", "How long the last run took.");
            let took = finished.saturating_sub(record.started).max(0);
            self.line("tidetable_run_duration_seconds", &[job], took as f64 / MICROS);
        }
    }

    /// Rows, bytes and owed windows of each table that was loaded.
    fn tables(&mut self, record: &RunRecord) {
        let job = ("job", record.job.as_str());

        self.gauge(
            "tidetable_table_rows",
            "Rows of the last run by table; read = accepted + filtered + rejected + owed.",
        );
        for load in &record.loads {
            let stats = &load.stats;
            for (state, rows) in [
                ("read", stats.rows_read),
                ("accepted", stats.rows_accepted),
                ("filtered", stats.rows_filtered),
                ("rejected", stats.rows_rejected),
                ("owed", stats.rows_owed),
                ("written", stats.rows_written),
            ] {
                let labels = [job, ("table", load.table.as_str()), ("state", state)];
                self.line("tidetable_table_rows", &labels, rows as f64);
            }
        }

        self.gauge("tidetable_table_bytes", "Bytes of the last run by table: in of inputs, out of SSTs.");
        for load in &record.loads {
            for (direction, bytes) in [("in", load.stats.bytes_in), ("out", load.stats.bytes_out)] {
                let labels = [job, ("table", load.table.as_str()), ("direction", direction)];
                self.line("tidetable_table_bytes", &labels, bytes as f64);
            }
        }

        let name = "tidetable_table_owed_windows";
        self.gauge(name, "Windows that could not be rebuilt, because inputs of them are missing.");
        for load in &record.loads {
            self.line(name, &[job, ("table", load.table.as_str())], load.owed.len() as f64);
        }
    }

    /// The number of parts of each export, by state.
    fn parts(&mut self, record: &RunRecord) {
        let mut parts: BTreeMap<&str, BTreeMap<&str, u64>> = BTreeMap::new();
        for part in &record.exports {
            *parts.entry(&part.export).or_default().entry(part.state.name()).or_default() += 1;
        }

        let name = "tidetable_export_parts";
        self.gauge(name, "Days of the last run by export and by what became of them.");
        for (export, states) in &parts {
            for state in STATES {
                let count = states.get(state.name()).copied().unwrap_or_default();
                let labels = [("job", record.job.as_str()), ("export", *export), ("state", state.name())];
                self.line(name, &labels, count as f64);
            }
        }
    }

    /// The number of checks that did not hold, by severity.
    fn checks(&mut self, record: &RunRecord) {
        let name = "tidetable_checks_failed";
        self.gauge(name, "Checks that did not hold in the last run, by severity.");
        for (label, severity) in [("error", Severity::Error), ("warn", Severity::Warn)] {
            let failed = record.checks.iter().filter(|check| !check.passed && check.severity == severity).count();
            self.line(name, &[("job", record.job.as_str()), ("severity", label)], failed as f64);
        }
    }

    /// Begins a metric; its lines must follow at once, as the format requires.
    fn gauge(&mut self, name: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} gauge");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.name(name, labels);
        let _ = writeln!(self.text, " {value}");
    }

    fn name(&mut self, name: &str, labels: &[(&str, &str)]) {
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let _ = write!(self.text, "{name}{{{}}}", labels.join(","));
    }
}

/// Escapes the value of a label.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_read_back() {
        let record = RunRecord { job: "a\\b\"c\nd".to_owned(), finished: Some(1_500_000), ..RunRecord::default() };
        let figures = Figures { record: &record, exit_code: 4, last_success: Some(1_250_000), newest: Vec::new() };
        let text = text(&figures);
        assert!(text.contains("tidetable_run_exit_code{job=\"a\\\\b\\\"c\\nd\"} 4\n"), "{text}");
        assert_eq!(last_success_in(&text, &record.job), Some(1_250_000));
        assert_eq!(last_success_in(&text, "other"), None);
    }

    #[test]
    fn a_refused_run_replaces_how_the_last_one_ended() {
        let (started, finished) = (1_000_000, Some(1_500_000));
        let ok =
            RunRecord { job: "meters".to_owned(), started, finished, outcome: Outcome::Ok, ..RunRecord::default() };
        let newest = vec![NewestDay { export: "daily".to_owned(), start: 86_400 }];
        let before = text(&Figures { record: &ok, exit_code: 0, last_success: Some(1_500_000), newest });

        let (started, finished) = (3_000_000, Some(3_250_000));
        let failed =
            RunRecord { job: "meters".to_owned(), started, finished, outcome: Outcome::Failed, ..RunRecord::default() };
        let after = refused(&before, &failed, 2);

        for line in [
            "tidetable_run_outcome{job=\"meters\",outcome=\"failed\"} 1",
            "tidetable_run_outcome{job=\"meters\",outcome=\"ok\"} 0",
            "tidetable_run_exit_code{job=\"meters\"} 2",
            "tidetable_run_start_timestamp_seconds{job=\"meters\"} 3",
            "tidetable_last_success_timestamp_seconds{job=\"meters\"} 1.5",
            "tidetable_export_newest_day_timestamp_seconds{job=\"meters\",export=\"daily\"} 86400",
        ] {
            assert_eq!(after.lines().filter(|own| *own == line).count(), 1, "{line}\n{after}");
        }
        assert_eq!(after.lines().count(), before.lines().count(), "{after}");
    }
}
