//! A job at a glance as text: a line an export, the newest runs, checks that failed, the steps of its lineage.

use std::collections::BTreeSet;
use std::io::Write;

use chrono_tz::Tz;
use serde_json::{Value, json};
use tidetable_job::Per;
use tidetable_runner::plan::ranges;
use tidetable_runner::report::{DayOf, DayState, Overview};

use super::stored::{published, seconds};
use crate::args::Output;
use crate::commands::reports::status::owed_windows;
use crate::error::CliError;
use crate::output::values::{count, time_to_second};
use crate::output::{ResultRows, row};

/// Most runs that the text of a report lists; a page has them all.
const RUNS: usize = 5;

/// One sentence on the job: what is published, and what is not.
pub(super) fn headline(job: &str, overview: &Overview) -> String {
    let newest =
        overview.newest().map_or("nothing is published".to_owned(), |day| format!("there are days up to {day}"));
    let mut wrong = Vec::new();
    for (state, word) in [(DayState::Failed, "failed"), (DayState::Missing, "missing"), (DayState::Late, "late")] {
        let days: Vec<&DayOf> = overview.days.iter().filter(|day| day.state == state).collect();
        if !days.is_empty() {
            let names: Vec<String> = labels(&days).into_iter().collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            wrong.push(format!("{} {word} ({})", amount(&days), ranges(&names)));
        }
    }
    let owed: usize = overview.owed.iter().map(|of| of.windows.len()).sum();
    if owed > 0 {
        wrong.push(format!("{} owed ({})", count(owed as u64, "window"), owed_windows(&overview.owed)));
    }
    let zone = match overview.zone {
        Tz::UTC => String::new(),
        zone => format!(" Days are of {zone}."),
    };
    match wrong.as_slice() {
        [] => format!("{job}: {newest}, none is missing, failed or late.{zone}"),
        wrong => format!("{job}: {newest}; {}.{zone}", wrong.join(", ")),
    }
}

/// Labels of the days, or of the months where a part covers one, each once: a day of several exports is one day.
fn labels(days: &[&DayOf]) -> BTreeSet<String> {
    days.iter().map(|day| label(day)).collect()
}

fn label(day: &DayOf) -> String {
    match day.per {
        Per::Month => day.day.format("%Y-%m").to_string(),
        _ => day.day.to_string(),
    }
}

/// How many days that are, in words; whole months where a part covers one.
fn amount(days: &[&DayOf]) -> String {
    let (months, single): (Vec<&DayOf>, Vec<&DayOf>) = days.iter().copied().partition(|day| day.per == Per::Month);
    let counts = [(labels(&single).len() as u64, "day"), (labels(&months).len() as u64, "month")];
    let words: Vec<String> =
        counts.iter().filter(|(number, _)| *number > 0).map(|(number, unit)| count(*number, unit)).collect();
    words.join(" and ")
}

/// The number of days; of an export by month, the months and their days.
fn number(days: &[&DayOf]) -> Value {
    match days.iter().any(|day| day.per == Per::Month) {
        true => json!(format!("{} ({})", amount(days), count(days.len() as u64, "day"))),
        false => json!(days.len()),
    }
}

/// Writes the text; in formats for programs, the days only.
pub(super) fn write(
    job: &str,
    overview: &Overview,
    states: &[&str],
    output: Output,
    out: &mut impl Write,
) -> Result<(), CliError> {
    if output == Output::Csv {
        return days(overview).write(output, out);
    }
    writeln!(out, "{}", headline(job, overview))?;
    exports(overview).write(output, out)?;
    runs(overview, states).write(output, out)?;
    if !overview.rules.is_empty() {
        checks(overview).write(output, out)?;
    }
    steps(overview).write(output, out)
}

fn exports(overview: &Overview) -> ResultRows {
    let mut rows = ResultRows::new(&[
        "export",
        "first day",
        "last day",
        "published",
        "late",
        "sealed",
        "missing",
        "failed",
        "rejected rows",
    ])
    .minor(&["rejected rows", "sealed", "first day", "last day"]);

    let names: BTreeSet<&str> = overview.days.iter().map(|day| day.of.as_str()).collect();
    for name in names {
        let number_of = |state| number(&overview.in_state(name, state).collect::<Vec<_>>());
        let of_export: Vec<_> = overview.days.iter().filter(|day| day.of == name).collect();
        rows.push(row![
            name,
            of_export.iter().map(|day| day.day).min().map(|day| day.to_string()),
            of_export.iter().map(|day| day.day).max().map(|day| day.to_string()),
            number_of(DayState::Published),
            number_of(DayState::Late),
            number_of(DayState::Sealed),
            number_of(DayState::Missing),
            number_of(DayState::Failed),
            of_export.iter().map(|day| day.rejected).sum::<u64>()
        ]);
    }
    rows
}

fn days(overview: &Overview) -> ResultRows {
    let mut rows = ResultRows::new(&["of", "day", "state", "rows", "rejected", "run"]).ids(&["run"]);
    for day in &overview.days {
        rows.push(row![day.of, day.day.to_string(), day.state.name(), day.rows, day.rejected, day.run]);
    }
    rows
}

fn runs(overview: &Overview, states: &[&str]) -> ResultRows {
    let mut rows = ResultRows::new(&["run", "outcome", "began", "seconds", "read", "rejected", "published"])
        .ids(&["run"])
        .minor(&["seconds", "read", "published"]);
    for (record, state) in overview.runs.iter().zip(states).rev().take(RUNS) {
        let (read, rejected) = (record.totals().rows_read, record.all_rejected());
        rows.push(row![
            record.run,
            *state,
            time_to_second(record.started),
            seconds(record),
            read,
            rejected,
            published(record)
        ]);
    }
    rows
}

fn checks(overview: &Overview) -> ResultRows {
    let mut rows = ResultRows::new(&["check", "rule", "on", "last", "failed", "of"]);
    for rule in &overview.rules {
        let failed = rule.values.iter().filter(|value| !value.passed).count();
        let last = rule.values.last().map(|value| value.measured);
        rows.push(row![rule.check, rule.rule, rule.on, last, failed, rule.values.len()]);
    }
    rows
}

fn steps(overview: &Overview) -> ResultRows {
    let mut rows = ResultRows::new(&["from", "name", "into", "into name", "items", "rows", "rejected"])
        .minor(&["rejected", "items", "rows"]);
    for step in &overview.steps {
        let (from, into) = (&step.from, &step.into);
        rows.push(row![from.kind.name(), from.name, into.kind.name(), into.name, step.items, step.rows, step.rejected]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use tidetable_runner::record::OwedRecord;
    use tidetable_runner::report::OwedOf;

    use super::*;

    #[test]
    fn a_day_of_two_exports_is_one_day() {
        let day = |of: &str, day: &str, state| DayOf {
            of: of.to_owned(),
            day: day.parse().unwrap(),
            per: Per::Day,
            state,
            rows: 0,
            rejected: 0,
            run: None,
        };
        let days = vec![
            day("E", "2020-01-01", DayState::Missing),
            day("F", "2020-01-01", DayState::Missing),
            day("F", "2020-01-02", DayState::Missing),
        ];
        let window = OwedRecord { window: "2020-01-01".to_owned(), ..OwedRecord::default() };
        let owed = vec![OwedOf { table: "T".to_owned(), windows: vec![window] }];
        let overview = Overview { days, owed, ..Overview::default() };
        let said = "j: nothing is published; 2 days missing (2020-01-01 to 2020-01-02), 1 window owed (T: 2020-01-01).";
        assert_eq!(headline("j", &overview), said);
        let abroad = Overview { zone: Tz::Europe__Paris, ..overview };
        assert_eq!(headline("j", &abroad), format!("{said} Days are of Europe/Paris."));
    }

    #[test]
    fn months_are_counted_as_months() {
        let first = chrono::NaiveDate::from_ymd_opt(2020, 1, 1).unwrap();
        let day = |day: chrono::NaiveDate| DayOf {
            of: "M".to_owned(),
            day,
            per: Per::Month,
            state: DayState::Failed,
            rows: 0,
            rejected: 0,
            run: None,
        };
        let days: Vec<DayOf> = first.iter_days().take(60).map(day).collect();
        assert_eq!(number(&days.iter().collect::<Vec<_>>()), "2 months (60 days)");
        let overview = Overview { days, ..Overview::default() };
        assert_eq!(headline("j", &overview), "j: nothing is published; 2 months failed (2020-01, 2020-02).");
    }
}
