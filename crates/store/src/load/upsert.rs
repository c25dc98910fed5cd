//! Tables in which a newer event of a row replaces the whole row.
//!
//! Of the events of a row that have a cell with a timestamp, the one with the greatest such timestamp is left, the last
//! to come if several have it; where one row of the source becomes several events, they stay together. Cells at timestamp
//! 0 are not replaced but combined as ever.

use tidetable_layout::{StoredSchema, TimestampKind};

use super::chunk::{GroupEvents, WindowEvents};
use super::order::{Row, RowOrder};

/// The events that are left of each row.
#[derive(Debug)]
pub(super) struct Upserts {
    kept: Vec<u32>,
    /// For each row, the end of its events.
    ends: Vec<usize>,
    /// Cells of events that are not left.
    pub(super) overwritten: u64,
}

impl Upserts {
    pub(super) fn new(schema: &StoredSchema, window: &WindowEvents, order: &RowOrder, rows: &[Row]) -> Self {
        let stored = schema.groups.iter().zip(&window.groups);
        let stored: Vec<&GroupEvents> =
            stored.filter(|(group, _)| group.timestamps == TimestampKind::Stored).map(|(_, events)| events).collect();
        let mut out = Self { kept: Vec::new(), ends: Vec::with_capacity(rows.len()), overwritten: 0 };
        for row in rows {
            let events = &order.events[row.events()];
            let newest = events.iter().filter_map(|event| Some((time(&stored, *event)?, *event)));
            // Of equal times the last counts.
            if let Some((_, newest)) = newest.max_by_key(|(time, _)| *time) {
                let unit = window.unit(newest);
                for event in events {
                    if window.unit(*event) == unit {
                        out.kept.push(*event);
                    } else {
                        out.overwritten += cells(&stored, *event);
                    }
                }
            }
            out.ends.push(out.kept.len());
        }
        out
    }

    /// The events of a row that are left, in the order they came.
    pub(super) fn events(&self, row: usize) -> &[u32] {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.kept[start..self.ends[row]]
    }
}

/// The greatest timestamp of an event's cells.
fn time(stored: &[&GroupEvents], event: u32) -> Option<i64> {
    let has = |group: &&&GroupEvents| (0..group.columns.len()).any(|column| group.has(event, column));
    stored.iter().filter(has).filter_map(|group| group.timestamps.as_ref().map(|times| times[event as usize])).max()
}

fn cells(stored: &[&GroupEvents], event: u32) -> u64 {
    let of = |group: &&GroupEvents| (0..group.columns.len()).filter(|column| group.has(event, *column)).count() as u64;
    stored.iter().map(of).sum()
}
