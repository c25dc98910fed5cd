//! What queries read of a layout.

use arrow::array::{Array, RecordBatch};
use rayon::prelude::*;
use tidetable_job::workload::{Need, Params, Query};
use tidetable_layout::KeyRange;
use tidetable_layout::cell::ColumnText;

use crate::error::Result;
use crate::growth::QueryBounds;
use crate::measure::{Distribution, Measured};
use crate::queries::plan::{Planned, plan};
use crate::trial::{Draw, DrawSpec, PartBytes, Row, TrialTable, Visitor};

/// What a query reads of a layout, over its draws.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Name of the query in the file of queries.
    pub query: String,
    /// How often it is asked: times a second.
    pub per_second: f64,
    /// The worst that a draw needs.
    pub need: Need,
    /// The number of draws that the numbers below are over.
    pub draws: usize,
    /// Key ranges that a draw reads, disjoint.
    pub ranges: Seen,
    /// Rows in these ranges.
    pub rows: Seen,
    /// Source rows that wrote these rows, the mean.
    pub events: f64,
    /// Cells of these rows.
    pub cells: Seen,
    /// Bytes of these cells.
    pub bytes: Seen,
    /// Records that match the predicate, at most as many as the query's limit.
    pub records: Seen,
    /// Values of the columns it wants in these records.
    pub values: Seen,
    /// Bytes of these values as text.
    pub value_bytes: Seen,
    /// Records that match without regard to a limit, the mean.
    pub matching: f64,
    /// The columns and the range of time that the query fixes, by its first draw.
    pub bounds: QueryBounds,
    /// Most records it wants.
    pub limit: Option<u64>,
    /// Whether it wants the newest first.
    pub newest: bool,
    /// Values of each draw: layouts that answer alike have the same.
    pub by_draw: Vec<u64>,
}

/// A number over the draws of a query.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Seen {
    /// The median, by nearest rank.
    pub p50: u64,
    /// Rank 95 of 100, by nearest rank.
    pub p95: u64,
    /// The arithmetic mean over all draws; 0 without draws.
    pub mean: f64,
}

/// What was drawn for a query: the rows whose values are its parameters.
#[derive(Debug, Clone, Copy)]
pub struct Drawn<'a> {
    /// Which rows were drawn, and the columns that their values are of.
    pub spec: &'a DrawSpec,
    /// One row for each time that the query is asked.
    pub draws: &'a [Draw],
}

/// What one draw reads and returns.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    ranges: u64,
    rows: u64,
    events: u64,
    cells: u64,
    bytes: u64,
    records: u64,
    values: u64,
    value_bytes: u64,
    is_scan: bool,
    is_point: bool,
}

/// Plans `query` on a layout with what was drawn for it, and counts what it reads and returns, for every draw. `values` are
/// the columns that count as values where the query names none. All draws that read all rows are counted in one pass.
///
/// # Errors
/// If the predicate is not valid over the records of the layout, or reading fails.
pub fn ask(
    table: &TrialTable,
    measured: &Measured,
    query: &Query,
    drawn: Drawn<'_>,
    values: &[String],
) -> Result<Asked> {
    let planned = plan(&table.layout, query, &drawn.spec.columns, drawn.draws)?;
    let source = table.layout.source();
    let time = source.fields.get(source.time).map(|field| field.name.as_str()).unwrap_or_default();
    let age = if let Params::Data { age, .. } = query.params { age } else { None };
    let bounds = planned.first().map(|draw| QueryBounds::of(draw.predicate.bounds(), time, age)).unwrap_or_default();

    let counted = count(table, measured, &planned, &wanted_columns(table, query, values))?;
    let need = match counted.iter().all(|it| it.is_point) {
        _ if counted.iter().any(|it| it.is_scan) => Need::Scan,
        true => Need::Point,
        false => Need::Range,
    };

    let limit = query.limit.unwrap_or(u64::MAX);
    Ok(Asked {
        query: query.name.clone(),
        per_second: query.per_second,
        need,
        draws: planned.len(),
        ranges: Seen::of(&counted, |it| it.ranges),
        rows: Seen::of(&counted, |it| it.rows),
        events: Seen::of(&counted, |it| it.events).mean,
        cells: Seen::of(&counted, |it| it.cells),
        bytes: Seen::of(&counted, |it| it.bytes),
        records: Seen::of(&counted, |it| it.records.min(limit)),
        values: Seen::of(&counted, |it| it.values),
        value_bytes: Seen::of(&counted, |it| it.value_bytes),
        matching: Seen::of(&counted, |it| it.records).mean,
        bounds,
        limit: query.limit,
        newest: query.newest,
        by_draw: counted.iter().map(|it| it.values).collect(),
    })
}

/// The columns of the layout's records whose values a query wants; `values` are those of a query that names none.
fn wanted_columns<'q>(table: &TrialTable, query: &'q Query, values: &'q [String]) -> Vec<&'q str> {
    if !table.layout.spec().unpivot.is_empty() {
        return vec!["value"];
    }
    let names = if query.columns.is_empty() { values } else { &query.columns };
    names.iter().map(String::as_str).collect()
}

/// Reads the ranges of each draw. Draws that read all rows share one pass over the records.
fn count(table: &TrialTable, measured: &Measured, planned: &[Planned], wanted: &[&str]) -> Result<Vec<Counted>> {
    // The ranges of a query without any bound: all keys, or all after a literal or a salt.
    let whole = table.layout.key_ranges(&[]);
    let counted = planned.par_iter().map(|draw| {
        let mut counted = Counted::of_ranges(&draw.ranges, &whole);
        if counted.is_scan {
            (counted.rows, counted.cells, counted.bytes) = (measured.rows, measured.cells, measured.bytes.total());
            counted.events = measured.source_rows;
            return Ok(counted);
        }
        for range in &draw.ranges {
            let mut seen = SeenRows::default();
            table.visit_in(range, &mut seen)?;
            counted.rows += seen.rows;
            counted.events += seen.events;
            counted.cells += seen.cells;
            counted.bytes += seen.bytes.total();
            table.each_record(range, |batch| counted.add(draw, batch, wanted))?;
        }
        Ok(counted)
    });
    let mut counted: Vec<Counted> = counted.collect::<Result<_>>()?;

    let mut scans: Vec<(&Planned, &mut Counted)> =
        planned.iter().zip(&mut counted).filter(|(_, counted)| counted.is_scan).collect();
    if !scans.is_empty() {
        for range in &whole {
            table.each_record(range, |batch| {
                scans.par_iter_mut().try_for_each(|(draw, counted)| counted.add(draw, batch.clone(), wanted))
            })?;
        }
    }
    Ok(counted)
}

/// Bytes of the values of a column as text.
fn text_bytes(column: &dyn Array) -> u64 {
    let Some(mut text) = ColumnText::new(column) else { return 0 };
    let mut bytes = Vec::new();
    (0..column.len())
        .map(|row| {
            bytes.clear();
            text.write(row, &mut bytes);
            bytes.len() as u64
        })
        .sum()
}

impl Counted {
    /// A draw with these ranges, before anything is read; `whole` are those of a query without any bound.
    fn of_ranges(ranges: &[KeyRange], whole: &[KeyRange]) -> Self {
        Self {
            ranges: ranges.len() as u64,
            is_scan: ranges == whole,
            is_point: ranges.iter().all(|range| range.only_key().is_some()),
            ..Self::default()
        }
    }

    /// Adds the records of a batch that match, and their values of the columns `wanted`.
    fn add(&mut self, draw: &Planned, batch: RecordBatch, wanted: &[&str]) -> Result<()> {
        let matching = draw.predicate.matching(batch)?;
        self.records += matching.num_rows() as u64;
        for column in wanted.iter().filter_map(|name| matching.column_by_name(name)) {
            self.values += (column.len() - column.null_count()) as u64;
            self.value_bytes += text_bytes(column.as_ref());
        }
        Ok(())
    }
}

impl Seen {
    fn of(draws: &[Counted], number: impl Fn(&Counted) -> u64) -> Self {
        let (mut all, mut sum) = (Distribution::default(), 0);
        for value in draws.iter().map(number) {
            all.add(value);
            sum += u128::from(value);
        }
        let mean = if all.count() == 0 { 0.0 } else { sum as f64 / all.count() as f64 };
        Self { p50: all.quantile(500), p95: all.quantile(950), mean }
    }
}

/// Counts the rows of a key range that have cells.
#[derive(Default)]
struct SeenRows {
    rows: u64,
    events: u64,
    cells: u64,
    bytes: PartBytes,
}

impl Visitor for SeenRows {
    fn row(&mut self, row: &Row<'_>) -> Result<()> {
        if row.cells > 0 {
            self.rows += 1;
            self.events += row.writes.iter().map(|write| write.rows).sum::<u64>();
            self.cells += row.cells;
            self.bytes += row.bytes;
        }
        Ok(())
    }
}
