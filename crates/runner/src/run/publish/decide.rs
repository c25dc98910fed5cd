//! Decides which parts of an export to publish, and why. Pure functions.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::Range;

use arrow::datatypes::Schema;
use chrono_tz::Tz;
use tidetable_export::{Reason, TableLog, column_without_table_type, stale};
use tidetable_job::day::utc_day;
use tidetable_job::{Export, ExportMode, FILE_SIZE, Per, Period};
use tidetable_layout::time::{DAY, window_name};
use tidetable_record::PartState;
use tidetable_store::published::Published;
use tidetable_store::{GcRule, Snapshot};
use xxhash_rust::xxh3::xxh3_128;

use crate::fault::error::RunError;
use crate::run::parts::{LostWindow, PartSelection, StalePart};

/// The stored form of an export with default settings.
const PLAIN: &str = "Day Parquet Replace []";

/// A period in which tables have cells.
pub(crate) struct SourcePeriod {
    pub(crate) period: Period,
    /// For each table, the last version that changed it.
    pub(crate) sources: BTreeMap<String, u64>,
}

/// The decision on the parts of an export.
pub(crate) struct PartDecision {
    /// The parts to publish, with why.
    pub(crate) parts: Vec<StalePart>,
    /// Number of other parts.
    pub(crate) others: usize,
    /// Failed labels that no longer have records.
    pub(crate) gone: Vec<String>,
}

/// An export with the state of the tables it reads.
pub(crate) struct ExportInputs<'a> {
    pub(crate) export: &'a Export,
    /// The time zone of days.
    pub(crate) zone: Tz,
    /// Snapshots of the tables it reads.
    pub(crate) snapshots: &'a [Snapshot],
    /// The logical time of the run.
    pub(crate) now: i64,
}

impl ExportInputs<'_> {
    /// Decides on the parts. `query` is the fingerprint of the export.
    pub(crate) fn parts(&self, published: &Published, query: &str, wanted: &PartSelection<'_>) -> PartDecision {
        let Self { export, zone, .. } = *self;
        let mut made = self.periods(published);
        let there: HashSet<String> = made.iter().map(|made| made.period.label()).collect();
        let gone = wanted.failed.keys().filter(|label| !there.contains(*label)).cloned().collect();

        made.retain(|made| wanted.is_in_range(&made.period, zone));
        let labelled: Vec<(String, BTreeMap<String, u64>)> =
            made.iter().map(|made| (made.period.label(), made.sources.clone())).collect();
        let stale = stale(published, &labelled, query).into_iter().map(|stale| (stale.label, stale.reason));
        let stale: BTreeMap<String, Reason> = stale.collect();

        let total = made.len();
        let mut parts = Vec::new();
        for SourcePeriod { period, sources } in made {
            let label = period.label();
            let reason = match (stale.get(&label), wanted.failed.get(&label)) {
                (Some(reason), _) => reason_text(reason),
                (None, _) if wanted.force => "forced".to_owned(),
                // The published part is older than the failed attempt, so it may be wrong.
                (None, Some(PartState::Checks)) => "its checks failed".to_owned(),
                (None, Some(_)) => "it failed before".to_owned(),
                (None, None) => continue,
            };
            let previous = published.parts.get(&label).cloned();
            if !wanted.takes(&export.name, &period, zone, previous.is_none()) {
                continue;
            }

            parts.push(StalePart {
                folder: export.name_template.render_at(period.start),
                sealed: previous.is_some() && !wanted.force && self.is_sealed(&period),
                is_empty: false,
                lost: self.lost_window(&period),
                period,
                label,
                reason,
                sources,
                previous,
            });
        }
        PartDecision { others: total - parts.len(), parts, gone }
    }

    /// Candidate periods: those in which tables have cells, and published ones.
    pub(crate) fn periods(&self, published: &Published) -> Vec<SourcePeriod> {
        let (per, zone) = (self.export.per, self.zone);
        let mut periods: BTreeSet<Period> =
            published.parts.keys().filter_map(|label| Period::of_label(per, label)).collect();
        let mut changed = Vec::new();
        for snapshot in self.snapshots {
            let by_day = changes_by_utc_day(snapshot);
            for day in by_day.keys() {
                periods.extend(Period::touched(per, zone, utc_day(*day)));
            }
            changed.push(TableChanges { table: snapshot.table().name(), by_day });
        }
        if per == Per::Query {
            periods.insert(Period::all());
        }

        let mut made = Vec::with_capacity(periods.len());
        for period in periods {
            let bounds = period.bounds(zone);
            let sources =
                changed.iter().filter_map(|changes| Some((changes.table.to_owned(), changes.last_in(&bounds)?)));
            made.push(SourcePeriod { sources: sources.collect(), period });
        }
        made
    }

    /// A window of its tables that overlaps `period` and lost cells.
    fn lost_window(&self, period: &Period) -> Option<LostWindow> {
        let bounds = period.bounds(self.zone);
        for snapshot in self.snapshots {
            let version = snapshot.version();
            for start in version.lost_windows() {
                let times = version.window_times(start);
                if times.start < bounds.end && bounds.start < times.end {
                    return Some(LostWindow {
                        table: snapshot.table().name().to_owned(),
                        job: version.table.job.clone(),
                        window: window_name(version.table.spec.window, start),
                    });
                }
            }
        }
        None
    }

    /// Whether cells of `period` may have expired, so that the published part holds more than the tables.
    pub(crate) fn is_sealed(&self, period: &Period) -> bool {
        let start = period.bounds(self.zone).start;
        let sealed_before = self.snapshots.iter().filter_map(|snapshot| sealed_before(snapshot, self.now)).max();
        period.per != Per::Query && sealed_before.is_some_and(|time| start < time)
    }

    /// Hash of what decides the published files besides the data; if it changes, every part is published
    /// again. Includes table UUIDs, since versions of a new table start at 1 again.
    pub(crate) fn fingerprint(&self) -> String {
        let Self { export, zone, .. } = *self;
        let mut settings = vec![export.name_template.as_str(), export.sql.as_str(), zone.name()];
        let form = export.stored_form();
        settings.extend(export.log.map(TableLog::key));
        let file_size = export.file_size.to_string();
        // Appended rows must not be appended again for another file size.
        if export.file_size != FILE_SIZE && export.mode != ExportMode::Append {
            settings.push(&file_size);
        }
        if let Some(column) = &export.day_column {
            settings.extend(["day column", column.as_str()]);
        }
        if export.float_decimals {
            settings.push("float decimals");
        }
        // Keeps the fingerprints of lists written before these settings existed.
        if form != PLAIN {
            settings.push(&form);
        }
        settings.extend(self.snapshots.iter().map(|snapshot| snapshot.version().table_uuid.as_str()));
        format!("{:032x}", xxh3_128(settings.join("\0").as_bytes()))
    }
}

/// The versions that changed a table.
struct TableChanges<'a> {
    table: &'a str,
    /// For each UTC day since the epoch, the last version that changed it.
    by_day: BTreeMap<i32, u64>,
}

impl TableChanges<'_> {
    /// The last version that changed a UTC day that overlaps `bounds`, microseconds since the epoch; `None` if none did.
    fn last_in(&self, bounds: &Range<i64>) -> Option<u64> {
        let first = day_of(bounds.start).unwrap_or(i32::MIN);
        let last = day_of(bounds.end - 1).unwrap_or(i32::MAX);
        self.by_day.range(first..=last).map(|(_, version)| *version).max()
    }
}

/// The UTC day of a time in microseconds, both since the epoch; `None` if no day has that number.
fn day_of(micros: i64) -> Option<i32> {
    i32::try_from(micros.div_euclid(DAY)).ok()
}

/// The time before which cells of a table may have expired at `now`, both in microseconds since the epoch: published periods that
/// begin before it stay as they are. `None` if no cell expires by its age.
pub fn sealed_before(snapshot: &Snapshot, now: i64) -> Option<i64> {
    least_age(snapshot).map(|age| now.saturating_sub(age))
}

/// The least age at which a rule of a table removes cells that are not overwritten. Where key and qualifier tell the event time,
/// each event has cells of its own, so that each is the newest version of its column.
fn least_age(snapshot: &Snapshot) -> Option<i64> {
    let layout = snapshot.layout();
    let has_own_cells = layout.event_time_field().is_some_and(|field| !layout.is_cell_time(field));
    let rules = snapshot.version().table.gc.values().filter_map(|rule| GcRule::parse(rule).ok());
    let ages = rules.filter_map(|rule| if has_own_cells { rule.age_of_newest() } else { rule.least_age() });
    ages.min()
}

/// The tables that the query of an export reads. Queries of single periods may read records only, because only those
/// can be restricted to a period. Nothing but tables may be read, because only their changes are followed.
///
/// # Errors
/// If `references` name anything else.
pub fn tables_read(export: &Export, references: Vec<(String, String)>) -> Result<Vec<String>, RunError> {
    let wrong = |found: String| {
        let export = export.name.clone();
        RunError::NotByPeriod { export, found }
    };
    if let Some((schema, table)) = references.iter().find(|(schema, _)| !may_read(export.per, schema)) {
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

/// Whether the query of an export may read tables of `schema`.
fn may_read(per: Per, schema: &str) -> bool {
    match per {
        Per::Query => matches!(schema, "records" | "rows" | "cells"),
        _ => schema == "records",
    }
}

/// Checks that the query of an export, which returns rows of `schema`, has its key columns, and no column that the log of its
/// table cannot describe.
///
/// # Errors
/// The first column that is missing or has such a type.
pub fn check_columns(export: &Export, schema: &Schema) -> Result<(), RunError> {
    let name = || export.name.clone();
    if let Some(key) = export.keys.iter().find(|key| schema.column_with_name(key).is_none()) {
        let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        return Err(RunError::UnknownKey { export: name(), key: key.clone(), columns: columns.join(", ") });
    }
    let Some(log) = export.log else { return Ok(()) };
    if let Some((column, kind)) = column_without_table_type(schema, export.column_types()) {
        return Err(RunError::TableType { export: name(), log, column, kind });
    }
    // A partition is its day, whatever the rows say.
    let day = export.day_column.as_ref().filter(|_| log == TableLog::Iceberg);
    let taken = day.and_then(|day| schema.fields().iter().find(|field| field.name().eq_ignore_ascii_case(day)));
    match taken {
        None => Ok(()),
        Some(column) => Err(RunError::DayColumnTaken { export: name(), column: column.name().clone() }),
    }
}

/// What the files of an export have instead of the types of its query, whose rows have `schema`: a sentence for each column.
pub fn type_notes(export: &Export, schema: &Schema) -> Vec<String> {
    let changes = export.column_types().changes(schema);
    changes.iter().map(|(name, kind, file)| format!("{name}, {kind} in the query, is {file} in the files")).collect()
}

/// The reason of a stale part in words.
fn reason_text(reason: &Reason) -> String {
    match reason {
        Reason::Missing => "missing".to_owned(),
        Reason::QueryChanged => "query or settings changed".to_owned(),
        Reason::SourceChanged { table } => format!("{table} changed"),
    }
}

/// The last version that changed each UTC day of a table, by days since the epoch.
fn changes_by_utc_day(snapshot: &Snapshot) -> BTreeMap<i32, u64> {
    let mut changed = BTreeMap::new();
    for (day, version) in snapshot.version().windows.iter().flat_map(|window| &window.days) {
        let known: &mut u64 = changed.entry(*day).or_default();
        *known = (*known).max(*version);
    }
    changed
}
