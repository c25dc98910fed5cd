//! Upsert: a newer event replaces the whole row.
//!
//! Of the events of a row, the one with the greatest cell timestamp stays, the last to arrive if several have it.
//! Events of one source row stay together. Cells at timestamp 0 are merged as usual, not replaced. An event without
//! any other cell empties the row: a record without values keeps its timestamp (see `emptied`).

use tidetable_layout::StoredSchema;
use tidetable_layout::schema::TimestampKind;

use crate::sort::order::Row;
use crate::sort::piece::{GroupEvents, PieceEvents};

/// The events that remain of each row, one row after the other.
#[derive(Debug)]
pub(crate) struct Upserts {
    kept: Vec<u32>,
    /// End of the remaining events of each row.
    ends: Vec<usize>,
    /// For emptied rows, what keeps the timestamp.
    emptied: Vec<Option<EmptiedRow>>,
    pub(crate) overwritten: u64,
    pub(crate) lost: Vec<u32>,
}

/// Where the timestamp of the upsert stays that emptied a row.
#[derive(Debug, Clone, Copy)]
struct EmptiedRow {
    group: usize,
    event: u32,
}

/// A column group with stored timestamps.
struct StoredGroup<'a> {
    index: usize,
    events: &'a GroupEvents,
}

/// The timestamp of an event, and the group that stores it. Of equal timestamps the later group is the greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct EventTime {
    time: i64,
    group: usize,
}

impl Upserts {
    /// Decides which events of each row of a piece remain.
    pub(crate) fn new(schema: &StoredSchema, piece: &PieceEvents) -> Self {
        let mut stored = Vec::new();
        for (index, (group, events)) in schema.groups.iter().zip(&piece.groups).enumerate() {
            if group.timestamps == TimestampKind::Stored {
                stored.push(StoredGroup { index, events });
            }
        }

        let rows = piece.rows.len();
        let (ends, emptied) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
        let mut upserts = Self { kept: Vec::new(), ends, emptied, overwritten: 0, lost: Vec::new() };
        for row in &piece.rows {
            upserts.push_row(row, &stored, piece);
        }
        upserts
    }

    /// Keeps the events of the source row with the greatest timestamp.
    fn push_row(&mut self, row: &Row, stored: &[StoredGroup<'_>], piece: &PieceEvents) {
        let newest = row.events().filter_map(|event| Some((time(stored, event)?, event)));
        let mut emptied = None;
        // Of equal times the last wins.
        if let Some((EventTime { group, .. }, newest)) = newest.max_by_key(|(time, _)| time.time) {
            let unit = piece.unit(newest);
            let mut left = 0;
            for event in row.events() {
                let cells = cells(stored, event);
                if piece.unit(event) == unit {
                    self.kept.push(event);
                    left += cells;
                } else {
                    self.overwritten += cells;
                    if cells > 0 {
                        self.lost.push(event);
                    }
                }
            }
            emptied = (left == 0).then_some(EmptiedRow { group, event: newest });
        }

        self.ends.push(self.kept.len());
        self.emptied.push(emptied);
    }

    /// The event that keeps the timestamp of an emptied row, if `group` stores it.
    pub(crate) fn emptied(&self, row: usize, group: usize) -> Option<u32> {
        self.emptied[row].filter(|emptied| emptied.group == group).map(|emptied| emptied.event)
    }

    pub(crate) fn empties(&self) -> bool {
        self.emptied.iter().any(Option::is_some)
    }

    /// The remaining events of a row, in order of arrival.
    pub(crate) fn events(&self, row: usize) -> &[u32] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.kept[start..self.ends[row]]
    }
}

/// The greatest timestamp of an event's cells; without cells, the greatest that they would have.
fn time(stored: &[StoredGroup<'_>], event: u32) -> Option<EventTime> {
    let with_cells = stored.iter().filter(|group| group.cells(event).next().is_some());
    let of_cells = with_cells.filter_map(|group| group.time(event)).max();
    of_cells.or_else(|| stored.iter().filter_map(|group| group.time(event)).max())
}

/// Number of cells that an event has in these groups.
fn cells(stored: &[StoredGroup<'_>], event: u32) -> u64 {
    stored.iter().map(|group| group.cells(event).count() as u64).sum()
}

impl StoredGroup<'_> {
    fn time(&self, event: u32) -> Option<EventTime> {
        Some(EventTime { time: self.events.timestamps.as_ref()?[event as usize], group: self.index })
    }

    /// The columns in which an event has a cell.
    fn cells(&self, event: u32) -> impl Iterator<Item = usize> {
        (0..self.events.columns.len()).filter(move |column| self.events.has(event, *column))
    }
}
