//! What queries read of a layout.

use arrow::array::Array;
use rayon::prelude::*;
use tidetable_layout::cell::ColumnText;
use tidetable_layout::{Field, KeyRange};
use tidetable_runner::workload::{Need, Query};
use tidetable_sql::{Predicates, field_type};

use crate::error::{AdvisorError, Result};
use crate::measure::{Distribution, Measured};
use crate::queries::parameters::predicates;
use crate::trial::{Draw, DrawSpec, PartBytes, Row, TrialTable, Visitor};

/// What a query reads of a layout, over its draws.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The query.
    pub query: String,
    /// How often it is asked.
    pub per_second: f64,
    /// The worst that a draw needs.
    pub need: Need,
    /// Draws.
    pub draws: usize,
    /// Key ranges.
    pub ranges: Seen,
    /// Rows in them.
    pub rows: Seen,
    /// Cells of these rows.
    pub cells: Seen,
    /// Bytes of these cells.
    pub bytes: Seen,
    /// Records that match.
    pub records: Seen,
    /// Values of the columns it wants in these records.
    pub values: Seen,
    /// Bytes of these values as text.
    pub value_bytes: Seen,
    /// Values of the first draw: layouts that answer alike have the same.
    pub first_values: u64,
}

/// A number over the draws of a query.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Seen {
    /// The median, by nearest rank.
    pub p50: u64,
    /// The 95th of 100.
    pub p95: u64,
    /// The mean.
    pub mean: f64,
}

/// One draw.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    ranges: u64,
    rows: u64,
    cells: u64,
    bytes: u64,
    records: u64,
    values: u64,
    value_bytes: u64,
    is_scan: bool,
    is_point: bool,
}

/// Plans `query` on a layout with what was drawn for it, and counts what it reads and returns. `values` are the columns that
/// count as values where the query names none. Of a query that reads all rows only the first draw is counted.
///
/// # Errors
/// If the predicate is none over the records of the layout, or reading fails.
pub fn ask(
    table: &TrialTable,
    measured: &Measured,
    query: &Query,
    (spec, draws): (&DrawSpec, &[Draw]),
    values: &[String],
) -> Result<Asked> {
    let schema = table.layout.records_schema();
    let field = |field: &arrow::datatypes::FieldRef| {
        field_type(field.data_type()).map(|kind| Field { name: field.name().clone(), kind })
    };
    let columns: Vec<Field> = schema.fields().iter().filter_map(field).collect();
    let predicates_of = Predicates::new(&columns);
    let unpivots = !table.layout.spec().unpivot.is_empty();
    let wanted: Vec<&str> = match (unpivots, query.columns.is_empty()) {
        (true, _) => vec!["value"],
        (false, true) => values.iter().map(String::as_str).collect(),
        (false, false) => query.columns.iter().map(String::as_str).collect(),
    };
    let planned: Vec<_> = predicates(query, &spec.columns, draws)?
        .into_iter()
        .map(|predicate| {
            let failed = |source| AdvisorError::Predicate { query: query.name.clone(), source };
            let predicate = predicates_of.compile(&of_columns(&predicate, query, unpivots)).map_err(failed)?;
            let bounds = predicate.bounds().to_vec();
            Ok((table.layout.key_ranges(&bounds), predicate))
        })
        .collect::<Result<_>>()?;
    // The ranges of a query without any bound: all keys, or all after a literal or a salt.
    let whole = table.layout.key_ranges(&[]);
    let is_scan = |ranges: &[KeyRange]| ranges == whole;
    let scans = planned.iter().any(|(ranges, _)| is_scan(ranges));
    let counted = planned.get(..if scans { planned.len().min(1) } else { planned.len() }).unwrap_or_default();
    let counted: Vec<Counted> = counted
        .par_iter()
        .map(|(ranges, predicate)| {
            let mut counted = Counted {
                ranges: ranges.len() as u64,
                is_scan: is_scan(ranges),
                is_point: ranges.iter().all(|range| range.only_key().is_some()),
                ..Counted::default()
            };
            if counted.is_scan {
                (counted.rows, counted.cells, counted.bytes) = (measured.rows, measured.cells, measured.bytes.total());
            }
            for range in ranges {
                if !counted.is_scan {
                    let mut seen = SeenRows::default();
                    table.visit_in(range, &mut seen)?;
                    counted.rows += seen.rows;
                    counted.cells += seen.cells;
                    counted.bytes += seen.bytes.total();
                }
                table.each_record(range, |batch| {
                    let matching = predicate.matching(batch)?;
                    counted.records += matching.num_rows() as u64;
                    let columns = wanted.iter().filter_map(|name| matching.column_by_name(name));
                    for column in columns {
                        counted.values += (column.len() - column.null_count()) as u64;
                        counted.value_bytes += text_bytes(column.as_ref());
                    }
                    Ok(())
                })?;
            }
            Ok(counted)
        })
        .collect::<Result<_>>()?;
    let need = match counted.iter().all(|it| it.is_point) {
        _ if scans => Need::Scan,
        true => Need::Point,
        false => Need::Range,
    };
    let seen = |of: fn(&Counted) -> u64| Seen::of(counted.iter().map(of));
    let limit = query.limit.unwrap_or(u64::MAX);
    Ok(Asked {
        query: query.name.clone(),
        per_second: query.per_second,
        need,
        draws: planned.len(),
        ranges: seen(|it| it.ranges),
        rows: seen(|it| it.rows),
        cells: seen(|it| it.cells),
        bytes: seen(|it| it.bytes),
        records: Seen::of(counted.iter().map(|it| it.records.min(limit))),
        values: seen(|it| it.values),
        value_bytes: seen(|it| it.value_bytes),
        first_values: counted.first().map_or(0, |it| it.values),
    })
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

/// The predicate, with the names of the wanted columns where they are records of their own.
fn of_columns(predicate: &str, query: &Query, unpivots: bool) -> String {
    if !unpivots || query.columns.is_empty() {
        return predicate.to_owned();
    }
    let names: Vec<String> = query.columns.iter().map(|name| format!("'{}'", name.replace('\'', "''"))).collect();
    format!("({predicate}) and metric in ({})", names.join(", "))
}

impl Seen {
    fn of(values: impl Iterator<Item = u64>) -> Self {
        let (mut all, mut sum) = (Distribution::default(), 0);
        for value in values {
            all.add(value);
            sum += u128::from(value);
        }
        let mean = if all.count() == 0 { 0.0 } else { sum as f64 / all.count() as f64 };
        Self { p50: all.quantile(500), p95: all.quantile(950), mean }
    }
}

/// Counts rows.
#[derive(Default)]
struct SeenRows {
    rows: u64,
    cells: u64,
    bytes: PartBytes,
}

impl Visitor for SeenRows {
    fn row(&mut self, row: &Row<'_>) -> Result<()> {
        if row.cells > 0 {
            self.rows += 1;
            self.cells += row.cells;
            self.bytes += row.bytes;
        }
        Ok(())
    }
}
