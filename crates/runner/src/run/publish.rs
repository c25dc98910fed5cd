//! The publish stage: one file a day of each export, for the days whose cells changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use tidetable_export::{
    FileMode, Outcome, PublishRequest, PublishedPart, Reason, adopt, publish, record, stale, sweep, write_log,
};
use tidetable_sql::{Session, SessionOptions, SqlError};
use tidetable_store::{Blobs, GcRule, MadeFrom, Part as ListedPart, Published, Snapshot, Store, StoreError};
use xxhash_rust::xxh3::xxh3_128;

use super::RunOptions;
use super::error::RunError;
use super::measure::{Checker, DayOf, may_publish};
use super::params::period_params;
use super::parts::{Part, Wanted};
use crate::day::MICROS_PER_DAY;
use crate::job::{Export, ExportMode, Job, Per};
use crate::observe::{Event, Observer};
use crate::period::Period;
use tidetable_record::{CheckRecord, ExportRecord, PartState};

/// What an export is that says nothing else.
const PLAIN: &str = "Day Parquet Replace []";

/// What the publish stage works with.
pub(super) struct PublishStage<'a> {
    pub(super) job: &'a Job,
    pub(super) store: &'a Store,
    pub(super) options: &'a RunOptions,
    pub(super) observer: &'a dyn Observer,
    pub(super) runtime: &'a tokio::runtime::Handle,
}

/// An export that was compared with its tables.
pub(super) struct Looked<'a> {
    export: &'a Export,
    session: Session,
    /// The tables it reads.
    tables: Vec<String>,
    published: Published,
    /// Fingerprint of the query and its settings.
    query: String,
    /// Folders that other jobs publish, each with its job.
    others: BTreeMap<String, String>,
    /// The parts to publish.
    pub(super) parts: Vec<Part>,
    /// How many parts are not.
    pub(super) unchanged: usize,
}

/// A period that tables have cells for.
struct Made {
    period: Period,
    /// For each table, the last version that changed it.
    sources: BTreeMap<String, u64>,
}

/// What became of a part that was tried.
enum Tried {
    Published(Box<PublishedPart>),
    /// Its checks say no.
    Refused,
    /// Cells of it have expired.
    Sealed,
    Failed(RunError),
}

impl<'a> PublishStage<'a> {
    /// Compares `export` with `tables`, those it reads.
    pub(super) fn look(
        &self,
        export: &'a Export,
        tables: &[String],
        wanted: &Wanted<'_>,
    ) -> Result<Looked<'a>, RunError> {
        let query_error = |error| RunError::Query { export: export.name.clone(), source: Box::new(error) };
        let session = Session::open(self.store, &SessionOptions::default()).map_err(query_error)?;
        let snapshots: Vec<Snapshot> =
            tables.iter().map(|table| self.store.snapshot(table)).collect::<Result<_, _>>()?;
        let blobs = self.store.blobs().as_ref();
        let mut published = Published::load(blobs, &export.name)?;
        let others = self.check_owner(export, &published)?;
        let query = self.fingerprint(export, &snapshots);
        if published.parts.is_empty() {
            let made = self.periods(export, &snapshots, &published);
            self.found_without_list(export, &made, &query, &mut published)?;
        }
        forget_missing(blobs, &mut published)?;
        let tz = self.job.timezone;
        let mut made = self.periods(export, &snapshots, &published);
        made.retain(|made| wanted.is_in_range(&made.period, tz));
        let labelled: Vec<(String, BTreeMap<String, u64>)> =
            made.iter().map(|made| (made.period.label(), made.sources.clone())).collect();
        let stale: BTreeMap<String, Reason> =
            stale(&published, &labelled, &query).into_iter().map(|stale| (stale.label, stale.reason)).collect();
        let total = made.len();
        let parts = made.into_iter().filter_map(|Made { period, sources }| {
            let label = period.label();
            let reason = match stale.get(&label) {
                Some(reason) => why(reason),
                None if wanted.force => "forced".to_owned(),
                None => return None,
            };
            let previous = published.parts.get(&label).cloned();
            let folder = export.name_template.render_at(period.start);
            let sealed = previous.is_some() && !wanted.force && self.is_sealed(&snapshots, &period);
            let takes = wanted.takes(&export.name, &period, tz, previous.is_none());
            takes.then_some(Part { period, label, folder, reason, sources, previous, sealed })
        });
        let parts: Vec<Part> = parts.collect();
        let unchanged = total - parts.len();
        Ok(Looked { export, session, tables: tables.to_vec(), published, query, others, parts, unchanged })
    }

    /// Whether cells of `period` may have expired: what is published of it is more than there is now.
    fn is_sealed(&self, snapshots: &[Snapshot], period: &Period) -> bool {
        let start = period.bounds(self.job.timezone).start;
        let rules = snapshots.iter().flat_map(|snapshot| snapshot.version().table.gc.values());
        let ages = rules.filter_map(|rule| GcRule::parse(rule).ok()?.least_age());
        ages.min().is_some_and(|age| period.per != Per::Query && start < self.options.now.saturating_sub(age))
    }

    /// Publishes what was found to be stale, several parts at a time. One that fails leaves the others be.
    pub(super) fn publish(
        &self,
        looked: Looked<'a>,
        checker: &Checker<'_>,
    ) -> Result<(Vec<ExportRecord>, Vec<CheckRecord>), RunError> {
        let Looked { parts, .. } = &looked;
        for part in parts {
            if let Some(owner) = looked.others.get(&part.folder) {
                return Err(owned(looked.export, &part.folder, owner));
            }
        }
        let name = format!("publish {}", looked.export.name);
        self.observer.event(Event::Stage { name, total: parts.len() as u64 });
        let (next, halt) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (sender, receiver) = mpsc::channel();
        let mut published = looked.published.clone();
        let mut records: BTreeMap<usize, (ExportRecord, Vec<CheckRecord>)> = BTreeMap::new();
        std::thread::scope(|scope| {
            for _ in 0..self.options.jobs.clamp(1, parts.len().max(1)) {
                let (sender, looked, next, halt) = (sender.clone(), &looked, &next, &halt);
                scope.spawn(move || {
                    while !halt.load(Ordering::Relaxed) && self.options.stop.asked().is_none() {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(part) = looked.parts.get(at) else { return };
                        let mut found = Vec::new();
                        let tried = self.runtime.block_on(self.try_part(looked, part, checker, &mut found));
                        if self.options.fail_fast && !matches!(tried, Tried::Published(_)) {
                            halt.store(true, Ordering::Relaxed);
                        }
                        if sender.send((at, tried, found)).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let done = self.collect(&looked, &receiver, &mut published, &mut records);
            halt.store(true, Ordering::Relaxed);
            done
        })
        .and_then(|obsolete| Ok(sweep(self.store, &obsolete)?))?;
        if looked.export.delta && !published.parts.is_empty() {
            let template = looked.export.name_template.as_str();
            let folder = template.split_once('/').map_or(template, |(folder, _)| folder);
            write_log(self.store.blobs().as_ref(), &published, folder, self.options.now)?;
        }
        self.options.stop.check()?;
        let (records, checks): (Vec<_>, Vec<_>) = records.into_values().unzip();
        Ok((records, checks.into_iter().flatten().collect()))
    }

    /// Lists parts as they are published: a run that is stopped keeps those it has. Returns files under former names.
    fn collect(
        &self,
        looked: &Looked<'_>,
        receiver: &mpsc::Receiver<(usize, Tried, Vec<CheckRecord>)>,
        published: &mut Published,
        records: &mut BTreeMap<usize, (ExportRecord, Vec<CheckRecord>)>,
    ) -> Result<Vec<String>, RunError> {
        let mut obsolete = Vec::new();
        while let Ok(first) = receiver.recv() {
            let mut done = Vec::new();
            // What came meanwhile is listed with it.
            for (at, tried, found) in std::iter::once(first).chain(receiver.try_iter()) {
                let Some(part) = looked.parts.get(at) else { continue };
                records.insert(at, (self.part_record(looked.export, part, &tried), found));
                match tried {
                    Tried::Published(part) => done.push(*part),
                    Tried::Sealed => done.extend(as_sealed(looked, part)),
                    Tried::Refused | Tried::Failed(_) => {}
                }
            }
            record(self.store, published, &self.job.name, &done)?;
            obsolete.extend(done.into_iter().filter_map(|part| part.obsolete));
        }
        Ok(obsolete)
    }

    /// Says what became of a part.
    fn part_record(&self, export: &Export, part: &Part, tried: &Tried) -> ExportRecord {
        let mut record = ExportRecord {
            export: export.name.clone(),
            label: part.label.clone(),
            part: part.folder.clone(),
            reason: part.reason.clone(),
            state: PartState::Empty,
            rows: 0,
            bytes: 0,
            error: None,
        };
        match tried {
            Tried::Published(done) => {
                record.state = match done.outcome {
                    Outcome::Created | Outcome::Replaced => PartState::Published,
                    Outcome::Unchanged => PartState::Unchanged,
                    Outcome::Skipped => PartState::Empty,
                };
                (record.rows, record.bytes) = done.part.as_ref().map_or((0, 0), |part| (part.rows, part.bytes));
                let changed = record.state == PartState::Published;
                self.observer.event(Event::Published { name: part.folder.clone(), rows: record.rows, changed });
            }
            Tried::Refused => {
                record.state = PartState::Checks;
                let reason = "its checks failed".to_owned();
                self.observer.event(Event::Missed { name: part.folder.clone(), reason });
            }
            Tried::Sealed => {
                record.state = PartState::Sealed;
                let reason = "cells of it have passed their retention, --force publishes what is left".to_owned();
                self.observer.event(Event::Missed { name: part.folder.clone(), reason });
            }
            Tried::Failed(error) => {
                record.state = PartState::Failed;
                record.error = Some(error.to_string());
                self.observer.event(Event::Missed { name: part.folder.clone(), reason: error.to_string() });
            }
        }
        record
    }

    /// Checks and publishes one part.
    async fn try_part(
        &self,
        looked: &Looked<'_>,
        part: &Part,
        checker: &Checker<'_>,
        found: &mut Vec<CheckRecord>,
    ) -> Tried {
        let work = async {
            let (export, options) = (looked.export, self.options);
            if part.sealed {
                return Ok(Tried::Sealed);
            }
            let bounds = part.period.bounds(self.job.timezone);
            let params = period_params(&part.period, &bounds, options.now);
            let restricted = looked.session.restricted(bounds);
            let failed = |error: SqlError| RunError::Query { export: export.name.clone(), source: Box::new(error) };
            let day = DayOf { session: &restricted, label: &part.label, params: &params };
            *found = checker.part(&day, export, &looked.tables).await.map_err(failed)?;
            if !may_publish(found) {
                return Ok(Tried::Refused);
            }
            let request = PublishRequest {
                store: self.store,
                session: &restricted,
                export: &export.name,
                job: &self.job.name,
                folder: &part.folder,
                label: &part.label,
                sql: &export.sql,
                params: &params,
                query: &looked.query,
                sources: &part.sources,
                now: options.now,
                run: &options.run,
                previous: part.previous.as_ref(),
                format: export.format,
                mode: match export.mode {
                    ExportMode::Replace => FileMode::Replace,
                    ExportMode::Append => FileMode::Append,
                    ExportMode::Upsert => FileMode::Upsert(&export.keys),
                },
                keep_old: export.delta,
            };
            Ok(Tried::Published(Box::new(publish(&request).await?)))
        };
        let done: Result<Tried, RunError> = tokio::select! {
            done = work => done,
            stopped = self.options.stop.wait() => Err(stopped),
        };
        done.unwrap_or_else(Tried::Failed)
    }

    /// Published files without the list of them are taken as they are, published over, or refused: whatever was asked.
    fn found_without_list(
        &self,
        export: &Export,
        made: &[Made],
        query: &str,
        published: &mut Published,
    ) -> Result<(), RunError> {
        if self.options.rebuild {
            return Ok(());
        }
        for Made { period, sources } in made {
            let (folder, label) = (export.name_template.render_at(period.start), period.label());
            let Some(found) = adopt(self.store, &export.name, &folder, &label, export.format)? else { continue };
            if !self.options.adopt {
                return Err(RunError::ListMissing { export: export.name.clone(), folder });
            }
            self.job.name.clone_into(&mut published.job);
            published.columns = found.columns;
            let part = ListedPart {
                query: query.to_owned(),
                sources: sources.clone(),
                now: self.options.now,
                run: self.options.run.clone(),
                ..found.part
            };
            published.parts.insert(label, part);
        }
        if !published.parts.is_empty() && !self.options.looks_only {
            published.save(self.store.blobs().as_ref())?;
        }
        Ok(())
    }

    /// The periods to look at: those that the tables have cells for, and those that were published.
    fn periods(&self, export: &Export, snapshots: &[Snapshot], published: &Published) -> Vec<Made> {
        let (per, tz) = (export.per, self.job.timezone);
        let mut periods: BTreeSet<Period> =
            published.parts.keys().filter_map(|label| Period::of_label(per, label)).collect();
        let mut changed: Vec<(&str, BTreeMap<i32, u64>)> = Vec::new();
        for snapshot in snapshots {
            let by_day = changes_by_utc_day(snapshot);
            for day in by_day.keys() {
                periods.extend(Period::touched(per, tz, utc_day(*day)));
            }
            changed.push((snapshot.table().name(), by_day));
        }
        if per == Per::Query {
            periods.insert(Period::all());
        }
        let sources = |period: &Period| {
            let bounds = period.bounds(tz);
            let day = |micros: i64| i32::try_from(micros.div_euclid(MICROS_PER_DAY)).ok();
            let utc = day(bounds.start).unwrap_or(i32::MIN)..=day(bounds.end - 1).unwrap_or(i32::MAX);
            let version = |by_day: &BTreeMap<i32, u64>| by_day.range(utc.clone()).map(|(_, version)| *version).max();
            changed.iter().filter_map(|(table, by_day)| Some(((*table).to_owned(), version(by_day)?))).collect()
        };
        periods.into_iter().map(|period| Made { sources: sources(&period), period }).collect()
    }

    /// Names what is published besides the data: another fingerprint, and every part is published
    /// again. A table that was made anew counts its versions from 1 again, so it is part of it.
    fn fingerprint(&self, export: &Export, snapshots: &[Snapshot]) -> String {
        let mut settings = vec![export.name_template.as_str(), export.sql.as_str(), self.job.timezone.name()];
        let form = format!("{:?} {:?} {:?} {:?}", export.per, export.format, export.mode, export.keys);
        if export.delta {
            settings.push("delta");
        }
        // Lists from before there was a choice stay good.
        if form != PLAIN {
            settings.push(&form);
        }
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

/// The tables that the query of an export reads. One for single periods reads their records and nothing else: only those
/// can be restricted to a period. What is published is followed as tables change, so nothing but tables may be read.
///
/// # Errors
/// What else `references` name.
pub fn tables_read(export: &Export, references: Vec<(String, String)>) -> Result<Vec<String>, RunError> {
    let wrong = |found: String| {
        let export = export.name.clone();
        RunError::NotByPeriod { export, found }
    };
    let may_read = |schema: &str| match export.per {
        Per::Query => matches!(schema, "records" | "rows" | "cells"),
        _ => schema == "records",
    };
    if let Some((schema, table)) = references.iter().find(|(schema, _)| !may_read(schema)) {
        return Err(wrong(format!("its query reads {schema}.{table}")));
    }
    if references.is_empty() {
        return Err(wrong("its query reads no table".to_owned()));
    }
    let mut tables: Vec<String> = references.into_iter().map(|(_, table)| table).collect();
    tables.sort_unstable();
    tables.dedup();
    Ok(tables)
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

/// A sealed part is as it was, and not stale any more: it is told once.
fn as_sealed(looked: &Looked<'_>, part: &Part) -> Option<PublishedPart> {
    let made_from = MadeFrom { query: looked.query.clone(), sources: part.sources.clone() };
    let previous = part.previous.clone()?;
    let listed = ListedPart { query: made_from.query.clone(), sources: made_from.sources.clone(), ..previous };
    Some(PublishedPart {
        label: part.label.clone(),
        outcome: Outcome::Unchanged,
        part: Some(listed),
        made_from,
        columns: looked.published.columns.clone(),
        obsolete: None,
    })
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
