//! Upsert: a newer event replaces the whole row.
//!
//! Of the events of a row, the one with the greatest cell timestamp stays, the last to arrive if several have it.
//! Events of one source row stay together. Cells at timestamp 0 are merged as usual, not replaced. An event without
//! any other cell empties the row: a record without values keeps its timestamp (see `emptied`).

use tidetable_layout::StoredSchema;
use tidetable_layout::schema::TimestampKind;

use crate::sort::piece::{GroupEvents, PieceEvents};

/// The events that remain of each row.
#[derive(Debug)]
pub(crate) struct Upserts {
    kept: Vec<u32>,
    /// End of the remaining events of each row.
    ends: Vec<usize>,
    /// For emptied rows, the column group and the event that keep the timestamp.
    emptied: Vec<Option<(usize, u32)>>,
    /// Cells of replaced events.
    pub(crate) overwritten: u64,
    /// Replaced events that have cells.
    pub(crate) lost: Vec<u32>,
}

/// A column group with stored timestamps, and its index.
type Stored<'a> = (usize, &'a GroupEvents);

impl Upserts {
    pub(crate) fn new(schema: &StoredSchema, piece: &PieceEvents) -> Self {
        let rows = piece.rows.as_slice();
        let groups = schema.groups.iter().zip(&piece.groups).enumerate();
        let stored = groups.filter(|(_, (group, _))| group.timestamps == TimestampKind::Stored);
        let stored: Vec<Stored<'_>> = stored.map(|(at, (_, events))| (at, events)).collect();
        let (ends, emptied) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        let mut out = Self { kept: Vec::new(), ends, emptied, overwritten: 0, lost: Vec::new() };
        for row in rows {
            let newest = row.events().filter_map(|event| Some((time(&stored, event)?, event)));
            let mut emptied = None;
            // Of equal times the last wins.
            if let Some(((_, group), newest)) = newest.max_by_key(|((time, _), _)| *time) {
                let unit = piece.unit(newest);
                let mut left = 0;
                for event in row.events() {
                    let cells = cells(&stored, event);
                    if piece.unit(event) == unit {
                        out.kept.push(event);
                        left += cells;
                    } else {
                        out.overwritten += cells;
                        if cells > 0 {
                            out.lost.push(event);
                        }
                    }
                }
                emptied = (left == 0).then_some((group, newest));
            }
            out.ends.push(out.kept.len());
            out.emptied.push(emptied);
        }
        out
    }

    /// The event that keeps the timestamp of an emptied row, if `group` stores it.
    pub(crate) fn emptied(&self, row: usize, group: usize) -> Option<u32> {
        self.emptied[row].filter(|(at, _)| *at == group).map(|(_, event)| event)
    }

    /// Whether any row is emptied.
    pub(crate) fn empties(&self) -> bool {
        self.emptied.iter().any(Option::is_some)
    }

    /// The remaining events of a row, in order of arrival.
    pub(crate) fn events(&self, row: usize) -> &[u32] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.kept[start..self.ends[row]]
    }
}

/// The greatest timestamp of an event's cells, and its group; without cells, the greatest that they would have.
fn time(stored: &[Stored<'_>], event: u32) -> Option<(i64, usize)> {
    let time = |(at, group): &Stored<'_>| Some((group.timestamps.as_ref()?[event as usize], *at));
    let has = |(_, group): &&Stored<'_>| (0..group.columns.len()).any(|column| group.has(event, column));
    let of_cells = stored.iter().filter(has).filter_map(time).max();
    of_cells.or_else(|| stored.iter().filter_map(time).max())
}

fn cells(stored: &[Stored<'_>], event: u32) -> u64 {
    let of =
        |(_, group): &Stored<'_>| (0..group.columns.len()).filter(|column| group.has(event, *column)).count() as u64;
    stored.iter().map(of).sum()
}
