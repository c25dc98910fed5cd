//! Scans against a naive filter over all cells, for tables of every shape.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ops::Range;
use std::sync::Arc;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use tidetable_cells::{CellRow, CellScan, Columns, KeyPattern, RowSink, Rows};
use tidetable_layout::cell::{BlockCells, Passes};
use tidetable_layout::error::ShapeError;
use tidetable_layout::{KeyRange, Projection};
use tidetable_proof::shape::small;
use tidetable_store::{Snapshot, Store, StoreError};

/// Runs of random scans for each table.
const SCANS: u32 = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Cell {
    family: String,
    qualifier: Vec<u8>,
    timestamp: i64,
    value: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    key: Vec<u8>,
    cells: Vec<Cell>,
}

/// What went wrong.
#[derive(Debug)]
struct Error(#[expect(dead_code, reason = "shown by unwrap")] String);

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self(error.to_string())
    }
}

impl From<ShapeError> for Error {
    fn from(error: ShapeError) -> Self {
        Self(error.to_string())
    }
}

#[derive(Default)]
struct Collected(Vec<Row>);

impl RowSink for Collected {
    type Error = Error;

    fn row(&mut self, row: &mut CellRow<'_, '_>) -> Result<bool, Error> {
        let mut key = Vec::new();
        row.write_key(&mut key);
        let mut cells = Vec::new();
        for cell in row.cells() {
            let column = row.column(cell);
            let mut value = Vec::new();
            row.write_value(cell, &mut value);
            let (family, qualifier) = (column.family.to_owned(), column.qualifier.to_vec());
            cells.push(Cell { family, qualifier, timestamp: cell.timestamp, value });
        }
        self.0.push(Row { key, cells });
        Ok(true)
    }
}

fn collected(scan: &CellScan) -> Vec<Row> {
    let mut rows = Collected::default();
    scan.run(&mut rows).unwrap();
    rows.0
}

/// All rows, from whole blocks.
fn all_rows(snapshot: &Snapshot) -> Vec<Row> {
    let range = snapshot.whole(&KeyRange::all()).unwrap();
    let mut rows = Vec::new();
    for block in snapshot.scan(&range, &Projection::all(snapshot.schema())).unwrap() {
        let block = block.unwrap();
        let found = BlockCells::new::<ShapeError>(snapshot.schema(), &block, |_, _, _| Ok(Passes::All)).unwrap();
        let mut values = found.values().unwrap();
        for row in 0..block.keys.len() {
            let mut of_row = Vec::new();
            found.row(row, &mut of_row).unwrap();
            let mut cells = Vec::new();
            for cell in &of_row {
                let column = found.names()[cell.name as usize];
                let mut value = Vec::new();
                values.write(cell, &mut value);
                let (family, qualifier) = (column.family.to_owned(), column.qualifier.to_vec());
                cells.push(Cell { family, qualifier, timestamp: cell.timestamp, value });
            }
            rows.push(Row { key: block.keys.get(row).to_vec(), cells });
        }
    }
    rows
}

/// Columns that a scan selects.
#[derive(Debug, Clone)]
enum Selected {
    /// Some, by name.
    Named(Vec<Index>),
    /// Those of the family of a column.
    Family(Index),
    /// Those with a qualifier of at least that of a column.
    From(Index),
}

#[derive(Debug, Clone)]
struct Options {
    /// Pairs of keys.
    ranges: Option<Vec<(Index, Index)>>,
    pattern: Option<&'static str>,
    reversed: bool,
    limit: u64,
    rows: Rows,
    columns: Option<Selected>,
    /// A pair of timestamps.
    times: Option<(Index, Index)>,
    newest: usize,
    include_expired: bool,
}

fn options() -> impl Strategy<Value = Options> {
    let pair = (any::<Index>(), any::<Index>());
    let selected = prop_oneof![
        vec(any::<Index>(), 0..3).prop_map(Selected::Named),
        any::<Index>().prop_map(Selected::Family),
        any::<Index>().prop_map(Selected::From),
    ];
    let read = (
        option::of(vec(pair.clone(), 0..3)),
        option::of(select(vec![".*", "0000[12].*", "00003.*|0000[0-4]", ".*0", "nothing"])),
        any::<bool>(),
        prop_oneof![Just(u64::MAX), 0_u64..6],
    );
    let cells = (
        select(vec![Rows::WithSelected, Rows::WithinTimes, Rows::All]),
        option::of(selected),
        option::of(pair),
        prop_oneof![Just(usize::MAX), 0_usize..3],
        any::<bool>(),
    );
    (read, cells).prop_map(|(read, cells)| {
        let (ranges, pattern, reversed, limit) = read;
        let (rows, columns, times, newest, include_expired) = cells;
        Options { ranges, pattern, reversed, limit, rows, columns, times, newest, include_expired }
    })
}

/// What the options mean for the rows of a table.
struct Wanted {
    ranges: Vec<KeyRange>,
    pattern: Option<KeyPattern>,
    columns: Option<Columns>,
    times: Range<i64>,
}

impl Wanted {
    fn new(options: &Options, rows: &[Row]) -> Self {
        let cells: Vec<&Cell> = rows.iter().flat_map(|row| &row.cells).collect();
        let mut ranges = vec![KeyRange::all()];
        if let Some(pairs) = &options.ranges {
            ranges.clear();
            for (one, other) in pairs {
                let (one, other) = (&one.get(rows).key, &other.get(rows).key);
                ranges.push(KeyRange { start: one.min(other).clone(), end: Some(one.max(other).clone()) });
            }
        }
        let mut times = i64::MIN..i64::MAX;
        if let Some((one, other)) = &options.times {
            let (one, other) = (one.get(&cells).timestamp, other.get(&cells).timestamp);
            times = one.min(other)..one.max(other);
        }
        let columns = options.columns.as_ref().map(|selected| columns(selected, &cells));
        let pattern = options.pattern.map(|pattern| KeyPattern::new(pattern).unwrap());
        Self { ranges, pattern, columns, times }
    }

    fn scan(&self, snapshot: Snapshot, options: &Options) -> CellScan {
        CellScan {
            keys: self.ranges.clone(),
            pattern: self.pattern.clone(),
            reversed: options.reversed,
            limit: options.limit,
            rows: options.rows,
            columns: self.columns.clone(),
            times: self.times.clone(),
            newest: options.newest,
            ..CellScan::new(snapshot)
        }
    }

    /// The rows that the scan should return, of all rows.
    fn of(&self, options: &Options, rows: &[Row]) -> Vec<Row> {
        let mut found = Vec::new();
        for row in rows {
            let is_named = self.ranges.iter().any(|range| range.contains(&row.key))
                && self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(&row.key));
            let cells = self.cells(row, options.newest);
            let is_shown = match options.rows {
                Rows::WithSelected => !cells.is_empty(),
                Rows::WithinTimes => row.cells.iter().any(|cell| self.times.contains(&cell.timestamp)),
                Rows::All => true,
            };
            if is_named && is_shown {
                found.push(Row { key: row.key.clone(), cells });
            }
        }
        if options.reversed {
            found.reverse();
        }
        found.truncate(usize::try_from(options.limit).unwrap());
        found
    }

    fn cells(&self, row: &Row, newest: usize) -> Vec<Cell> {
        let mut cells: Vec<Cell> = Vec::new();
        for cell in &row.cells {
            let is_selected = self.columns.as_ref().is_none_or(|columns| columns(&cell.family, Some(&cell.qualifier)));
            let same = |seen: &&Cell| seen.family == cell.family && seen.qualifier == cell.qualifier;
            if is_selected && self.times.contains(&cell.timestamp) && cells.iter().filter(same).count() < newest {
                cells.push(cell.clone());
            }
        }
        cells
    }
}

fn columns(selected: &Selected, cells: &[&Cell]) -> Columns {
    match selected {
        Selected::Named(named) => {
            let named: Vec<(String, Vec<u8>)> = named
                .iter()
                .map(|index| index.get(cells))
                .map(|cell| (cell.family.clone(), cell.qualifier.clone()))
                .collect();
            Arc::new(move |family, qualifier| {
                named.iter().any(|(of, name)| of == family && qualifier.is_none_or(|qualifier| name == qualifier))
            })
        }
        Selected::Family(index) => {
            let family = index.get(cells).family.clone();
            Arc::new(move |of, _| of == family)
        }
        Selected::From(index) => {
            let from = index.get(cells).qualifier.clone();
            Arc::new(move |_, qualifier| qualifier.is_none_or(|qualifier| qualifier >= &from[..]))
        }
    }
}

#[test]
fn scans_return_what_a_filter_over_all_cells_returns() {
    for shape in small().unwrap() {
        let snapshot = Store::new(Arc::new(shape.shelf)).snapshot("T").unwrap();
        let expired = snapshot.including_expired();
        let (rows, expired_rows) = (all_rows(&snapshot), all_rows(&expired));
        assert!(!rows.is_empty(), "{}", shape.name);
        proptest!(ProptestConfig::with_cases(SCANS), |(options in options())| {
            let (snapshot, rows) =
                if options.include_expired { (&expired, &expired_rows) } else { (&snapshot, &rows) };
            let wanted = Wanted::new(&options, rows);
            let found = collected(&wanted.scan(snapshot.clone(), &options));
            prop_assert_eq!(found, wanted.of(&options, rows), "{}", shape.name);
        });
    }
}
