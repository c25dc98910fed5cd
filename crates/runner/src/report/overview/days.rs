//! Days of exports: published, late, failed, missing.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use chrono_tz::Tz;
use tidetable_job::Per;
use tidetable_record::{ExportRecord, Failures, Outcome, PartState, RunRecord};
use tidetable_store::Version;
use tidetable_store::published::Published;

use crate::report::days::period_of;
use crate::report::status::DaysOf;

/// A day of an export, or of a table of a job without exports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayOf {
    /// The export or table.
    pub of: String,
    /// The day, in the time zone of the job.
    pub day: NaiveDate,
    /// What its parts cover.
    pub per: Per,
    /// The worst state of its parts.
    pub state: DayState,
    /// Rows published; of a month, those of the month.
    pub rows: u64,
    /// Rejected rows of the inputs that hold this day in UTC.
    pub rejected: u64,
    /// The run that published it last, if known.
    pub run: Option<String>,
}

/// How a day is; of several parts of a day, the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DayState {
    /// Published by the first run that could.
    Published,
    /// Published by a later one.
    Late,
    /// Changed, but stays as published, because cells of it have expired.
    Sealed,
    /// Not there, though days before and after it are.
    Missing,
    /// Its last try failed, or a check of it.
    Failed,
}

impl DayState {
    /// Its name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Late => "late",
            Self::Sealed => "sealed",
            Self::Missing => "missing",
            Self::Failed => "failed",
        }
    }
}

/// The days of a job. `runs` are its records, the oldest first.
pub(super) fn days(
    tz: Tz,
    runs: &[RunRecord],
    lists: &[Published],
    versions: &BTreeMap<String, Version>,
    failures: &Failures,
    gaps: &[DaysOf],
) -> Vec<DayOf> {
    let mut found = Days { tz, rejected: rejected(versions), days: BTreeMap::new() };
    let sealed = sealed(runs);
    for list in lists {
        found.note_list(list, runs, &sealed);
    }
    if lists.is_empty() {
        for (table, version) in versions {
            found.note_table(table, version);
        }
    }

    for (of, labels) in &failures.of {
        for (label, failure) in labels {
            found.note(of, label, DayState::Failed, 0, Some(failure.run.as_str()));
        }
    }
    for gap in gaps {
        for label in &gap.days {
            found.note(&gap.of, label, DayState::Missing, 0, None);
        }
    }
    found.days.into_values().collect()
}

struct Days {
    tz: Tz,
    rejected: BTreeMap<NaiveDate, u64>,
    days: BTreeMap<(String, NaiveDate), DayOf>,
}

impl Days {
    /// Adds the published parts of an export. `sealed` are parts by export and label, see [`sealed`].
    fn note_list(&mut self, list: &Published, runs: &[RunRecord], sealed: &BTreeSet<(&str, &str)>) {
        for (label, part) in &list.parts {
            let is_sealed = sealed.contains(&(list.name.as_str(), label.as_str()));
            let state = match (is_sealed, is_late(self.tz, runs, &list.name, label)) {
                (true, _) => DayState::Sealed,
                (false, true) => DayState::Late,
                (false, false) => DayState::Published,
            };
            self.note(&list.name, label, state, part.rows, Some(part.run.as_str()));
        }
    }

    /// Adds the UTC days of a table, as days of a job without exports.
    fn note_table(&mut self, table: &str, version: &Version) {
        for day in version.windows.iter().flat_map(|window| window.days.keys()) {
            let label = NaiveDate::from_epoch_days(*day).map(|day| day.to_string()).unwrap_or_default();
            self.note(table, &label, DayState::Published, 0, None);
        }
    }

    /// Adds a part to the days it covers. A part of an export with `per = "query"` has no days, and is left out.
    fn note(&mut self, of: &str, label: &str, state: DayState, rows: u64, run: Option<&str>) {
        let Some(period) = period_of(label).filter(|period| period.per != Per::Query) else { return };
        let (first, last) = period.days(self.tz);

        for day in first.iter_days().take_while(|day| *day <= last) {
            let rejected = self.rejected.get(&day).copied().unwrap_or_default();
            let known = self.days.entry((of.to_owned(), day)).or_insert_with(|| DayOf {
                of: of.to_owned(),
                day,
                per: period.per,
                state,
                rows: 0,
                rejected,
                run: None,
            });

            known.state = known.state.max(state);
            known.rows += rows;
            known.run = run.map(str::to_owned).max(known.run.take());
        }
    }
}

/// Rejected rows by the last UTC day of the inputs that have them: the day of a rejected row may not be known, each counts once, and
/// the earlier days of an input are mostly those of late rows. Tables of one source reject the same rows, so the largest number
/// of an input counts.
fn rejected(versions: &BTreeMap<String, Version>) -> BTreeMap<NaiveDate, u64> {
    let mut by_input: BTreeMap<&str, (u64, &[i32])> = BTreeMap::new();
    for input in versions.values().flat_map(|version| version.inputs.iter()).filter(|input| input.rejected > 0) {
        let most = by_input.entry(&input.path).or_insert((0, input.days.as_slice()));
        most.0 = most.0.max(input.rejected);
    }

    let mut by_day = BTreeMap::new();
    for (rows, days) in by_input.into_values() {
        if let Some(day) = days.iter().max().and_then(|day| NaiveDate::from_epoch_days(*day)) {
            *by_day.entry(day).or_default() += rows;
        }
    }
    by_day
}

/// Parts whose last try left them as published, because cells of them have expired.
fn sealed(runs: &[RunRecord]) -> BTreeSet<(&str, &str)> {
    let mut last = BTreeMap::new();
    for part in runs.iter().flat_map(|run| &run.exports) {
        last.insert((part.export.as_str(), part.label.as_str()), part.state);
    }
    last.into_iter().filter(|(_, state)| *state == PartState::Sealed).map(|(part, _)| part).collect()
}

/// What a run did about a part.
fn attempt<'a>(run: &'a RunRecord, export: &str, label: &str) -> Option<&'a ExportRecord> {
    run.exports.iter().find(|part| part.export == export && part.label == label)
}

/// Whether a run that came after the end of the part, and could have published it, did not. The job may have had no such
/// export then: runs before the first that names it count only if they failed, and only for parts that ended after the job
/// first ran. Older ones are caught up on.
fn is_late(tz: Tz, runs: &[RunRecord], export: &str, label: &str) -> bool {
    let Some(period) = period_of(label) else { return false };
    let end = period.bounds(tz).end;
    let first =
        runs.iter().position(|run| attempt(run, export, label).is_some_and(|part| part.state == PartState::Published));
    let Some(first) = first else { return false };

    let known = runs.iter().find_map(|run| attempt(run, export, label));
    if known.is_some_and(|part| part.reason.ends_with(" changed")) {
        // It was published before: `clean` has removed the record of that run.
        return false;
    }

    let named = runs.iter().position(|run| run.exports.iter().any(|part| part.export == export)).unwrap_or(first);
    let is_caught_up = runs.first().is_none_or(|run| run.now >= end);
    runs.iter().take(first).enumerate().any(|(at, run)| {
        let failed = !is_caught_up && !matches!(run.outcome, Outcome::Ok | Outcome::Running);
        let is_due = run.now >= end && run.asked.is_whole();
        is_due && (at >= named || failed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidetable_layout::time::DAY;
    use tidetable_record::ExportRecord;

    fn run(now: i64, outcome: Outcome, parts: &[(&str, PartState)]) -> RunRecord {
        let part = |(label, state): &(&str, PartState)| ExportRecord {
            export: "E".to_owned(),
            label: (*label).to_owned(),
            part: String::new(),
            reason: String::new(),
            state: *state,
            rows: 0,
            bytes: 0,
            error: None,
        };
        RunRecord { now, outcome, exports: parts.iter().map(part).collect(), ..RunRecord::default() }
    }

    #[test]
    fn a_day_is_late_after_a_run_that_left_it_out() {
        let late = |runs: &[RunRecord]| is_late(Tz::UTC, runs, "E", "1970-01-02");
        let published = [("1970-01-02", PartState::Published)];
        assert!(!late(&[run(30 * DAY, Outcome::Ok, &published)]), "the first run, however late it came");
        let before = run(DAY, Outcome::Ok, &[("1970-01-01", PartState::Published)]);
        assert!(!late(&[before.clone(), run(2 * DAY, Outcome::Ok, &published)]), "the day had not ended");
        let after = run(2 * DAY, Outcome::Ok, &[("1970-01-01", PartState::Published)]);
        assert!(late(&[after, run(3 * DAY, Outcome::Ok, &published)]));
        let failed = |now| run(now, Outcome::Failed, &[]);
        assert!(!late(&[failed(2 * DAY), run(3 * DAY, Outcome::Ok, &published)]), "the first run failed");
        assert!(late(&[failed(DAY), failed(2 * DAY), run(3 * DAY, Outcome::Ok, &published)]));
        assert!(!late(&[run(2 * DAY, Outcome::Ok, &[]), run(3 * DAY, Outcome::Ok, &published)]), "no such export yet");
        let again = run(9 * DAY, Outcome::Ok, &published);
        assert!(!late(&[run(2 * DAY, Outcome::Ok, &published), again]), "published again is not late");
        assert!(!late(&[before]), "never published by a known run");
        let after = run(2 * DAY, Outcome::Ok, &[("1970-01-01", PartState::Published)]);
        let mut corrected = run(3 * DAY, Outcome::Ok, &published);
        corrected.exports[0].reason = "T changed".to_owned();
        assert!(!late(&[after, corrected]), "published before by a run that is not known any more");
    }

    #[test]
    fn the_worst_part_of_a_day_counts() {
        let mut found = Days { tz: Tz::UTC, rejected: BTreeMap::new(), days: BTreeMap::new() };
        found.note("E", "2020-01-01T03Z", DayState::Late, 5, Some("2"));
        found.note("E", "2020-01-01T04Z", DayState::Published, 7, Some("1"));
        found.note("E", "all", DayState::Failed, 1, None);
        found.note("M", "2020-02", DayState::Published, 1, None);
        let days: Vec<DayOf> = found.days.into_values().collect();
        assert_eq!((days.len(), days[0].state, days[0].rows), (30, DayState::Late, 12));
        assert_eq!((days[0].run.as_deref(), days[29].day.to_string().as_str()), (Some("2"), "2020-02-29"));
    }
}
