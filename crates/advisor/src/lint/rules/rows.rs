//! The size and the growth of rows.

use chrono::{Datelike, NaiveDate};
use tidetable_layout::error::Place;
use tidetable_layout::time::DAY;

use crate::facts::{RejectKind, RowFacts, ScaleFacts, TableFacts, short, shown};
use crate::lint::found::Found;
use crate::lint::limits;
use crate::lint::rule::{Check, DESIGN, Needs, QUOTAS, Rule, Severity, TIME_SERIES};
use crate::lint::subject::TableSubject;

pub(super) static VERSIONS: Rule = Rule {
    id: "R4",
    severity: Severity::Warn,
    needs: Needs::Job,
    title: "a time series kept as versions of one cell; silent if the data has one version of each",
    reason: "Versions are for corrections of a value: a series of them makes one row that grows for ever, while a row for each time \
             stays small and can be read by range",
    source: DESIGN,
    check: Check::Table(versions),
};

fn versions(table: &TableSubject<'_>) -> Vec<Found> {
    let one_version = table.facts.is_some_and(|facts| facts.most_versions == 1);
    if table.has_time() || table.table.layout.stored().upsert || one_version {
        return Vec::new();
    }

    let families = table.table.spec.families.iter().enumerate();
    let endless =
        families.filter(|(_, family)| table.is_versioned(&family.name) && table.versions_kept(&family.name).is_none());
    let found = endless.map(|(index, family)| {
        let key = &table.table.spec.row_key;
        let edit = table.with_key(|_| Some(format!("{key}#{{{}:%Y%m%d}}", table.time())));
        let message = format!(
            "each event is a version more in `{}`, which keeps all of them: put the time into the row key, or write \
             `gc = \"maxversions=1\"` if only the newest counts",
            family.name
        );
        Found::new(Severity::Warn, table.table.places.of(Place::Family(index), 0..family.name.len()), message)
            .edit(edit)
    });
    found.collect()
}

/// Cells from which on the growth of a row means something.
const FEWEST_CELLS: u64 = 100;
/// Days within which the limit of a growing row matters.
const SOON: f64 = 365.0;

pub(super) static ROW_SIZE: Rule = Rule {
    id: "R1",
    severity: Severity::Error,
    needs: Needs::Data,
    title: "a row over 100 MB, or that will be at the declared scale, or else within a year as it grows now; an error over 256 MiB, the limit",
    reason: "A row is read and moved as one; over the limit it cannot be read at all",
    source: QUOTAS,
    check: Check::Table(row_size),
};

fn row_size(table: &TableSubject<'_>) -> Vec<Found> {
    let Some(facts) = table.facts else { return Vec::new() };
    let row = &facts.largest_row;
    if let Some(found) = facts.scale.as_ref().and_then(|scale| row_at_scale(table, row, scale)) {
        return vec![found];
    }

    let bound = table.prices.limits.row;
    let passed = limits::row_bytes(row.bytes as f64, table.prices);
    let next = if passed.is_some() { bound.limit } else { bound.advised };
    let day = day_of_limit(table, facts, row, next);
    let (severity, limit) = match passed {
        Some(passed) => (passed.severity, passed.limit),
        None if day.is_some() => (Severity::Warn, bound.advised as f64),
        None => return Vec::new(),
    };
    let when = day.map(|day| format!(", and has {} on {day} if it goes on", bytes_text(next))).unwrap_or_default();
    let found = Found::new(severity, table.whole_key(), format!("the largest row has {} bytes{when}", row.bytes));
    vec![found.measure(row.bytes as f64, limit, "bytes").keys([shown(&row.key)])]
}

/// The largest row at the end of the time that rows are kept, if that is over a bound.
fn row_at_scale(table: &TableSubject<'_>, row: &RowFacts, scale: &ScaleFacts) -> Option<Found> {
    let passed = limits::row_bytes(scale.row_bytes, table.prices).filter(|_| scale.row_bytes > row.bytes as f64)?;
    let message = format!(
        "the largest row will have {:.0} bytes after {} days: {} bytes{}",
        scale.row_bytes,
        short(scale.keep_days),
        row.bytes,
        scale.row_growth.text()
    );
    let found = Found::new(passed.severity, table.whole_key(), message);
    Some(found.measure(passed.measured, passed.limit, "bytes").keys([shown(&row.key)]))
}

/// The day on which a row without a time in its key has so many bytes, if it goes on growing as it does, within a year and before
/// its oldest cells are dropped.
fn day_of_limit(table: &TableSubject<'_>, facts: &TableFacts, row: &RowFacts, bytes: u64) -> Option<NaiveDate> {
    if table.has_time() || table.table.spec.upsert || !is_growing(row) || row.bytes >= bytes {
        return None;
    }
    let first = (row.last - row.span) as f64 / DAY as f64;
    let passed = row.span as f64 / DAY as f64;
    let left = match &facts.scale {
        // At scale it may grow faster than it did, and is full at the end of the time that it is kept.
        Some(scale) => bytes as f64 / scale.row_bytes.max(1.0) * scale.keep_days - passed,
        None => days_until(row, bytes),
    };
    let kept = facts.scale.as_ref().map_or(f64::INFINITY, |scale| scale.keep_days).min(table.days_kept());
    let is_soon = facts.scale.is_some() || left <= SOON;
    let day = first + passed + left.max(0.0);
    if !is_soon || passed + left >= kept {
        return None;
    }
    // Beyond the calendar it is no date that anyone waits for.
    NaiveDate::from_epoch_days(day.min(f64::from(i32::MAX)) as i32).filter(|day| day.year() < 10_000)
}

/// `256 MiB` or `100 MB`.
fn bytes_text(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1_000_000) => format!("{} MB", bytes / 1_000_000),
        _ => format!("{bytes} bytes"),
    }
}

/// Whether a quarter of the cells of a row, or more, came in the second half of its time.
fn is_growing(row: &RowFacts) -> bool {
    row.cells >= FEWEST_CELLS && row.later_cells * 4 >= row.cells && row.span > 0
}

/// Days from its last event until a row has so many bytes, if it grows as it did.
fn days_until(row: &RowFacts, bytes: u64) -> f64 {
    let rate = row.bytes as f64 / row.span.max(1) as f64;
    bytes.saturating_sub(row.bytes) as f64 / rate.max(f64::MIN_POSITIVE) / DAY as f64
}

pub(super) static CELL_SIZE: Rule = Rule {
    id: "R2",
    severity: Severity::Error,
    needs: Needs::Data,
    title: "a cell over 10 MB; an error over 100 MiB, the limit",
    reason: "A cell is sent and held in memory as a whole; over the limit its write is refused",
    source: QUOTAS,
    check: Check::Table(cell_size),
};

fn cell_size(table: &TableSubject<'_>) -> Vec<Found> {
    let Some(facts) = table.facts else { return Vec::new() };
    let refused = facts.rejects.iter().filter(|reject| reject.kind == RejectKind::Cell);
    let mut found: Vec<Found> = refused
        .map(|reject| {
            let message = format!("{} rows are rejected: a cell of theirs has over 100 MiB", reject.rows);
            Found::new(Severity::Error, table.at(), message).measure(reject.rows as f64, 0.0, "rows")
        })
        .collect();
    let cell = &facts.largest_cell;
    let advised = table.prices.limits.cell.advised;
    if cell.bytes > advised {
        let message = format!("the largest cell, of {}, has {} bytes", cell.column, cell.bytes);
        let large = Found::new(Severity::Warn, table.at(), message).keys([shown(&cell.key)]);
        found.push(large.measure(cell.bytes as f64, advised as f64, "bytes"));
    }
    found
}

pub(super) static ENDLESS: Rule = Rule {
    id: "R3",
    severity: Severity::Warn,
    needs: Needs::Data,
    title: "a row without a time in its key that goes on growing: a quarter of its cells, or more, came in the second half of its time",
    reason: "A row for an entity's whole life has no bound: it meets the limit of 256 MiB some day, and is slow to read long before",
    source: TIME_SERIES,
    check: Check::Table(endless),
};

fn endless(table: &TableSubject<'_>) -> Vec<Found> {
    let Some(facts) = table.facts else { return Vec::new() };
    let row = &facts.fullest_row;
    if !is_growing(row) || table.has_time() || table.table.spec.upsert {
        return Vec::new();
    }
    let advised = table.prices.limits.row.advised;
    let day = day_of_limit(table, facts, row, advised);
    let when = day.map(|day| format!(", and has {} on {day} if it goes on", bytes_text(advised))).unwrap_or_default();
    let message =
        format!("a row has {} cells, {} of them from the second half of its time{when}", row.cells, row.later_cells);
    let key = &table.table.spec.row_key;
    let edit = table.with_key(|_| Some(format!("{key}#{{{}:%Y%m%d}}", table.time())));
    vec![Found::new(Severity::Warn, table.whole_key(), message).keys([shown(&row.key)]).edit(edit)]
}

pub(super) static ROW_CELL_COUNT: Rule = Rule {
    id: "R6",
    severity: Severity::Warn,
    needs: Needs::Data,
    title: "a row of over 100,000 cells",
    reason: "Tools that read cells row by row, such as the import from Parquet, take 100,000 cells a row at most",
    source: QUOTAS,
    check: Check::Table(row_cell_count),
};

fn row_cell_count(table: &TableSubject<'_>) -> Vec<Found> {
    let most = table.prices.limits.row_cells;
    let Some(row) = table.facts.map(|facts| &facts.fullest_row).filter(|row| row.cells > most) else {
        return Vec::new();
    };
    let found = Found::new(Severity::Warn, table.whole_key(), format!("the fullest row has {} cells", row.cells));
    vec![found.measure(row.cells as f64, most as f64, "cells").keys([shown(&row.key)])]
}
