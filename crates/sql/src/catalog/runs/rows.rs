//! The `runs` tables: their columns, and their rows from a run record.

use arrow::datatypes::Date32Type;
use tidetable_record::{FailingRow, InputState, PartState, RunRecord, Severity};
use tidetable_store::RejectedRow;

use crate::catalog::runs::columns::Kind::{Day, Number, Real, Text, Time, Truth};
use crate::catalog::runs::columns::{Kind, Row, Value};

/// A table.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    /// Columns, in the order of a row's values.
    pub(crate) columns: &'static [(&'static str, Kind)],
    pub(crate) rows: Of,
}

/// What a row describes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Of {
    /// A run with its outcome.
    Run(fn(&RunRecord, &str) -> Row),
    /// Items that a run record lists.
    Parts(fn(&RunRecord, &mut Vec<Row>)),
    /// A rejected row.
    Rejects(fn(&RunRecord, &RejectedRow) -> Row),
    /// A row that violates a check.
    Failing(fn(&FailingRow) -> Row),
}

/// All tables.
pub(crate) const TABLES: &[Table] = &[
    Table {
        name: "runs",
        columns: &[
            ("run", Text),
            ("job", Text),
            ("outcome", Text),
            ("now", Time),
            ("started", Time),
            ("finished", Time),
            ("seconds", Real),
            ("error", Text),
            ("continues", Text),
            ("from_day", Day),
            ("to_day", Day),
            ("forced", Truth),
            ("rebuilt", Truth),
            ("rows_read", Number),
            ("rows_accepted", Number),
            ("rows_filtered", Number),
            ("rows_rejected", Number),
            ("cells", Number),
            ("bytes_in", Number),
            ("bytes_out", Number),
            ("published", Number),
            ("failed", Number),
            ("new_attempts", Number),
        ],
        rows: Of::Run(run),
    },
    Table {
        name: "loads",
        columns: &[
            ("run", Text),
            ("job", Text),
            ("table_name", Text),
            ("source", Text),
            ("version_before", Number),
            ("version", Number),
            ("inputs", Number),
            ("windows_rebuilt", Number),
            ("ssts", Number),
            ("rows_read", Number),
            ("rows_accepted", Number),
            ("rows_filtered", Number),
            ("rows_rejected", Number),
            ("rows_written", Number),
            ("cells", Number),
            ("overwritten", Number),
            ("bytes_in", Number),
            ("bytes_out", Number),
            ("inputs_unchanged", Number),
            ("repeated_times", Number),
            ("cut_times", Number),
        ],
        rows: Of::Parts(loads),
    },
    Table {
        name: "inputs",
        columns: &[
            ("run", Text),
            ("job", Text),
            ("table_name", Text),
            ("path", Text),
            ("state", Text),
            ("same_as", Text),
        ],
        rows: Of::Parts(inputs),
    },
    Table {
        name: "partitions",
        columns: &[
            ("run", Text),
            ("job", Text),
            ("export", Text),
            ("label", Text),
            ("part", Text),
            ("reason", Text),
            ("state", Text),
            ("rows", Number),
            ("bytes", Number),
            ("error", Text),
        ],
        rows: Of::Parts(partitions),
    },
    Table {
        name: "checks",
        columns: &[
            ("run", Text),
            ("job", Text),
            ("check_name", Text),
            ("checked", Text),
            ("label", Text),
            ("rule", Text),
            ("severity", Text),
            ("measured", Number),
            ("passed", Truth),
        ],
        rows: Of::Parts(checks),
    },
    Table {
        name: "attempts",
        columns: &[
            ("run", Text),
            ("job", Text),
            ("stage", Text),
            ("name", Text),
            ("attempt", Number),
            ("failed_at", Time),
            ("wait_seconds", Number),
            ("error", Text),
        ],
        rows: Of::Parts(attempts),
    },
    Table {
        name: "rejects",
        columns: &[
            ("run", Text),
            ("job", Text),
            ("file", Text),
            ("line", Number),
            ("table_name", Text),
            ("column_name", Text),
            ("reason", Text),
            ("raw", Text),
        ],
        rows: Of::Rejects(reject),
    },
    Table {
        name: "failing_rows",
        columns: &[
            ("run", Text),
            ("job", Text),
            ("check_name", Text),
            ("checked", Text),
            ("label", Text),
            ("rule", Text),
            ("row", Text),
        ],
        rows: Of::Failing(failing),
    },
];

fn run(record: &RunRecord, state: &str) -> Row {
    let totals = record.totals();
    let parts = |state: PartState| record.exports.iter().filter(|part| part.state == state).count();
    let day = |day: Option<_>| day.map_or(Value::Null, |day| Value::Day(Date32Type::from_naive_date(day)));
    let took = record.finished.map(|finished| Value::Real((finished - record.started) as f64 / 1e6));
    vec![
        (&record.run).into(),
        (&record.job).into(),
        state.into(),
        Value::Time(record.now),
        Value::Time(record.started),
        record.finished.map_or(Value::Null, Value::Time),
        took.unwrap_or(Value::Null),
        record.error.as_ref().into(),
        record.continues.as_ref().into(),
        day(record.asked.from),
        day(record.asked.to),
        record.asked.force.into(),
        record.asked.rebuild.into(),
        totals.rows_read.into(),
        totals.rows_accepted.into(),
        totals.rows_filtered.into(),
        totals.rows_rejected.into(),
        totals.cells.into(),
        totals.bytes_in.into(),
        totals.bytes_out.into(),
        parts(PartState::Published).into(),
        (parts(PartState::Failed) + parts(PartState::Checks)).into(),
        record.attempts.len().into(),
    ]
}

fn loads(record: &RunRecord, rows: &mut Vec<Row>) {
    rows.extend(record.loads.iter().map(|load| {
        let stats = &load.stats;
        vec![
            (&record.run).into(),
            (&record.job).into(),
            (&load.table).into(),
            (&load.source).into(),
            load.before.into(),
            load.version.into(),
            load.count_all().into(),
            load.rebuilt.len().into(),
            load.ssts.len().into(),
            stats.rows_read.into(),
            stats.rows_accepted.into(),
            stats.rows_filtered.into(),
            stats.rows_rejected.into(),
            stats.rows_written.into(),
            stats.cells.into(),
            stats.overwritten.into(),
            stats.bytes_in.into(),
            stats.bytes_out.into(),
            load.count(InputState::Unchanged).into(),
            stats.repeated_times.into(),
            stats.cut_times.into(),
        ]
    }));
}

fn inputs(record: &RunRecord, rows: &mut Vec<Row>) {
    let inputs = record.loads.iter().flat_map(|load| load.inputs.iter().map(move |input| (load, input)));
    rows.extend(inputs.map(|(load, input)| {
        vec![
            (&record.run).into(),
            (&record.job).into(),
            (&load.table).into(),
            (&input.path).into(),
            input.state.name().into(),
            input.same_as.as_ref().into(),
        ]
    }));
}

fn partitions(record: &RunRecord, rows: &mut Vec<Row>) {
    rows.extend(record.exports.iter().map(|part| {
        vec![
            (&record.run).into(),
            (&record.job).into(),
            (&part.export).into(),
            (&part.label).into(),
            (&part.part).into(),
            (&part.reason).into(),
            part.state.name().into(),
            part.rows.into(),
            part.bytes.into(),
            part.error.as_ref().into(),
        ]
    }));
}

fn checks(record: &RunRecord, rows: &mut Vec<Row>) {
    rows.extend(record.checks.iter().map(|check| {
        let severity = match check.severity {
            Severity::Error => "error",
            Severity::Warn => "warn",
        };
        vec![
            (&record.run).into(),
            (&record.job).into(),
            (&check.check).into(),
            (&check.on).into(),
            (&check.label).into(),
            (&check.rule).into(),
            severity.into(),
            Value::Number(check.measured),
            check.passed.into(),
        ]
    }));
}

fn attempts(record: &RunRecord, rows: &mut Vec<Row>) {
    rows.extend(record.attempts.iter().map(|attempt| {
        vec![
            (&record.run).into(),
            (&record.job).into(),
            (&attempt.stage).into(),
            (&attempt.name).into(),
            u64::from(attempt.attempt).into(),
            Value::Time(attempt.failed),
            attempt.wait.into(),
            (&attempt.error).into(),
        ]
    }));
}

fn reject(record: &RunRecord, reject: &RejectedRow) -> Row {
    vec![
        (&record.run).into(),
        (&record.job).into(),
        (&reject.file).into(),
        reject.line.into(),
        reject.table.as_ref().into(),
        reject.column.as_ref().into(),
        (&reject.reason).into(),
        (&reject.raw).into(),
    ]
}

fn failing(found: &FailingRow) -> Row {
    let FailingRow { run, job, check, on, label, rule, row } = found;
    [run, job, check, on, label, rule, row].into_iter().map(Value::from).collect()
}

#[cfg(test)]
mod tests {
    use tidetable_record::{AttemptRecord, CheckRecord, ExportRecord, InputRecord, InputState, LoadRecord};

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
            asked: tidetable_record::Asked {
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
                Of::Run(of) => rows.push(of(&record, "ok")),
                Of::Parts(of) => of(&record, &mut rows),
                Of::Rejects(of) => rows.push(of(&record, &row)),
                Of::Failing(of) => rows.push(of(&FailingRow::default())),
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
