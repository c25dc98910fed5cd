//! Evaluates filters on batches of cells: each filter turns the cells of all rows of a batch into those that it lets through.

use std::cmp::Reverse;
use std::hash::Hasher;
use std::ops::Range;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use crate::cells::{CellBatch, ColumnId};
use crate::serve::filter::tree::{Filter, NameFilter};

/// A cell that filters let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Picked {
    /// Its index in the batch.
    pub(crate) cell: u32,
    /// Number of its label.
    pub(crate) label: Option<u16>,
    /// Whether its value is replaced by the empty string.
    pub(crate) stripped: bool,
}

/// Cells of the rows of a batch. A row may have none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Picks {
    cells: Vec<Picked>,
    row_ends: Vec<u32>,
}

impl Picks {
    /// All cells of a batch.
    fn all(batch: &CellBatch) -> Self {
        let cells = (0..batch.len() as u32).map(|cell| Picked { cell, label: None, stripped: false }).collect();
        Self { cells, row_ends: (0..batch.rows()).map(|row| batch.cells(row).end as u32).collect() }
    }

    /// The cells of a row.
    pub(crate) fn row(&self, row: usize) -> &[Picked] {
        self.cells.get(self.span(row)).unwrap_or_default()
    }

    fn span(&self, row: usize) -> Range<usize> {
        let end_of = |row: usize| self.row_ends.get(row).map_or(0, |end| *end as usize);
        row.checked_sub(1).map_or(0, end_of)..end_of(row)
    }

    /// Keeps cells; `keep` is given the row and the cells of it that were kept before.
    fn retain(&mut self, mut keep: impl FnMut(usize, &[Picked], &Picked) -> bool) {
        let mut kept = 0;
        let mut start = 0;
        for (row, row_end) in self.row_ends.iter_mut().enumerate() {
            let end = *row_end as usize;
            let first = kept;
            for at in start..end {
                let picked = self.cells[at];
                if keep(row, &self.cells[first..kept], &picked) {
                    self.cells[kept] = picked;
                    kept += 1;
                }
            }
            start = end;
            *row_end = kept as u32;
        }
        self.cells.truncate(kept);
    }

    /// The cells of all of `parts`, row by row; within a row, in the order of cells.
    fn merged(parts: &[Self], batch: &CellBatch) -> Self {
        let mut out = Self::default();
        let order = |picked: &Picked| {
            let cell = picked.cell as usize;
            (batch.column_of().get(cell).copied(), Reverse(batch.timestamp(cell)))
        };
        for row in 0..batch.rows() {
            let start = out.cells.len();
            parts.iter().for_each(|part| out.cells.extend_from_slice(part.row(row)));
            if let Some(cells) = out.cells.get_mut(start..) {
                cells.sort_by_key(order);
            }
            out.row_ends.push(out.cells.len() as u32);
        }
        out
    }
}

/// A filter with what is known of the columns of a batch.
#[derive(Debug)]
pub(crate) struct Evaluator<'a> {
    filter: &'a Filter,
    columns: Arc<[ColumnId]>,
    /// For each filter of names, whether it lets each column through.
    names: Vec<Vec<bool>>,
}

impl<'a> Evaluator<'a> {
    pub(crate) fn new(filter: &'a Filter) -> Self {
        Self { filter, columns: Arc::default(), names: Vec::new() }
    }

    /// The cells of a batch that pass.
    pub(crate) fn picks(&mut self, batch: &CellBatch) -> Picks {
        if !Arc::ptr_eq(&self.columns, batch.columns()) {
            self.columns = Arc::clone(batch.columns());
            self.names.clear();
        }
        let mut sunk = Vec::new();
        let passed = self.apply(self.filter, Picks::all(batch), batch, &mut sunk);
        if sunk.is_empty() {
            return passed;
        }
        sunk.insert(0, passed);
        Picks::merged(&sunk, batch)
    }

    fn apply(&mut self, filter: &Filter, mut picks: Picks, batch: &CellBatch, sunk: &mut Vec<Picks>) -> Picks {
        match filter {
            Filter::All => {}
            Filter::Nothing => picks.retain(|_, _, _| false),
            Filter::Chain(filters) => {
                return filters.iter().fold(picks, |picks, filter| self.apply(filter, picks, batch, sunk));
            }
            Filter::Interleave(filters) => {
                let parts: Vec<Picks> =
                    filters.iter().map(|filter| self.apply(filter, picks.clone(), batch, sunk)).collect();
                return Picks::merged(&parts, batch);
            }
            Filter::Condition { predicate, yes, no } => {
                let found = self.apply(predicate, picks.clone(), batch, sunk);
                let mut other = picks.clone();
                picks.retain(|row, _, _| !found.row(row).is_empty());
                other.retain(|row, _, _| found.row(row).is_empty());
                let parts = [self.apply(yes, picks, batch, sunk), self.apply(no, other, batch, sunk)];
                return Picks::merged(&parts, batch);
            }
            Filter::Sink => {
                let row_ends = vec![0; picks.row_ends.len()];
                sunk.push(picks);
                return Picks { cells: Vec::new(), row_ends };
            }
            Filter::Key(pattern) => by_row(&mut picks, |row| pattern.matches(batch.key(row))),
            Filter::Sample { rate, seed } => by_row(&mut picks, |row| is_sampled(batch.key(row), *rate, *seed)),
            Filter::Name { index, name } => {
                let passes = self.passes(*index, name);
                let column_of = batch.column_of();
                picks.retain(|_, _, picked| {
                    let column = column_of.get(picked.cell as usize).map(|column| *column as usize);
                    column.and_then(|column| passes.get(column)) == Some(&true)
                });
            }
            Filter::Times(times) => {
                picks.retain(|_, _, picked| times.contains(&batch.timestamp(picked.cell as usize)));
            }
            Filter::Value(pattern) => picks.retain(|_, _, picked| pattern.matches(value(batch, picked))),
            Filter::Values(range) => picks.retain(|_, _, picked| range.contains(value(batch, picked))),
            Filter::RowOffset(cells) => {
                let mut last = (usize::MAX, 0);
                picks.retain(|row, _, _| {
                    last = (row, if last.0 == row { last.1 + 1 } else { 1 });
                    last.1 > *cells
                });
            }
            Filter::RowLimit(cells) => picks.retain(|_, kept, _| kept.len() < *cells),
            Filter::ColumnLimit(cells) => {
                let column_of = |picked: &Picked| batch.column_of().get(picked.cell as usize);
                picks.retain(|_, kept, picked| {
                    let column = column_of(picked);
                    // The cells of a column are in a row.
                    kept.len()
                        .checked_sub(*cells)
                        .and_then(|at| kept.get(at))
                        .is_none_or(|kept| column_of(kept) != column)
                });
            }
            Filter::Strip => picks.cells.iter_mut().for_each(|picked| picked.stripped = true),
            Filter::Label(label) => picks.cells.iter_mut().for_each(|picked| picked.label = Some(*label)),
        }
        picks
    }

    /// Whether the filter of names lets each column through.
    fn passes(&mut self, index: usize, name: &NameFilter) -> &[bool] {
        if self.names.len() <= index {
            self.names.resize(index + 1, Vec::new());
        }
        let Some(passes) = self.names.get_mut(index) else { return &[] };
        if passes.len() != self.columns.len() {
            *passes = self.columns.iter().map(|column| name.passes(&column.family, Some(&column.qualifier))).collect();
        }
        passes
    }
}

/// The value of a cell, as filters see it.
fn value<'a>(batch: &'a CellBatch, picked: &Picked) -> &'a [u8] {
    if picked.stripped { &[] } else { batch.value(picked.cell as usize) }
}

fn by_row(picks: &mut Picks, keeps: impl Fn(usize) -> bool) {
    let mut last: Option<(usize, bool)> = None;
    picks.retain(|row, _, _| match last {
        Some((known, keeps)) if known == row => keeps,
        _ => {
            let keeps = keeps(row);
            last = Some((row, keeps));
            keeps
        }
    });
}

/// Whether a row is in a sample: always the same rows, so that an answer can be repeated.
fn is_sampled(key: &[u8], rate: f64, seed: u64) -> bool {
    let mut hash = Xxh3::with_seed(seed);
    hash.write(key);
    // The upper 53 bits, as a number in [0, 1).
    let unit = (hash.finish() >> 11) as f64 / (1_u64 << 53) as f64;
    unit < rate
}
