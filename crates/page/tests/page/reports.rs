//! Pages on runs and on a table, with names that try to be something else.

use chrono::NaiveDate;
use tidetable_page::view::*;

const NAME: &str = "</script>\u{202e}مفتاح<b>";

/// Runs of a job over three months: one late day, one missing, one failed, some with rejected rows.
pub fn runs() -> RunsPage {
    let first = NaiveDate::from_ymd_opt(2026, 1, 20).unwrap();
    let day = |(at, day): (usize, NaiveDate)| CalendarDay {
        day,
        state: match at {
            8 => DayState::Late,
            30 => DayState::Missing,
            41 => DayState::Failed,
            43 => DayState::Sealed,
            _ => DayState::Published,
        },
        rows: 9_600 + at as u64,
        rejected: u64::from(at % 13 == 5) * 4,
    };
    let calendar =
        |of: &str| Calendar { of: of.to_owned(), days: first.iter_days().take(45).enumerate().map(day).collect() };
    let run = |at: u32| RunBar {
        run: format!("01KAN3ZJ6Q8V3W5X7Y9Z1A{at:04}"),
        began: 1_768_900_000_000_000 + i64::from(at) * 86_400_000_000,
        seconds: (at != 41).then_some(1.0 + f64::from(at % 7) / 3.0),
        outcome: match at {
            8 => "failed",
            30 => "partial",
            41 => "killed",
            _ => "ok",
        }
        .to_owned(),
        rows: 9_600 + u64::from(at % 5) * 700,
        rejected: u64::from(at % 13 == 5) * 4,
        published: 1,
        error: (at == 8).then(|| format!("no space left on {NAME}")),
    };
    let check = |check: &str, strict, most: i64| CheckSeries {
        check: check.to_owned(),
        on: "DAY".to_owned(),
        rule: format!("not_null {NAME}"),
        strict,
        points: (0..45)
            .map(|at| CheckPoint {
                label: (first + chrono::Days::new(at)).to_string(),
                measured: if at % 13 == 5 { most } else { 0 },
                passed: at % 13 != 5,
            })
            .collect(),
    };
    let node = |kind: &str, name: &str, holds: &str| FlowNode {
        kind: kind.to_owned(),
        name: name.to_owned(),
        holds: holds.to_owned(),
    };
    RunsPage {
        title: format!("Runs of smart-meters {NAME}"),
        subtitle: "Readings of meters. Days of Europe/Berlin.".to_owned(),
        command: "tidetable report smart-meters --report page.html".to_owned(),
        verdict: Verdict {
            headline: "smart-meters: there are days up to 2026-03-05; 1 day failed, 1 day missing, 1 day late."
                .to_owned(),
            reasons: vec!["The last run began at 2026-03-06T01:30:00Z and is ok.".to_owned()],
            turns: Vec::new(),
        },
        calendars: vec![calendar("DAY"), calendar(NAME)],
        runs: (0..45).map(run).collect(),
        checks: vec![check("complete", true, 4), check(NAME, false, 12)],
        lineage: Flow {
            nodes: vec![
                node("source", "readings", "45 files, 432,990 rows"),
                node("table", "SENSOR", "432,970 source rows"),
                node("table", "SENSOR_HOURLY_BY_DISTRICT_AND_TARIFF", "18,041 source rows"),
                node("export", "DAY", "43 parts, 412,000 rows"),
                node("export", NAME, "43 parts, 1,032 rows"),
            ],
            edges: [[0, 1], [1, 2], [1, 3], [2, 4]].map(|[from, into]| FlowEdge { from, into }).to_vec(),
        },
        data: serde_json::json!({ "job": NAME }),
    }
}

/// A table.
pub fn table() -> TablePage {
    TablePage {
        title: format!("Table {NAME}"),
        subtitle: "Of job smart-meters, version 14: 1,400 rows, 33,600 cells, 41 KiB in 14 files.".to_owned(),
        command: "tidetable describe SENSOR --report page.html".to_owned(),
        row_key: "{meter:010}#{ts:%Y%m%d}".to_owned(),
        keys: vec!["0000000001#20180102".to_owned(), NAME.to_owned()],
        families: vec![FamilyText {
            name: NAME.to_owned(),
            gc: "gc maxversions=1".to_owned(),
            columns: vec![("{ts:%H%M}".to_owned(), "{kwh}".to_owned()), (NAME.to_owned(), "(empty)".to_owned())],
        }],
        fields: vec![("meter".to_owned(), "Int64".to_owned()), (NAME.to_owned(), "Utf8".to_owned())],
        bytes: vec![("METER:{ts:%H%M}".to_owned(), 31_204), ("row keys".to_owned(), 4_112), (NAME.to_owned(), 12)],
        by_time: Some(TimeChart {
            slice: 3_600,
            measure: NAME.to_owned(),
            slices: (0..150)
                .filter(|hour| hour % 40 != 7)
                .map(|hour| TimeSlice {
                    start: 1_514_764_800_000_000 + hour * 3_600_000_000,
                    records: 100 + hour.unsigned_abs(),
                    mean: Some(hour as f64 / 7.0),
                })
                .collect(),
        }),
        windows: (1..15)
            .map(|day| WindowBar {
                window: format!("2018-01-{day:02}"),
                files: 1,
                rows: 100,
                cells: 2_400,
                bytes: 2_900 + day * 13,
                shares_files: day < 5,
            })
            .collect(),
        versions: (1..4)
            .map(|number| VersionText {
                number,
                at: Some(1_768_900_000_000_000),
                files: number,
                bytes: number * 2_900,
                inputs: number,
            })
            .collect(),
        data: serde_json::json!({ "table": NAME }),
    }
}
