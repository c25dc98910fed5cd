//! Tables in which a newer event of a row replaces the whole row.
//!
//! Of the events of a row, the one with the greatest timestamp of a cell is left, the last to come if several have it; where
//! one row of the source becomes several events, they stay together. Cells at timestamp 0 are not replaced but combined as
//! ever. An event without any such cell empties the row: a record without values keeps its time (see `emptied`).

use tidetable_layout::StoredSchema;
use tidetable_layout::schema::TimestampKind;

use crate::load::sort::chunk::{GroupEvents, WindowEvents};
use crate::load::sort::order::{Row, RowOrder};

/// The events that are left of each row.
#[derive(Debug)]
pub(crate) struct Upserts {
    kept: Vec<u32>,
    /// For each row, the end of its events.
    ends: Vec<usize>,
    /// Of rows that are left without a cell: the group that keeps the time, and the event it comes from.
    emptied: Vec<Option<(usize, u32)>>,
    /// Cells of events that are not left.
    pub(crate) overwritten: u64,
}

/// A group whose cells have timestamps, and its place.
type Stored<'a> = (usize, &'a GroupEvents);

impl Upserts {
    pub(crate) fn new(schema: &StoredSchema, window: &WindowEvents, order: &RowOrder, rows: &[Row]) -> Self {
        let groups = schema.groups.iter().zip(&window.groups).enumerate();
        let stored = groups.filter(|(_, (group, _))| group.timestamps == TimestampKind::Stored);
        let stored: Vec<Stored<'_>> = stored.map(|(at, (_, events))| (at, events)).collect();
        let (ends, emptied) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        let mut out = Self { kept: Vec::new(), ends, emptied, overwritten: 0 };
        for row in rows {
            let events = &order.events[row.events()];
            let newest = events.iter().filter_map(|event| Some((time(&stored, *event)?, *event)));
            let mut emptied = None;
            // Of equal times the last counts.
            if let Some(((_, group), newest)) = newest.max_by_key(|((time, _), _)| *time) {
                let unit = window.unit(newest);
                let mut left = 0;
                for event in events {
                    if window.unit(*event) == unit {
                        out.kept.push(*event);
                        left += cells(&stored, *event);
                    } else {
                        out.overwritten += cells(&stored, *event);
                    }
                }
                emptied = (left == 0).then_some((group, newest));
            }
            out.ends.push(out.kept.len());
            out.emptied.push(emptied);
        }
        out
    }

    /// The event that keeps the time of a row that is left without a cell, if `group` is where that stands.
    pub(crate) fn emptied(&self, row: usize, group: usize) -> Option<u32> {
        self.emptied[row].filter(|(at, _)| *at == group).map(|(_, event)| event)
    }

    /// Whether any row is left without a cell.
    pub(crate) fn empties(&self) -> bool {
        self.emptied.iter().any(Option::is_some)
    }

    /// The events of a row that are left, in the order they came.
    pub(crate) fn events(&self, row: usize) -> &[u32] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.kept[start..self.ends[row]]
    }
}

/// The greatest timestamp of an event's cells, and its group; of an event without any, the greatest that they would have.
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
