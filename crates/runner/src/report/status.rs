//! Status of jobs: their last runs, the age of their data and published parts, and what is missing.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use chrono::NaiveDate;
use chrono_tz::Tz;
use serde::Serialize;
use tidetable_blobs::Blobs;
use tidetable_export::{LogFinding, log_findings};
use tidetable_ingest::{LeftWindow, owed_in};
use tidetable_job::{Job, Per, Period, Project, TableInput};
use tidetable_layout::time::{HOUR, window_name};
use tidetable_record::{
    Failures, Holder, InputRecord, InputState, Outcome, OwedRecord, OwingInput, PartState, PushState, RunRecord, Runs,
    Seen, holder, state_of, unrecorded,
};
use tidetable_store::published::Published;
use tidetable_store::{Store, Version};

use crate::fault::error::RunError;
use crate::marks::Marks;
use crate::plan::HeldBack;
use crate::report::days::{age, begun, gaps, is_overdue, period_of};

/// Tolerated difference between clocks. Microseconds.
pub(crate) const CLOCK_SKEW: i64 = HOUR;

/// The state of a run that goes on.
const RUNNING: &str = "running";

/// Days of an export or a table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DaysOf {
    /// The export or table.
    pub of: String,
    /// Labels of the days, ascending.
    pub days: Vec<String>,
}

/// Windows of a table that stay as they are, because inputs of them are gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OwedOf {
    /// Name of the table that owes them.
    pub table: String,
    /// The windows that stay as they are, ascending.
    pub windows: Vec<OwedRecord>,
}

/// The status of a job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Status {
    /// Name of the job.
    pub job: String,
    /// Its time zone: that of the days of exports and checks.
    pub zone: Tz,
    /// Record of its last run; `None` if it never ran.
    pub last: Option<RunRecord>,
    /// Its outcome, `running`, or `killed`.
    pub state: Option<&'static str>,
    /// Who holds its lock, while it runs.
    pub holder: Option<Holder>,
    /// The latest logical time of a successful run, microseconds. If that was in the future when the run began, the
    /// start of the run.
    pub good: Option<i64>,
    /// End of the newest UTC day with events in its tables, microseconds. Here and below, days that have not begun count only if
    /// there are no others.
    pub data_until: Option<i64>,
    /// End of the newest published day, of the export that is furthest behind.
    pub published_until: Option<i64>,
    /// Whether it has exports.
    pub publishes: bool,
    /// Missing days between the first and the last of an export; of a table, if the job publishes nothing.
    pub gaps: Vec<DaysOf>,
    /// Days whose last attempt to publish failed.
    pub failed: Vec<DaysOf>,
    /// Changed days that stay as published, because cells of them have passed their `maxage`.
    pub sealed: Vec<DaysOf>,
    /// Windows of its tables that could not be rebuilt when inputs changed.
    pub owed: Vec<OwedOf>,
    /// Rejected rows of the current inputs.
    pub rejected: u64,
    /// What was pushed of its tables into Bigtable.
    pub pushed: Vec<PushedTable>,
}

/// What was pushed of a table into a target.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PushedTable {
    /// Name of the table in this store.
    pub table: String,
    /// The table of Bigtable.
    pub target: String,
    /// The version that is there; 0 if none is yet.
    pub version: u64,
    /// The newest version here.
    pub newest: u64,
    /// When that was pushed, microseconds.
    pub finished: Option<i64>,
    /// Whether a push has begun since and not ended.
    pub unfinished: bool,
}

fn pushed(blobs: &dyn Blobs, tables: &[(String, Version)]) -> Result<Vec<PushedTable>, RunError> {
    let mut out = Vec::new();
    for (table, version) in tables {
        for state in PushState::of_table(blobs, table)? {
            out.push(PushedTable {
                table: table.clone(),
                target: state.target,
                version: state.version,
                newest: version.number,
                finished: state.finished,
                unfinished: state.running.is_some(),
            });
        }
    }
    Ok(out)
}

/// The windows that tables owe. Which inputs are gone is what the last run saw.
fn owed(blobs: &dyn Blobs, job: &str, tables: &[(String, Version)]) -> Vec<OwedOf> {
    let seen = Seen::load(blobs, job);
    let mut owed = Vec::new();
    for (table, version) in tables {
        let windows = owed_in(version).into_iter();
        let windows: Vec<OwedRecord> = windows.map(|left| owed_window(left, table, version, &seen)).collect();
        if !windows.is_empty() {
            owed.push(OwedOf { table: table.clone(), windows });
        }
    }
    owed
}

/// The record of a window that a table owes, with those of its inputs that a run has `seen` gone or emptied.
fn owed_window(left: LeftWindow, table: &str, version: &Version, seen: &Seen) -> OwedRecord {
    let mut gone = Vec::new();
    for input in version.inputs.iter().filter(|input| input.touches().any(|start| start == left.start)) {
        let mut absent = [InputState::Gone, InputState::Empty].into_iter();
        if absent.any(|state| seen.knows(table, &InputRecord::new(&input.path, state))) {
            gone.push(input.path.clone());
        }
    }

    OwedRecord {
        window: window_name(version.table.spec.window, left.start),
        gone,
        inputs: left.inputs.into_iter().map(|(path, rows)| OwingInput { path, rows }).collect(),
        lost: left.lost,
    }
}

/// The status of all jobs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Statuses {
    /// One status for each job, by name.
    pub jobs: Vec<Status>,
    /// What could not be read.
    pub problems: Vec<String>,
}

impl Status {
    /// Whether its last good run, or its published parts (without exports, its data), are older than `limit` at `now`.
    pub fn is_overdue(&self, now: i64, limit: i64) -> bool {
        let newest = if self.publishes { self.published_until } else { self.data_until };
        is_overdue(now, limit, self.good) || is_overdue(now, limit, newest)
    }

    /// Microseconds from `until` to `now`.
    pub fn age(now: i64, until: Option<i64>) -> Option<i64> {
        until.map(|until| age(now, until))
    }
}

/// The status of the jobs of a store, and of those of the project if there is one: of `only` some, unless it is empty. `clock` is the clock,
/// microseconds since the epoch: records with times ahead of it do not count for ages.
///
/// # Errors
/// If the store cannot be listed.
pub fn statuses(store: &Store, project: Option<&Project>, only: &[&str], clock: i64) -> Result<Statuses, RunError> {
    let mut collection = Collection {
        store,
        blobs: store.blobs().as_ref(),
        credible: clock.saturating_add(CLOCK_SKEW),
        jobs: BTreeMap::new(),
        problems: Vec::new(),
    };
    if let Some(project) = project {
        collection.add_project(project);
    }

    collection.add_tables(project)?;
    if let Some(project) = project {
        collection.add_held_back(project, only);
    }
    collection.add_exports()?;
    collection.add_runs()?;
    collection.add_failures();

    let Collection { jobs, problems, blobs, .. } = collection;
    let mut found = Statuses { jobs: Vec::new(), problems };
    for (name, known) in jobs.into_iter().filter(|(name, _)| only.is_empty() || only.contains(&name.as_str())) {
        found.jobs.push(known.status(name, blobs, clock)?);
    }
    Ok(found)
}

/// The facts of all jobs, as they are collected from a store.
struct Collection<'a> {
    store: &'a Store,
    blobs: &'a dyn Blobs,
    /// The latest time that a record may have, microseconds.
    credible: i64,
    jobs: BTreeMap<String, JobFacts>,
    /// What could not be read.
    problems: Vec<String>,
}

impl Collection<'_> {
    fn job(&mut self, name: &str) -> &mut JobFacts {
        self.jobs.entry(name.to_owned()).or_default()
    }

    /// Adds the zones and exports of the jobs of a project.
    fn add_project(&mut self, project: &Project) {
        for name in project.jobs() {
            let known = self.job(&name);
            if let Ok(job) = Job::load(project, &name) {
                known.tz = job.timezone;
                known.exports = Some(job.exports.iter().map(|export| (export.name.clone(), export.per)).collect());
                let cataloged = job.exports.iter().filter_map(|export| Some((export, job.catalog_of(export)?)));
                let tables = cataloged.map(|(export, catalog)| (export.name.clone(), catalog.table(&export.name)));
                known.cataloged = tables.collect();
            } else {
                let problem = format!(
                    "the job file of {name} has mistakes, which `tidetable check {name}` names: no run of it begins, and days are \
                     taken for those of UTC"
                );
                self.problems.push(problem);
            }
        }
    }

    /// Adds the newest versions of tables, and notes those that are lost.
    fn add_tables(&mut self, project: Option<&Project>) -> Result<(), RunError> {
        for table in self.store.tables()? {
            match self.store.table(&table).latest() {
                Ok(Some(version)) => {
                    let known = self.jobs.entry(version.table.job.clone()).or_default();
                    known.tables.push((table, version));
                }
                Ok(None) => {}
                Err(error) => self.problems.push(error.to_string()),
            }
        }

        if let Some(project) = project {
            let lost = Marks::of(project).lost_tables(project, self.store)?;
            self.problems.extend(lost.iter().map(ToString::to_string));
        }
        Ok(())
    }

    /// Notes derived tables of the jobs `only` (all if it is empty) that cannot be brought up to date.
    fn add_held_back(&mut self, project: &Project, only: &[&str]) {
        let jobs = project.jobs();
        for name in jobs.iter().filter(|name| only.is_empty() || only.contains(&name.as_str())) {
            // A job file with mistakes is noted already.
            let Ok(job) = Job::load(project, name) else { continue };
            for table in &job.tables {
                let TableInput::Query { shape, .. } = &table.from else { continue };
                let known = self.jobs.values().flat_map(|known| &known.tables);
                let read: Vec<(String, Version)> =
                    known.filter(|(name, _)| shape.reads.contains(name)).cloned().collect();
                self.problems.extend(HeldBack::of(table, &read).map(|held_back| held_back.note));
            }
        }
    }

    /// Adds the lists of exports, and notes where the log of a table tells of other files, or a catalog is behind.
    fn add_exports(&mut self) -> Result<(), RunError> {
        for list in self.blobs.list("exports")?.iter().filter_map(|name| name.strip_suffix(".json")) {
            let list = match Published::load(self.blobs, list) {
                Ok(list) => list,
                Err(error) => {
                    self.problems.push(error.to_string());
                    continue;
                }
            };

            // While the job runs, its list is ahead of the log, and that of the catalog.
            if holder(self.blobs, &list.job)?.is_none() {
                let table = self.jobs.get(&list.job).and_then(|known| known.cataloged.get(&list.name));
                if let Some((table, version)) = table.and_then(|table| Some((table, list.owed_to(table)?))) {
                    let owed = format!("{table} lacks version {version} of {}: the next run commits it", list.name);
                    self.problems.push(owed);
                }
                for LogFinding { path, damage, .. } in log_findings(self.blobs, &list)? {
                    self.problems.push(format!("{path}: {damage}"));
                }
            }
            self.jobs.entry(list.job.clone()).or_default().lists.push(list);
        }
        Ok(())
    }

    /// Adds the records of runs.
    fn add_runs(&mut self) -> Result<(), RunError> {
        for record in Runs::of(self.blobs).newest_first(None)? {
            let record = match record {
                Ok(record) => record,
                Err(error) => {
                    self.problems.push(error.to_string());
                    continue;
                }
            };

            if record.started.max(record.now) > self.credible {
                self.problems.push(from_the_future(&record, self.credible));
            }
            let credible = self.credible;
            self.jobs.entry(record.job.clone()).or_default().note(record, credible);
        }
        Ok(())
    }

    /// Adds the failures that the next runs try again, and runs that could not write their records.
    fn add_failures(&mut self) {
        for (name, known) in &mut self.jobs {
            match Failures::load(self.blobs, name) {
                Ok(failures) => {
                    for of in failures.of.keys() {
                        known.failed.insert(of.clone(), failures.labels(of).into_keys().collect());
                    }
                }
                Err(error) => self.problems.push(error.to_string()),
            }
            known.note_unrecorded(name, self.blobs);
        }
    }
}

/// The note on a record with times ahead of the clock.
fn from_the_future(record: &RunRecord, credible: i64) -> String {
    let time = |micros: i64| chrono::DateTime::from_timestamp_micros(micros).map(|time| time.to_rfc3339());
    if record.started > credible {
        let began = time(record.started).unwrap_or_default();
        return format!(
            "runs/{}.json says that the run began at {began}, which is in the future: a clock was wrong, then or now; the record \
             is ignored for ages",
            record.run
        );
    }
    let now = time(record.now).unwrap_or_default();
    format!("run {} had the logical time {now}, which is in the future: its age counts from its start", record.run)
}

/// What is known of a job.
#[derive(Default)]
struct JobFacts {
    tz: Tz,
    /// Its exports, if its job file is readable.
    exports: Option<Vec<(String, Per)>>,
    /// Tables of its catalog by export, if its job file is readable.
    cataloged: BTreeMap<String, String>,
    tables: Vec<(String, Version)>,
    lists: Vec<Published>,
    last: Option<RunRecord>,
    good: Option<i64>,
    /// Parts whose newest attempt is known.
    tried: HashSet<(String, String)>,
    failed: BTreeMap<String, BTreeSet<String>>,
    sealed: BTreeMap<String, BTreeSet<String>>,
}

impl JobFacts {
    /// Adds runs, the newest first; those that began after `credible` do not count for ages.
    fn note(&mut self, record: RunRecord, credible: i64) {
        let began = record.started <= credible;
        if record.outcome == Outcome::Ok && began {
            // A run without a start, as in tests, has its logical time only.
            let known_by = if record.started == 0 { record.now } else { record.now.min(record.started) };
            self.good = self.good.max(Some(known_by));
        }

        for part in &record.exports {
            if !self.tried.insert((part.export.clone(), part.label.clone())) {
                continue;
            }
            if part.state == PartState::Sealed {
                self.sealed.entry(part.export.clone()).or_default().insert(part.label.clone());
            }
        }

        match &self.last {
            // A record with a time in the future is older than any made with the correct clock, whatever its name.
            Some(last) if last.started > credible && began => self.last = Some(record),
            Some(_) => {}
            None => self.last = Some(record),
        }
    }

    /// Adds a failed run that could not write its record, as on a full disk.
    fn note_unrecorded(&mut self, job: &str, blobs: &dyn Blobs) {
        let Some(unrecorded) = unrecorded(blobs, job) else { return };
        match &mut self.last {
            Some(last) if last.run > unrecorded.run => {}
            Some(last) if last.run == unrecorded.run => last.end_as(&unrecorded),
            last => *last = Some(unrecorded),
        }
    }

    /// Whether the job has an export of this name, as far as is known.
    fn has_export(&self, name: &str) -> bool {
        self.exports.as_ref().is_none_or(|exports| exports.iter().any(|(export, _)| export == name))
    }

    fn has_table(&self, name: &str) -> bool {
        self.tables.iter().any(|(table, _)| table == name)
    }

    /// Forgets exports that the job has no more, and adds failed parts of the last run: where the disk was full, it could not
    /// note them for the next one.
    fn settle(&mut self) {
        for part in self.last.iter().flat_map(|last| &last.exports).filter(|part| part.state.is_failure()) {
            self.failed.entry(part.export.clone()).or_default().insert(part.label.clone());
        }

        let mut lists = std::mem::take(&mut self.lists);
        lists.retain(|list| self.has_export(&list.name));
        let mut failed = std::mem::take(&mut self.failed);
        failed.retain(|of, _| self.has_export(of) || self.has_table(of));
        let mut sealed = std::mem::take(&mut self.sealed);
        sealed.retain(|export, _| self.has_export(export));
        (self.lists, self.failed, self.sealed) = (lists, failed, sealed);
    }

    /// The exports that are published by time, as far as the job file tells.
    fn exports_by_time(&self) -> impl Iterator<Item = &str> {
        let exports = self.exports.iter().flatten().filter(|(_, per)| *per != Per::Query);
        exports.map(|(name, _)| name.as_str())
    }

    fn status(mut self, job: String, blobs: &dyn Blobs, clock: i64) -> Result<Status, RunError> {
        self.settle();

        // An export with `per = "query"` has no day: it is as new as the data.
        let published = self.lists.iter().map(periods_of_list).filter(|periods| !periods.is_timeless());
        let published: Vec<Periods<'_>> = published.map(|periods| periods.begun_by(self.tz, clock)).collect();
        let data = self.tables.iter().map(|(table, version)| periods_of_table(table, version));
        let data: Vec<Periods<'_>> = data.map(|periods| periods.begun_by(Tz::UTC, clock)).collect();

        let publishes = match &self.exports {
            Some(_) => self.exports_by_time().next().is_some(),
            None => !published.is_empty(),
        };
        // An export without published parts is behind all others.
        let nothing_yet = self
            .exports_by_time()
            .any(|name| !published.iter().any(|periods| periods.name == name && !periods.there.is_empty()));
        let published_until = published.iter().filter_map(|periods| periods.until(self.tz)).min();
        let gaps = match publishes {
            true => published.iter().filter_map(|periods| periods.missing(self.tz)).collect(),
            false => data.iter().filter_map(|periods| periods.missing(Tz::UTC)).collect(),
        };

        let state = self.last.as_ref().map(|record| state_of(blobs, record, clock)).transpose()?;
        let runs = state == Some(RUNNING);
        Ok(Status {
            pushed: pushed(blobs, &self.tables)?,
            owed: owed(blobs, &job, &self.tables),
            holder: if runs { holder(blobs, &job)? } else { None },
            job,
            zone: self.tz,
            state,
            good: self.good,
            data_until: data.iter().filter_map(|periods| periods.until(Tz::UTC)).max(),
            published_until: published_until.filter(|_| !nothing_yet),
            publishes,
            gaps,
            rejected: rejected(&self.tables),
            failed: days_of(self.failed),
            sealed: days_of(self.sealed),
            last: self.last,
        })
    }
}

/// Labels by export or table, as a status lists them.
fn days_of(days: BTreeMap<String, BTreeSet<String>>) -> Vec<DaysOf> {
    days.into_iter().map(|(of, days)| DaysOf { of, days: days.into_iter().collect() }).collect()
}

/// The periods of an export or a table.
struct Periods<'a> {
    name: &'a str,
    there: BTreeSet<Period>,
    /// Periods whose query gave no rows of the records that there are.
    empty: BTreeSet<Period>,
}

impl Periods<'_> {
    fn is_timeless(&self) -> bool {
        self.there.first().is_some_and(|period| period.per == Per::Query)
    }

    /// With the periods that have [begun].
    fn begun_by(self, tz: Tz, clock: i64) -> Self {
        Self { there: begun(tz, self.there, clock), ..self }
    }

    /// The end of the newest period.
    fn until(&self, tz: Tz) -> Option<i64> {
        self.there.last().map(|period| period.bounds(tz).end)
    }

    fn missing(&self, tz: Tz) -> Option<DaysOf> {
        let days: Vec<String> = gaps(tz, &self.there, &self.empty).iter().map(Period::label).collect();
        (!days.is_empty()).then(|| DaysOf { of: self.name.to_owned(), days })
    }
}

fn periods_of_list(list: &Published) -> Periods<'_> {
    let there = list.parts.keys().filter_map(|label| period_of(label)).collect();
    let empty = list.empty.iter().filter(|(_, made)| !made.is_gap).filter_map(|(label, _)| period_of(label)).collect();
    Periods { name: &list.name, there, empty }
}

/// UTC days of windows with cells, in files of their own or in multi-window files.
fn periods_of_table<'a>(name: &'a str, version: &Version) -> Periods<'a> {
    let shared: Vec<_> = version.ssts().filter_map(|sst| sst.multi_window.as_ref()).collect();
    let held = version
        .windows
        .iter()
        .filter(|window| !window.ssts.is_empty() || shared.iter().any(|joined| joined.holds(window.start)));
    let days = held.flat_map(|window| window.days.keys()).filter_map(|day| NaiveDate::from_epoch_days(*day));
    Periods { name, there: days.map(Period::day).collect(), empty: BTreeSet::new() }
}

/// Rejected rows. Tables of one source reject the same invalid rows, so the largest number of each source counts.
fn rejected(tables: &[(String, Version)]) -> u64 {
    let mut by_path: BTreeMap<&str, u64> = BTreeMap::new();
    for input in tables.iter().flat_map(|(_, version)| version.inputs.iter()) {
        let most = by_path.entry(&input.path).or_default();
        *most = input.rejected.max(*most);
    }
    by_path.values().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    use tidetable_layout::time::DAY;

    fn nowhere() -> tidetable_blobs::LocalBlobs {
        tidetable_blobs::LocalBlobs::new("/nowhere".into())
    }
    #[test]
    fn days_in_the_future_hide_no_gap_and_no_delay() {
        let of = |days: &[&str]| {
            let there = days.iter().filter_map(|day| period_of(day)).collect();
            Periods { name: "T", there, empty: BTreeSet::new() }.begun_by(Tz::UTC, 10 * DAY)
        };
        let wrong = of(&["1970-01-09", "1970-01-12", "2062-11-20"]);
        assert_eq!(wrong.until(Tz::UTC), Some(12 * DAY));
        assert_eq!(wrong.missing(Tz::UTC).unwrap().days, ["1970-01-10", "1970-01-11"]);
        assert_eq!(of(&["2062-11-20"]).until(Tz::UTC), Some(33_927 * DAY));
    }

    #[test]
    fn what_is_behind_makes_a_job_stale() {
        let day = DAY;
        let status = Status { good: Some(10 * day), data_until: Some(10 * day), ..Status::default() };
        assert!(!status.is_overdue(11 * day, day));
        assert!(status.is_overdue(11 * day + 1, day));
        let published = Status { publishes: true, ..status.clone() };
        assert!(published.is_overdue(10 * day, day), "nothing is published");
        let published = Status { published_until: Some(10 * day), ..published };
        assert!(!published.is_overdue(10 * day, day));
        assert!(Status { good: None, ..published.clone() }.is_overdue(10 * day, day));
        assert!(Status { good: Some(day), ..published }.is_overdue(10 * day, day), "no run since, whatever the data");
    }

    #[test]
    fn the_newest_try_of_a_day_counts() {
        let part = |label: &str, state| tidetable_record::ExportRecord {
            export: "E".to_owned(),
            label: label.to_owned(),
            part: String::new(),
            reason: String::new(),
            state,
            rows: 0,
            bytes: 0,
            error: None,
        };
        let run = |now, outcome, exports| RunRecord { now, outcome, exports, ..RunRecord::default() };
        let mut known = JobFacts::default();
        known.note(run(3, Outcome::Partial, vec![part("b", PartState::Failed), part("c", PartState::Sealed)]), 9);
        known.note(run(1, Outcome::Ok, vec![part("a", PartState::Published), part("b", PartState::Published)]), 9);
        known.note(run(2, Outcome::Ok, vec![part("a", PartState::Failed)]), 9);
        let status = known.status("j".to_owned(), &nowhere(), 0).unwrap();
        let of = |day: &str| vec![DaysOf { of: "E".to_owned(), days: vec![day.to_owned()] }];
        assert_eq!(status.sealed, of("c"));
        assert_eq!((status.good, status.last.unwrap().now, status.state), (Some(2), 3, Some("partial")));
    }

    #[test]
    fn what_a_clock_ahead_recorded_is_not_the_last() {
        let run = |run: &str, started, now, outcome| RunRecord {
            run: run.to_owned(),
            started,
            now,
            outcome,
            ..RunRecord::default()
        };
        let mut known = JobFacts::default();
        known.note(run("3", 900, 900, Outcome::Ok), 100);
        known.note(run("2", 50, 50, Outcome::Failed), 100);
        known.note(run("1", 40, 800, Outcome::Ok), 100);
        let status = known.status("j".to_owned(), &nowhere(), 0).unwrap();
        assert_eq!((status.good, status.last.unwrap().run.as_str(), status.state), (Some(40), "2", Some("failed")));
    }
}
