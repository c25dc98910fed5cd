//! The `runs` tables: their columns, and their rows from a run record.

use arrow::datatypes::Date32Type;
use chrono::NaiveDate;
use tidetable_ingest::RejectedRow;
use tidetable_record::{FailingRow, InputState, PartState, RunRecord, Severity};

use crate::catalog::runs::columns::Kind::{Day, Number, Real, Text, Time, Truth};
use crate::catalog::runs::columns::{Kind, Row, Value};

/// A table of the schema `runs`: its name, its columns, and where its rows come from.
#[derive(Debug)]
pub(crate) struct RunsTableSpec {
    pub(crate) name: &'static str,
    /// Names and types of the columns, in the order of the values of a row.
    pub(crate) columns: &'static [(&'static str, Kind)],
    pub(crate) rows: RowsOf,
}

/// What a row of a table describes, with the function that makes it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowsOf {
    /// A run, with its outcome in words.
    Run(fn(&RunRecord, &str) -> Row),
    /// Each of the items that a run record lists, such as its inputs.
    Listed(fn(&RunRecord, &mut Vec<Row>)),
    /// A row of an input that a run rejected.
    Rejected(fn(&RunRecord, &RejectedRow) -> Row),
    /// A row that violates a check of the job.
    Failing(fn(&FailingRow) -> Row),
}

/// A table from the name, the type and the value of each column.
macro_rules! table {
    ($name:literal, $of:ident, |$($arg:ident: $type:ty),+| $($column:literal $kind:ident = $value:expr,)+) => {
        RunsTableSpec {
            name: $name,
            columns: &[$(($column, $kind)),+],
            rows: RowsOf::$of(|$($arg: $type),+| vec![$(Value::from($value)),+]),
        }
    };
    ($name:literal, |$record:ident| $item:pat_param in $items:expr => $($column:literal $kind:ident = $value:expr,)+) => {
        RunsTableSpec {
            name: $name,
            columns: &[$(($column, $kind)),+],
            rows: RowsOf::Listed(|$record: &RunRecord, rows: &mut Vec<Row>| {
                for $item in $items {
                    rows.push(vec![$(Value::from($value)),+]);
                }
            }),
        }
    };
}

/// The tables of the schema `runs`, in the order in which they are listed.
pub(crate) const TABLES: &[RunsTableSpec] = &[
    table! { "runs", Run, |record: &RunRecord, state: &str|
        "run" Text = &record.run,
        "job" Text = &record.job,
        "outcome" Text = state,
        "now" Time = Value::Time(record.now),
        "started" Time = Value::Time(record.started),
        "finished" Time = record.finished.map(Value::Time),
        "seconds" Real = record.finished.map(|finished| Value::Real((finished - record.started) as f64 / 1e6)),
        "error" Text = record.error.as_ref(),
        "continues" Text = record.continues.as_ref(),
        "from_day" Day = record.asked.from.map(day),
        "to_day" Day = record.asked.to.map(day),
        "forced" Truth = record.asked.force,
        "rebuilt" Truth = record.asked.rebuild,
        "rows_read" Number = record.totals().rows_read,
        "rows_accepted" Number = record.totals().rows_accepted,
        "rows_filtered" Number = record.totals().rows_filtered,
        "rows_rejected" Number = record.totals().rows_rejected,
        "cells" Number = record.totals().cells,
        "bytes_in" Number = record.totals().bytes_in,
        "bytes_out" Number = record.totals().bytes_out,
        "published" Number = parts(record, &[PartState::Published]),
        "failed" Number = parts(record, &[PartState::Failed, PartState::Checks]),
        "new_attempts" Number = record.attempts.len(),
    },
    table! { "loads", |record| load in &record.loads =>
        "run" Text = &record.run,
        "job" Text = &record.job,
        "table_name" Text = &load.table,
        "source" Text = &load.source,
        "version_before" Number = load.before,
        "version" Number = load.version,
        "inputs" Number = load.count_all(),
        "windows_rebuilt" Number = load.rebuilt.len(),
        "ssts" Number = load.ssts.len(),
        "rows_read" Number = load.stats.rows_read,
        "rows_accepted" Number = load.stats.rows_accepted,
        "rows_filtered" Number = load.stats.rows_filtered,
        "rows_rejected" Number = load.stats.rows_rejected,
        "rows_written" Number = load.stats.rows_written,
        "cells" Number = load.stats.cells,
        "overwritten" Number = load.stats.overwritten,
        "bytes_in" Number = load.stats.bytes_in,
        "bytes_out" Number = load.stats.bytes_out,
        "inputs_unchanged" Number = load.count(InputState::Unchanged),
        "repeated_times" Number = load.stats.repeated_times,
        "cut_times" Number = load.stats.cut_times,
        "windows_owed" Number = load.owed.len(),
        "rows_owed" Number = load.stats.rows_owed,
        "rows_settled" Number = load.stats.rows_settled,
    },
    table! { "inputs", |record| (table, input) in
        record.loads.iter().flat_map(|load| load.inputs.iter().map(move |input| (&load.table, input))) =>
        "run" Text = &record.run,
        "job" Text = &record.job,
        "table_name" Text = table,
        "path" Text = &input.path,
        "state" Text = input.state.name(),
        "same_as" Text = input.same_as.as_ref(),
    },
    table! { "partitions", |record| part in &record.exports =>
        "run" Text = &record.run,
        "job" Text = &record.job,
        "export" Text = &part.export,
        "label" Text = &part.label,
        "part" Text = &part.part,
        "reason" Text = &part.reason,
        "state" Text = part.state.name(),
        "rows" Number = part.rows,
        "bytes" Number = part.bytes,
        "error" Text = part.error.as_ref(),
    },
    table! { "checks", |record| check in &record.checks =>
        "run" Text = &record.run,
        "job" Text = &record.job,
        "check_name" Text = &check.check,
        "checked" Text = &check.on,
        "label" Text = &check.label,
        "rule" Text = &check.rule,
        "severity" Text = if check.severity == Severity::Error { "error" } else { "warn" },
        "measured" Number = Value::Number(check.measured),
        "passed" Truth = check.passed,
    },
    table! { "pushes", |record| push in &record.pushes =>
        "run" Text = &record.run,
        "job" Text = &record.job,
        "push" Text = &push.push,
        "table_name" Text = &push.table,
        "target" Text = &push.target,
        "version_before" Number = push.before,
        "version" Number = push.version,
        "rows" Number = push.counts.rows,
        "cells" Number = push.counts.cells,
        "deleted" Number = push.counts.deleted,
        "error" Text = push.error.as_ref(),
    },
    table! { "attempts", |record| attempt in &record.attempts =>
        "run" Text = &record.run,
        "job" Text = &record.job,
        "stage" Text = &attempt.stage,
        "name" Text = &attempt.name,
        "attempt" Number = u64::from(attempt.attempt),
        "failed_at" Time = Value::Time(attempt.failed),
        "wait_seconds" Number = attempt.wait,
        "error" Text = &attempt.error,
    },
    table! { "rejects", Rejected, |record: &RunRecord, reject: &RejectedRow|
        "run" Text = &record.run,
        "job" Text = &record.job,
        "file" Text = &reject.file,
        "line" Number = reject.line,
        "table_name" Text = reject.table.as_ref(),
        "column_name" Text = reject.column.as_ref(),
        "reason" Text = &reject.reason,
        "raw" Text = &reject.raw,
    },
    table! { "failing_rows", Failing, |failing: &FailingRow|
        "run" Text = &failing.run,
        "job" Text = &failing.job,
        "check_name" Text = &failing.check,
        "checked" Text = &failing.on,
        "label" Text = &failing.label,
        "rule" Text = &failing.rule,
        "row" Text = &failing.row,
    },
];

fn day(date: NaiveDate) -> Value {
    Value::Day(Date32Type::from_naive_date(date))
}

/// Count of parts of exports in one of these states.
fn parts(record: &RunRecord, states: &[PartState]) -> usize {
    record.exports.iter().filter(|part| states.contains(&part.state)).count()
}

#[cfg(test)]
mod tests {
    use tidetable_record::{AttemptRecord, CheckRecord, ExportRecord, InputRecord, InputState, LoadRecord, PushRecord};

    use super::*;

    #[test]
    fn a_row_has_a_value_of_the_right_type_for_each_column() {
        let (name, state) = (|| "x".to_owned(), PartState::Failed);
        let input = InputRecord { same_as: Some(name()), ..InputRecord::new(&name(), InputState::SameContent) };
        let record = RunRecord {
            error: Some(name()),
            continues: Some(name()),
            finished: Some(1),
            loads: vec![LoadRecord { inputs: vec![input], ..LoadRecord::default() }],
            exports: vec![ExportRecord {
                export: name(),
                label: name(),
                part: name(),
                reason: name(),
                state,
                rows: 0,
                bytes: 0,
                error: Some(name()),
            }],
            checks: vec![CheckRecord {
                check: name(),
                on: name(),
                label: name(),
                rule: name(),
                severity: Severity::Warn,
                measured: -1,
                passed: false,
            }],
            attempts: vec![AttemptRecord::default()],
            pushes: vec![PushRecord { error: Some(name()), ..PushRecord::default() }],
            asked: tidetable_record::RunRequest {
                from: "2020-02-29".parse().ok(),
                to: "2020-02-29".parse().ok(),
                ..Default::default()
            },
            ..RunRecord::default()
        };
        let row = RejectedRow {
            file: name(),
            table: Some(name()),
            line: 1,
            column: Some(name()),
            reason: name(),
            raw: name(),
        };
        for table in TABLES {
            let mut rows = Vec::new();
            match table.rows {
                RowsOf::Run(of) => rows.push(of(&record, "ok")),
                RowsOf::Listed(of) => of(&record, &mut rows),
                RowsOf::Rejected(of) => rows.push(of(&record, &row)),
                RowsOf::Failing(of) => rows.push(of(&FailingRow::default())),
            }
            assert_eq!((rows.len(), rows[0].len()), (1, table.columns.len()), "{}", table.name);
            for ((column, kind), value) in table.columns.iter().zip(&rows[0]) {
                let right = matches!(
                    (kind, value),
                    (Text, Value::Text(_))
                        | (Number, Value::Number(_))
                        | (Real, Value::Real(_))
                        | (Truth, Value::Truth(_))
                        | (Time, Value::Time(_))
                        | (Day, Value::Day(_))
                );
                assert!(right, "{}.{column}: {value:?}", table.name);
            }
        }
    }
}
