//! The cells that a filter lets through.

use std::cell::Cell;
use std::rc::Rc;

use crate::cells::CellBatch;

/// Equal copies of a cell that filters let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Picked {
    /// Its index in the batch.
    pub(crate) cell: u32,
    /// Number of its label.
    pub(crate) label: Option<u16>,
    /// Whether its value is replaced by the empty string.
    pub(crate) stripped: bool,
    /// How many there are, at least one.
    pub(crate) copies: u64,
}

impl Picked {
    /// One copy of a cell as it is.
    pub(crate) fn one(cell: u32) -> Self {
        Self { cell, label: None, stripped: false, copies: 1 }
    }

    /// A number for its label and whether it has its value.
    fn kind(&self) -> usize {
        let label = self.label.map_or(0, |label| usize::from(label) + 1);
        2 * label + usize::from(self.stripped)
    }
}

/// Counts the bytes of the lists of cells that are held at a time.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    held: Cell<usize>,
    most: Cell<usize>,
}

impl Meter {
    /// The most that was held at a time.
    #[cfg(test)]
    pub(crate) fn most(&self) -> usize {
        self.most.get()
    }

    fn add(&self, bytes: usize) {
        self.held.set(self.held.get() + bytes);
        self.most.set(self.most.get().max(self.held.get()));
    }
}

/// Cells in the order of a batch; the copies of a cell by kind, in the order in which the kinds came first. The API leaves
/// the order of equal cells open.
#[derive(Debug)]
pub(crate) struct Picks {
    pub(crate) cells: Vec<Picked>,
    meter: Rc<Meter>,
    counted: usize,
}

impl Drop for Picks {
    fn drop(&mut self) {
        self.meter.held.set(self.meter.held.get() - self.counted);
    }
}

impl Clone for Picks {
    fn clone(&self) -> Self {
        Self::new(self.cells.clone(), &self.meter)
    }
}

impl Picks {
    pub(crate) fn new(cells: Vec<Picked>, meter: &Rc<Meter>) -> Self {
        let counted = cells.capacity() * size_of::<Picked>();
        meter.add(counted);
        Self { cells, meter: Rc::clone(meter), counted }
    }

    /// Joins copies of a kind.
    pub(crate) fn join_copies(&mut self, places: &mut Vec<usize>) {
        let mut kept = 0;
        for at in 0..self.cells.len() {
            let picked = self.cells[at];
            let kind = picked.kind();
            if places.len() <= kind {
                places.resize(kind + 1, 0);
            }

            let place = places[kind];
            match self.cells.get_mut(place).filter(|_| place < kept) {
                Some(before) if before.cell == picked.cell && before.kind() == kind => {
                    before.copies = before.copies.saturating_add(picked.copies);
                }
                _ => {
                    places[kind] = kept;
                    self.cells[kept] = picked;
                    kept += 1;
                }
            }
        }
        self.cells.truncate(kept);
    }
}

/// Merges lists of cells as they come. It holds at most twice what the merged list takes, and one list more.
#[derive(Debug, Default)]
pub(crate) struct Merging {
    /// What was merged, then what was not.
    lists: Vec<Picks>,
    merged: usize,
    waiting: usize,
}

impl Merging {
    pub(crate) fn push(&mut self, picks: Picks, places: &mut Vec<usize>) {
        if picks.cells.is_empty() {
            return;
        }
        self.waiting += picks.cells.len();
        self.lists.push(picks);
        if self.lists.len() > 2 && self.waiting > 2 * self.merged {
            self.merge(places);
        }
    }

    fn merge(&mut self, places: &mut Vec<usize>) {
        let lists = std::mem::take(&mut self.lists);
        let Some(meter) = lists.first().map(|list| Rc::clone(&list.meter)) else { return };
        let merged = if lists.len() == 1 {
            lists.into_iter().next()
        } else {
            let mut cells = Vec::with_capacity(lists.iter().map(|list| list.cells.len()).sum());
            lists.iter().for_each(|list| cells.extend_from_slice(&list.cells));
            drop(lists);
            let mut merged = Picks::new(cells, &meter);
            merged.cells.sort_by_key(|picked| picked.cell);
            merged.join_copies(places);
            Some(merged)
        };
        self.merged = merged.as_ref().map_or(0, |merged| merged.cells.len());
        self.waiting = 0;
        self.lists.extend(merged);
    }

    /// All lists, merged; an empty one if there was none.
    pub(crate) fn finish(mut self, meter: &Rc<Meter>, places: &mut Vec<usize>) -> Picks {
        self.merge(places);
        self.lists.pop().unwrap_or_else(|| Picks::new(Vec::new(), meter))
    }
}

/// Finds the rows of cells that ascend.
#[derive(Debug)]
pub(crate) struct RowCursor<'a> {
    batch: &'a CellBatch,
    row: usize,
    end: usize,
}

impl<'a> RowCursor<'a> {
    /// A cursor at `row`.
    pub(crate) fn at(batch: &'a CellBatch, row: usize) -> Self {
        Self { batch, row, end: batch.cells(row).end }
    }

    /// The row of a cell, which is not before that of the last one.
    pub(crate) fn of(&mut self, cell: u32) -> usize {
        while cell as usize >= self.end && self.row + 1 < self.batch.rows() {
            self.row += 1;
            self.end = self.batch.cells(self.row).end;
        }
        self.row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_a_kind_are_joined() {
        let meter = Rc::default();
        let kind = |cell, label, stripped, copies| Picked { cell, label, stripped, copies };
        let list = |cells: &[Picked]| Picks::new(cells.to_vec(), &meter);
        let (plain, bare) = (kind(0, None, false, 1), kind(0, None, true, 2));
        let (mut merging, mut places) = (Merging::default(), Vec::new());
        for cells in [&[bare, kind(1, Some(3), false, 1)][..], &[plain], &[], &[bare, kind(2, None, false, u64::MAX)]] {
            merging.push(list(cells), &mut places);
        }
        merging.push(list(&[plain, kind(1, None, false, 5), kind(2, None, false, 9)]), &mut places);
        let merged = merging.finish(&meter, &mut places);
        let expected = [
            kind(0, None, true, 4),
            kind(0, None, false, 2),
            kind(1, Some(3), false, 1),
            kind(1, None, false, 5),
            kind(2, None, false, u64::MAX),
        ];
        assert_eq!(merged.cells, expected);
        drop(merged);
        assert!(meter.held.get() == 0 && meter.most() > 0);
    }
}
