//! Evaluates filters on batches of cells: each filter turns the cells of a piece of a batch into those that it lets through.
//!
//! A piece is some rows, or a part of a long one, so that the lists of cells that are held fit into the memory of a request.
//! Filters that count go on from piece to piece. Whether a long row satisfies a condition is decided before any of it is let
//! through, by passes over the row that stop where the condition is.

use std::hash::Hasher;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use crate::cells::{CellBatch, ColumnId};
use crate::serve::filter::picks::{Merging, Meter, Picked, Picks, RowCursor};
use crate::serve::filter::tree::{CompiledFilter, Counted, Filter, NameFilter};

/// Lists as long as a piece that are held at a time: of each level of a filter, and of the level that merges.
const LISTS_PER_LEVEL: usize = 5;
const LISTS_OF_MERGE: usize = 12;
/// Steps of a piece, cells times filters: the client of a request is looked after in between.
const MOST_STEPS: usize = 1 << 24;

/// Takes the rows of an answer.
pub(crate) trait PickedRows {
    /// Whether the evaluation should go on; asked often.
    fn goes_on(&mut self) -> bool;

    /// Takes cells of a row, or the rest of them if it `ends`; there may be none. Returns false to stop.
    fn cells(&mut self, row: usize, picked: &[Picked], ends: bool) -> bool;
}

/// A filter with what is known of the columns of a batch, and of the row that is evaluated.
#[derive(Debug)]
pub(crate) struct Evaluator<'a> {
    filter: &'a CompiledFilter,
    columns: Arc<[ColumnId]>,
    /// For each filter of names, whether it lets each column through.
    names: Vec<Vec<bool>>,
    /// Greatest number of cells of a piece.
    piece: usize,
    /// The first row of the piece.
    row: usize,
    long_row: Option<LongRow>,
    /// Cells that went to a sink.
    sunk: Merging,
    meter: Rc<Meter>,
    places: Vec<usize>,
}

/// A row that is evaluated in several pieces.
#[derive(Debug, Default)]
struct LongRow {
    /// Whether it satisfies each condition, as far as that is decided: the next one is looked for.
    conditions: Vec<bool>,
    /// Whether this piece came to the condition that is looked for, and whether that holds.
    is_reached: bool,
    holds: bool,
    /// For each filter that counts, the cells seen so far of the row, or of its last column.
    seen: Vec<Seen>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    column: u32,
    cells: u64,
}

/// What a filter does with the first cells of a row or a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    Kept,
    Dropped,
    KeptOfColumn,
}

impl<'a> Evaluator<'a> {
    /// An evaluator whose lists of cells hold at most about `memory` bytes.
    pub(crate) fn new(filter: &'a CompiledFilter, memory: usize) -> Self {
        let lists = LISTS_PER_LEVEL * filter.depth + LISTS_OF_MERGE;
        let by_memory = memory / (lists * filter.kinds * size_of::<Picked>());
        let by_steps = MOST_STEPS / (filter.nodes * filter.kinds);
        Self {
            filter,
            columns: Arc::default(),
            names: Vec::new(),
            piece: by_memory.min(by_steps).max(1),
            row: 0,
            long_row: None,
            sunk: Merging::default(),
            meter: Rc::default(),
            places: Vec::new(),
        }
    }

    /// Gives the cells of a batch that pass to `rows`. Returns false if that stopped.
    pub(crate) fn run(&mut self, batch: &CellBatch, rows: &mut dyn PickedRows) -> bool {
        if !Arc::ptr_eq(&self.columns, batch.columns()) {
            self.columns = Arc::clone(batch.columns());
            self.names.clear();
        }

        let mut row = 0;
        while row < batch.rows() {
            let first = batch.cells(row);
            let mut end = row + 1;
            while end < batch.rows() && batch.cells(end).end - first.start <= self.piece {
                end += 1;
            }
            let goes_on = match first.len() <= self.piece {
                true => rows.goes_on() && self.whole_rows(batch, row..end, rows),
                false => self.parts(batch, row, rows),
            };
            if !goes_on {
                return false;
            }
            row = if first.len() <= self.piece { end } else { row + 1 };
        }
        true
    }

    /// The most bytes of lists that were held at a time.
    #[cfg(test)]
    pub(crate) fn most_held(&self) -> usize {
        self.meter.most()
    }

    fn whole_rows(&mut self, batch: &CellBatch, of: Range<usize>, rows: &mut dyn PickedRows) -> bool {
        self.row = of.start;
        let last = of.end.saturating_sub(1);
        let Some(picks) = self.piece(batch, batch.cells(of.start).start..batch.cells(last).end) else { return true };

        let mut rest = picks.cells.as_slice();
        for row in of {
            let end = batch.cells(row).end;
            let (picked, after) = rest.split_at(rest.partition_point(|picked| (picked.cell as usize) < end));
            if !rows.cells(row, picked, true) {
                return false;
            }
            rest = after;
        }
        true
    }

    /// The same for a row that is longer than a piece.
    fn parts(&mut self, batch: &CellBatch, row: usize, rows: &mut dyn PickedRows) -> bool {
        self.row = row;
        let all = batch.cells(row);
        let most = self.piece;
        let pieces = all.clone().step_by(most).map(|start| start..all.end.min(start + most));

        let mut decided = Vec::new();
        while decided.len() < self.filter.conditions {
            self.long_row = Some(LongRow::after(std::mem::take(&mut decided), self.filter.counters));
            for piece in pieces.clone() {
                if !rows.goes_on() {
                    return false;
                }
                self.piece(batch, piece);
                // In a branch that is not taken it is reached by no piece.
                if self.long_row.as_ref().is_some_and(|row| row.holds || !row.is_reached) {
                    break;
                }
            }
            let found = self.long_row.take().unwrap_or_default();
            decided = found.conditions;
            decided.push(found.holds);
        }

        self.long_row = Some(LongRow::after(decided, self.filter.counters));
        for piece in pieces {
            if !rows.goes_on() {
                return false;
            }
            let ends = piece.end == all.end;
            let Some(picks) = self.piece(batch, piece) else { return true };
            if !rows.cells(row, &picks.cells, ends) {
                return false;
            }
        }
        self.long_row = None;
        true
    }

    /// The cells of a piece that pass; `None` where a condition is looked for.
    fn piece(&mut self, batch: &CellBatch, cells: Range<usize>) -> Option<Picks> {
        let cells = (cells.start as u32..cells.end as u32).map(Picked::one).collect();
        let filter = self.filter;
        let passed = self.apply(&filter.root, Picks::new(cells, &self.meter), batch);

        // Cells of sinks join the others as in an interleave.
        let sunk = std::mem::take(&mut self.sunk).finish(&self.meter, &mut self.places);
        let mut merging = Merging::default();
        merging.push(passed?, &mut self.places);
        merging.push(sunk, &mut self.places);
        Some(merging.finish(&self.meter, &mut self.places))
    }

    /// The cells of `picks` that a filter lets through; `None` where a condition is looked for.
    fn apply(&mut self, filter: &Filter, mut picks: Picks, batch: &CellBatch) -> Option<Picks> {
        match filter {
            Filter::All => {}
            Filter::Nothing => picks.cells.clear(),
            Filter::Chain(filters) => {
                for filter in filters {
                    picks = self.apply(filter, picks, batch)?;
                }
            }
            Filter::Interleave(filters) => {
                let mut merging = Merging::default();
                for filter in filters {
                    let part = self.apply(filter, picks.clone(), batch)?;
                    merging.push(part, &mut self.places);
                }
                drop(picks);
                return Some(merging.finish(&self.meter, &mut self.places));
            }
            Filter::Condition { index, predicate, yes, no } => {
                return match &self.long_row {
                    Some(_) => self.condition_of_part(*index, [predicate, yes, no], picks, batch),
                    None => self.condition([predicate, yes, no], picks, batch),
                };
            }
            Filter::Sink => {
                let rest = Picks::new(Vec::new(), &self.meter);
                self.sunk.push(picks, &mut self.places);
                return Some(rest);
            }

            Filter::Key(pattern) => self.by_row(&mut picks, batch, |row| pattern.matches(batch.key(row))),
            Filter::Sample { rate, seed } => {
                self.by_row(&mut picks, batch, |row| is_sampled(batch.key(row), *rate, *seed));
            }
            Filter::Name { index, name } => {
                let passes = self.passes(*index, name);
                picks.cells.retain(|picked| {
                    let column = batch.column_of().get(picked.cell as usize).map(|column| *column as usize);
                    column.and_then(|column| passes.get(column)) == Some(&true)
                });
            }
            Filter::Times(times) => picks.cells.retain(|picked| times.contains(&batch.timestamp(picked.cell as usize))),
            Filter::Value(pattern) => by_value(&mut picks, batch, |value| pattern.matches(value)),
            Filter::Values(range) => by_value(&mut picks, batch, |value| range.contains(value)),

            Filter::RowOffset(counted) => self.count(*counted, First::Dropped, &mut picks, batch),
            Filter::RowLimit(counted) => self.count(*counted, First::Kept, &mut picks, batch),
            Filter::ColumnLimit(counted) => self.count(*counted, First::KeptOfColumn, &mut picks, batch),
            Filter::Strip => {
                picks.cells.iter_mut().for_each(|picked| picked.stripped = true);
                picks.join_copies(&mut self.places);
            }
            Filter::Label(label) => {
                picks.cells.iter_mut().for_each(|picked| picked.label = Some(*label));
                picks.join_copies(&mut self.places);
            }
        }
        Some(picks)
    }

    /// The branches of a condition for whole rows.
    fn condition(&mut self, parts: [&Filter; 3], mut picks: Picks, batch: &CellBatch) -> Option<Picks> {
        let [predicate, yes, no] = parts;
        let found = self.apply(predicate, picks.clone(), batch)?;
        let mut cursor = RowCursor::at(batch, self.row);
        let mut holds: Vec<usize> = found.cells.iter().map(|picked| cursor.of(picked.cell)).collect();
        holds.dedup();
        drop(found);

        let mut other = picks.clone();
        self.by_row(&mut picks, batch, |row| holds.binary_search(&row).is_ok());
        self.by_row(&mut other, batch, |row| holds.binary_search(&row).is_err());
        let mut merging = Merging::default();
        let passed = self.apply(yes, picks, batch)?;
        merging.push(passed, &mut self.places);
        let passed = self.apply(no, other, batch)?;
        merging.push(passed, &mut self.places);
        Some(merging.finish(&self.meter, &mut self.places))
    }

    /// The branch of a condition for a part of a row.
    fn condition_of_part(
        &mut self,
        index: usize,
        parts: [&Filter; 3],
        picks: Picks,
        batch: &CellBatch,
    ) -> Option<Picks> {
        let [predicate, yes, no] = parts;
        match self.long_row.as_ref()?.conditions.get(index) {
            Some(true) => self.apply(yes, picks, batch),
            Some(false) => self.apply(no, picks, batch),
            None => {
                let found = self.apply(predicate, picks, batch)?;
                let row = self.long_row.as_mut()?;
                row.is_reached = true;
                row.holds = !found.cells.is_empty();
                None
            }
        }
    }

    /// Keeps the cells of some rows.
    fn by_row(&self, picks: &mut Picks, batch: &CellBatch, keeps: impl Fn(usize) -> bool) {
        let mut cursor = RowCursor::at(batch, self.row);
        let mut last: Option<(usize, bool)> = None;
        picks.cells.retain(|picked| {
            let row = cursor.of(picked.cell);
            match last {
                Some((known, keeps)) if known == row => keeps,
                _ => last.insert((row, keeps(row))).1,
            }
        });
    }

    /// Keeps or drops the first cells of each row or column.
    fn count(&mut self, counted: Counted, first: First, picks: &mut Picks, batch: &CellBatch) {
        let before = self.long_row.as_ref().and_then(|row| row.seen.get(counted.index));
        let mut seen = before.copied().unwrap_or_default();
        let mut cursor = RowCursor::at(batch, self.row);
        let mut last_row = self.row;

        picks.cells.retain_mut(|picked| {
            let row = cursor.of(picked.cell);
            let column = match first {
                First::KeptOfColumn => batch.column_of().get(picked.cell as usize).copied().unwrap_or_default(),
                First::Kept | First::Dropped => seen.column,
            };
            if (row, column) != (last_row, seen.column) {
                (last_row, seen) = (row, Seen { column, cells: 0 });
            }
            let of_first = picked.copies.min(counted.cells - seen.cells);
            seen.cells += of_first;
            picked.copies = if first == First::Dropped { picked.copies - of_first } else { of_first };
            picked.copies > 0
        });

        if let Some(of_row) = self.long_row.as_mut().and_then(|row| row.seen.get_mut(counted.index)) {
            *of_row = seen;
        }
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

impl LongRow {
    /// The row before its first piece, with the conditions that are decided.
    fn after(conditions: Vec<bool>, counters: usize) -> Self {
        Self { conditions, seen: vec![Seen::default(); counters], ..Self::default() }
    }
}

/// Keeps cells by their values, as filters see them.
fn by_value(picks: &mut Picks, batch: &CellBatch, keeps: impl Fn(&[u8]) -> bool) {
    let mut of_empty: Option<bool> = None;
    let mut last: Option<(u32, bool)> = None;
    picks.cells.retain(|picked| match last {
        _ if picked.stripped => *of_empty.get_or_insert_with(|| keeps(&[])),
        Some((cell, keeps)) if cell == picked.cell => keeps,
        _ => last.insert((picked.cell, keeps(batch.value(picked.cell as usize)))).1,
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
