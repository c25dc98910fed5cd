//! Row-level decoding: fields that all records of a row share, decoded from its key.
//!
//! A meter's day is one key and 96 records. A reader that groups or filters by fields of the key decodes each value once
//! per row.

use std::sync::Arc;

use arrow::array::ArrayRef;

use crate::block::{Block, Keys};
use crate::decode::columns::ColumnReader;
use crate::decode::prefix_runs::PrefixRuns;
use crate::decode::record_alignment::{RecordAlignment, is_one_each};
use crate::error::DecodeError;
use crate::plan::{Layout, Origin, RecordField};
use crate::scalar::{ColumnView, ScalarRef};
use crate::schema::{ColumnRef, TimestampKind, ValueType};
use crate::time::{DAY, window_of};

/// Values of a block that all records of a row share, one per row.
#[derive(Debug, Clone)]
pub struct RowValues {
    /// For each requested field, in order, a value per row.
    pub columns: Vec<ArrayRef>,
    /// For each row, the end of its records among those that [`Layout::decode`] makes of the block.
    pub ends: Vec<u32>,
    /// Whether neighbouring rows with equal values are one here.
    pub joined: bool,
}

/// Rows are joined if runs have this many rows on average; fewer would not pay for the comparison.
const LEAST_JOINED: usize = 2;

impl Layout {
    /// Whether this record field (an index into [`Layout::records_schema`]) is decoded from the key, so that all records of
    /// a row share its value.
    pub fn is_row_field(&self, field: usize) -> bool {
        self.records.get(field).and_then(|record| record.origins.first()).is_some_and(Origin::is_key)
    }

    /// The resolution of the event time in keys, in microseconds, if `field` is the event time and the resolution divides a
    /// day. Truncated to it, the times of all records of a row are equal to the time in the key. Sound because key and
    /// cell timestamp are printed from one event time: only loads write cells, the timestamp is that time at a finer
    /// resolution, and a record without a timestamp takes the key's.
    pub fn row_time_step(&self, field: usize) -> Option<i64> {
        let record = self.records.get(field).filter(|record| record.field == self.source.time)?;
        let (last, before) = record.origins.split_last()?;
        let step = *record.steps.last()?;
        let of_cells = before.iter().all(|origin| match origin {
            Origin::Cell { group } => self.groups.get(*group).is_some_and(|plan| plan.time == Some(record.field)),
            _ => false,
        });
        // In local time an hour can repeat.
        let in_utc = match last {
            Origin::KeyTime { segments } => self.key_zone(segments).is_none(),
            Origin::Key { .. } => true,
            _ => false,
        };
        (of_cells && in_utc && step > 0 && DAY % step == 0).then_some(step)
    }

    /// The column that this record field is decoded from, if it is the only origin: a record has the stored value, or null.
    pub fn value_column(&self, field: usize) -> Option<ColumnRef> {
        match self.records.get(field)?.origins.as_slice() {
            [Origin::Value { group, column }] => Some(ColumnRef { group: *group, column: *column }),
            _ => None,
        }
    }

    /// The column whose sums by row ([`crate::GroupBlock::sums`]) are the sums of this record field: each stored value belongs to
    /// exactly one record.
    pub fn summed_column(&self, field: usize) -> Option<ColumnRef> {
        let place = self.value_column(field)?;
        let column = self.stored.groups.get(place.group)?.columns.get(place.column)?;
        let is_same = column.value == ValueType::Field(self.records.get(field)?.kind) && column.merge.is_newest();
        (is_same && self.group_of_records() == Some(place.group)).then_some(place)
    }

    /// The only event group, whose stored records are the records of the table; `None` if there are several.
    pub fn group_of_records(&self) -> Option<usize> {
        let mut events =
            self.groups.iter().zip(&self.stored.groups).enumerate().filter(|(_, (plan, _))| !plan.is_of_row());
        match (events.next(), events.next()) {
            // Records of several groups are joined, and packed groups may be deduplicated.
            (Some((group, (_, stored))), None) if stored.packed.is_none() => Some(group),
            _ => None,
        }
    }

    /// Whether this record field is the timestamp of every record of a group, and no other group stores timestamps.
    pub fn is_timestamp_of(&self, field: usize, group: usize) -> bool {
        let stored =
            self.stored.groups.iter().enumerate().filter(|(_, group)| group.timestamps == TimestampKind::Stored);
        if stored.map(|(at, _)| at).ne([group]) {
            return false;
        }
        let first = self.records.get(field).and_then(|record| record.origins.first());
        first.is_some_and(|origin| matches!(origin, Origin::Cell { group: stored_in } if *stored_in == group))
    }

    /// The record field that is the event time; `None` if it does not read back.
    pub fn event_time_field(&self) -> Option<usize> {
        self.records.iter().position(|record| record.field == self.source.time)
    }

    /// Whether this record field is decoded only from cell timestamps.
    pub fn is_cell_time(&self, field: usize) -> bool {
        let origins = self.records.get(field).map(|record| record.origins.as_slice());
        origins.is_some_and(|origins| {
            !origins.is_empty() && origins.iter().all(|origin| matches!(origin, Origin::Cell { .. }))
        })
    }

    /// Decodes these record fields by row: each is a row field, or the event time at the resolution of the key. The block
    /// must have the [`Layout::projection`] of no fields.
    ///
    /// # Errors
    /// If the block lacks a projected part, this layout cannot have encoded a key, or a field is of another kind.
    pub fn decode_rows(&self, block: &Block, fields: &[usize]) -> Result<RowValues, DecodeError> {
        self.rows(block, fields, false)
    }

    /// As [`Layout::decode_rows`], but neighbouring rows of one record each are one row if they agree in `fields`, where that
    /// makes less of them: of a table with a row an event, the events of an entity.
    ///
    /// # Errors
    /// As [`Layout::decode_rows`].
    pub fn decode_joined_rows(&self, block: &Block, fields: &[usize]) -> Result<RowValues, DecodeError> {
        self.rows(block, fields, true)
    }

    /// See [`Self::decode_rows`] and, with `may_join`, [`Self::decode_joined_rows`].
    fn rows(&self, block: &Block, fields: &[usize], may_join: bool) -> Result<RowValues, DecodeError> {
        let (keys, ends) = (&block.keys, RecordAlignment::build(self, block)?.row_ends);
        let alignment = RecordAlignment::of_rows(keys.len());
        if may_join
            && is_one_each(&ends)
            && let Some(segments) = self.prefix_fields(fields)
        {
            let runs = PrefixRuns::read(self, keys, &segments)?;
            if runs.count() * LEAST_JOINED <= keys.len() {
                return Ok(RowValues { ends: runs.row_ends(keys), columns: runs.columns, joined: true });
            }
            let run_of = runs.of_rows(keys);
            let columns = runs.columns.iter().map(|values| alignment.spread(values, Some(&run_of)));
            return Ok(RowValues { columns: columns.collect::<Result<_, _>>()?, ends, joined: false });
        }

        let reader = ColumnReader { layout: self, block, alignment: &alignment, timestamps: Vec::new() };
        let columns = fields.iter().map(|field| self.row_column(&reader, *field));
        Ok(RowValues { columns: columns.collect::<Result<_, _>>()?, ends, joined: false })
    }

    /// These record fields with the segments of the key prefix that print them; `None` if there are none, or one is elsewhere.
    fn prefix_fields(&self, fields: &[usize]) -> Option<Vec<(&RecordField, usize)>> {
        let mut found = Vec::with_capacity(fields.len());
        for field in fields {
            let record = self.records.get(*field)?;
            match record.origins.as_slice() {
                [Origin::Key { segment }] if *segment < self.key.prefix => found.push((record, *segment)),
                _ => return None,
            }
        }
        Some(found).filter(|found| !found.is_empty())
    }

    /// The value of a row field in one row key: an array of length one.
    ///
    /// # Errors
    /// If this layout cannot have encoded the key, or the field is of another kind.
    pub fn row_field_of_key(&self, key: &[u8], field: usize) -> Result<ArrayRef, DecodeError> {
        let tail = Arc::new(self.stored.tail.clone());
        let unknown = || DecodeError::Key { key: String::from_utf8_lossy(key).into_owned() };
        let (prefix, rest) = key.split_at_checked(key.len().saturating_sub(tail.width())).ok_or_else(unknown)?;
        let number = tail.read(rest).ok_or_else(unknown)?;
        let mut keys = Keys::new(tail);
        keys.push(prefix, number);
        let block = &Block { keys, groups: vec![None; self.stored.groups.len()] };
        let alignment = &RecordAlignment::of_rows(1);
        self.row_column(&ColumnReader { layout: self, block, alignment, timestamps: Vec::new() }, field)
    }

    /// A value per row of a row field, or of the event time at the resolution of the key.
    fn row_column(&self, reader: &ColumnReader<'_>, field: usize) -> Result<ArrayRef, DecodeError> {
        let unknown = || DecodeError::NoField { field, count: self.records.len() };
        let record = self.records.get(field).ok_or_else(unknown)?;
        let is_shared = self.is_row_field(field) || self.row_time_step(field).is_some();
        let origin = record.origins.last().filter(|_| is_shared).ok_or_else(unknown)?.clone();
        let only = RecordField { field: record.field, kind: record.kind, origins: vec![origin], steps: Vec::new() };
        reader.column(&only)
    }
}

/// The number of records of each row, from the row ends.
pub fn record_counts(ends: &[u32]) -> impl Iterator<Item = usize> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    ends.iter().zip(starts).map(|(end, start)| end.saturating_sub(start) as usize)
}

impl Layout {
    /// The start of the window of each row, from its key; `None` if rows span windows, or the table has one window.
    ///
    /// # Errors
    /// If this layout cannot have encoded a key.
    pub fn row_windows(&self, keys: &Keys) -> Result<Option<Vec<i64>>, DecodeError> {
        let Some(origin) = self.window_origin() else { return Ok(None) };
        let Some(kind) = self.fields.get(self.source.time).map(|field| field.kind) else { return Ok(None) };
        let record = RecordField { field: self.source.time, kind, origins: vec![origin], steps: Vec::new() };
        let block = Block { keys: keys.clone(), groups: Vec::new() };
        let alignment = RecordAlignment::of_rows(keys.len());
        let times = ColumnReader { layout: self, block: &block, alignment: &alignment, timestamps: Vec::new() }
            .column(&record)?;

        let view = ColumnView::new(times.as_ref());
        let mut windows = Vec::with_capacity(keys.len());
        for row in 0..keys.len() {
            windows.push(match view.get(row) {
                Some(ScalarRef::Time(time)) => window_of(self.spec.window, time),
                Some(ScalarRef::Date(days)) => window_of(self.spec.window, i64::from(days).saturating_mul(DAY)),
                _ => return Err(DecodeError::Key { key: String::from_utf8_lossy(&keys.get(row)).into_owned() }),
            });
        }
        Ok(Some(windows))
    }
}
