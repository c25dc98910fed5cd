//! The publish stage: one file a day of each export, for the days whose cells changed.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;
use tidetable_export::{Outcome, PublishRequest, Reason, publish, record, stale};
use tidetable_sql::{Session, SessionOptions};
use tidetable_store::{Blobs, Published, Snapshot, Store, StoreError};
use xxhash_rust::xxh3::xxh3_128;

use super::RunOptions;
use super::error::RunError;
use super::record::ExportRecord;
use crate::day::{day_bounds, days_touched};
use crate::job::{Export, Job};
use crate::observe::{Event, Observer};

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// What the publish stage works with.
pub(super) struct PublishStage<'a> {
    pub(super) job: &'a Job,
    pub(super) store: &'a Store,
    pub(super) options: &'a RunOptions,
    pub(super) observer: &'a dyn Observer,
    pub(super) runtime: &'a tokio::runtime::Handle,
}

/// A day that tables have cells for.
struct Day {
    date: NaiveDate,
    /// For each table, the last version that changed the day.
    sources: BTreeMap<String, u64>,
}

impl PublishStage<'_> {
    /// Publishes the days of `export` that are missing or whose sources or query changed.
    pub(super) fn publish(&self, export: &Export) -> Result<Vec<ExportRecord>, RunError> {
        let query_error = |error| RunError::Query { export: export.name.clone(), source: Box::new(error) };
        let session = Session::open(self.store, &SessionOptions::default()).map_err(query_error)?;
        let tables = records_of(export, session.references(&export.sql).map_err(query_error)?)?;
        let snapshots: Vec<Snapshot> =
            tables.iter().map(|table| self.store.snapshot(table)).collect::<Result<_, _>>()?;
        let blobs = self.store.blobs().as_ref();
        let mut published = Published::load(blobs, &export.name)?;
        let others = self.check_owner(export, &published)?;
        forget_missing(blobs, &mut published)?;
        let query = self.fingerprint(export, &snapshots);
        let days = self.days(&snapshots, &published);
        let labelled: Vec<(String, BTreeMap<String, u64>)> =
            days.iter().map(|day| (day.date.to_string(), day.sources.clone())).collect();
        let stale = stale(&published, &labelled, &query);
        self.observer.event(Event::Stage { name: format!("publish {}", export.name), total: stale.len() as u64 });
        let mut records = Vec::with_capacity(stale.len());
        for item in stale {
            let Some(day) = days.iter().find(|day| day.date.to_string() == item.label) else { continue };
            let restricted = session.restricted(day_bounds(self.job.timezone, day.date));
            let folder = export.name_template.render(day.date);
            if let Some(owner) = others.get(&folder) {
                return Err(owned(export, &folder, owner));
            }
            let request = PublishRequest {
                store: self.store,
                session: &restricted,
                export: &export.name,
                job: &self.job.name,
                folder: &folder,
                label: &item.label,
                sql: &export.sql,
                params: &[],
                query: &query,
                sources: &day.sources,
                now: self.options.now,
                run: &self.options.run,
                previous: published.parts.get(&item.label),
            };
            let done = self.runtime.block_on(publish(&request))?;
            let (state, changed) = match done.outcome {
                Outcome::Created | Outcome::Replaced => ("published", true),
                Outcome::Unchanged => ("unchanged", false),
                Outcome::Skipped => ("empty", false),
            };
            let (rows, bytes) = done.part.as_ref().map_or((0, 0), |part| (part.rows, part.bytes));
            // Listed one by one: a run that is stopped keeps the days it has published.
            record(self.store, &mut published, &self.job.name, &[done])?;
            self.observer.event(Event::Published { name: folder.clone(), rows, changed });
            records.push(ExportRecord {
                export: export.name.clone(),
                part: folder,
                reason: why(&item.reason),
                state,
                rows,
                bytes,
            });
        }
        Ok(records)
    }

    /// The days to look at, within the run's range: those that the tables have cells for, in the job's
    /// time zone, and those that were published.
    fn days(&self, snapshots: &[Snapshot], published: &Published) -> Vec<Day> {
        let mut days: BTreeSet<NaiveDate> = published.parts.keys().filter_map(|label| label.parse().ok()).collect();
        let mut changed: Vec<(&str, BTreeMap<i32, u64>)> = Vec::new();
        for snapshot in snapshots {
            let by_day = changes_by_utc_day(snapshot);
            for day in by_day.keys() {
                days.extend(days_touched(self.job.timezone, utc_day(*day)));
            }
            changed.push((snapshot.table().name(), by_day));
        }
        if let Some(range) = &self.options.days {
            days.retain(|day| range.contains(day));
        }
        let sources = |date: NaiveDate| {
            let bounds = day_bounds(self.job.timezone, date);
            let utc =
                bounds.start.div_euclid(MICROS_PER_DAY) as i32..=(bounds.end - 1).div_euclid(MICROS_PER_DAY) as i32;
            let version = |by_day: &BTreeMap<i32, u64>| by_day.range(utc.clone()).map(|(_, version)| *version).max();
            changed.iter().filter_map(|(table, by_day)| Some(((*table).to_owned(), version(by_day)?))).collect()
        };
        days.into_iter().map(|date| Day { date, sources: sources(date) }).collect()
    }

    /// Names what is published besides the data: another fingerprint, and every part is published
    /// again. A table that was made anew counts its versions from 1 again, so it is part of it.
    fn fingerprint(&self, export: &Export, snapshots: &[Snapshot]) -> String {
        let mut settings = vec![export.name_template.as_str(), export.sql.as_str(), self.job.timezone.name()];
        settings.extend(snapshots.iter().map(|snapshot| snapshot.version().born.as_str()));
        format!("{:032x}", xxh3_128(settings.join("\0").as_bytes()))
    }

    /// Refuses to publish under the name of another job's export. Returns the folders that other jobs
    /// publish, each with its job.
    fn check_owner(&self, export: &Export, published: &Published) -> Result<BTreeMap<String, String>, RunError> {
        if !published.job.is_empty() && published.job != self.job.name {
            return Err(owned(export, &export.name, &published.job));
        }
        let lists = Published::all(self.store.blobs().as_ref())?;
        let others = lists.into_iter().filter(|list| list.job != self.job.name);
        Ok(others.flat_map(|list| list.parts.into_values().map(move |part| (part.folder, list.job.clone()))).collect())
    }
}

fn owned(export: &Export, name: &str, owner: &str) -> RunError {
    RunError::ExportOwned { export: export.name.clone(), name: name.to_owned(), owner: owner.to_owned() }
}

/// The tables that a query for single days reads. It may read nothing else: only their records can be
/// restricted to a day, and followed as they change.
///
/// # Errors
/// What else `references` name.
pub fn records_of(export: &Export, references: Vec<(String, String)>) -> Result<Vec<String>, RunError> {
    let not_by_day = |found: String| RunError::NotByDay { export: export.name.clone(), found };
    if let Some((schema, table)) = references.iter().find(|(schema, _)| schema != "records") {
        return Err(not_by_day(format!("its query reads {schema}.{table}")));
    }
    if references.is_empty() {
        return Err(not_by_day("its query reads no table".to_owned()));
    }
    Ok(references.into_iter().map(|(_, table)| table).collect())
}

/// A part whose file is gone counts as not published.
fn forget_missing(blobs: &dyn Blobs, published: &mut Published) -> Result<(), StoreError> {
    let mut missing = Vec::new();
    for (label, part) in &published.parts {
        if !blobs.list(&format!("exports/{}", part.folder))?.contains(&part.file) {
            missing.push(label.clone());
        }
    }
    missing.iter().for_each(|label| drop(published.parts.remove(label)));
    Ok(())
}

fn why(reason: &Reason) -> String {
    match reason {
        Reason::Missing => "missing".to_owned(),
        Reason::QueryChanged => "query changed".to_owned(),
        Reason::SourceChanged { table } => format!("{table} changed"),
    }
}

fn utc_day(day: i32) -> std::ops::Range<i64> {
    let start = i64::from(day) * MICROS_PER_DAY;
    start..start + MICROS_PER_DAY
}

fn changes_by_utc_day(snapshot: &Snapshot) -> BTreeMap<i32, u64> {
    let mut changed = BTreeMap::new();
    for (day, version) in snapshot.version().windows.iter().flat_map(|window| &window.days) {
        let known: &mut u64 = changed.entry(*day).or_default();
        *known = (*known).max(*version);
    }
    changed
}
