//! What the records of a row share, read from its key alone.
//!
//! A meter's day is one key and 96 records. What is known of the key is known of all of them, so a reader that groups or
//! filters by such fields need not look at each.

use arrow::array::ArrayRef;

use crate::block::Block;
use crate::civil::DAY;
use crate::decode::Reader;
use crate::error::DecodeError;
use crate::frame::Frame;
use crate::layout::Layout;
use crate::records::{Origin, RecordField};
use crate::schema::TimestampKind;
use crate::value::ValueType;

/// The rows of a block, for those who read its records.
#[derive(Debug, Clone)]
pub struct RowValues {
    /// For each field asked for, a value for each row.
    pub columns: Vec<ArrayRef>,
    /// For each row, the end of its records among those that [`Layout::decode`] makes of the block.
    pub ends: Vec<u32>,
}

impl Layout {
    /// Whether every record of a row has one value of this record field (an index into [`Layout::records_schema`]): the
    /// one its key says.
    pub fn is_row_field(&self, field: usize) -> bool {
        self.records.get(field).and_then(|record| record.origins.first()).is_some_and(Origin::is_key)
    }

    /// The step, in microseconds and a whole part of a day, in which keys tell the event time, if `field` is that: cut to
    /// steps, the times of all records of a row are equal, and are what its key says. Sound because key and cell
    /// timestamp are printed from one event time: nothing but loads writes cells, the timestamp is that time cut to a
    /// finer step, and a record without any takes the key's.
    pub fn row_time_step(&self, field: usize) -> Option<i64> {
        let record = self.records.get(field).filter(|record| record.field == self.source.time)?;
        let (last, before) = record.origins.split_last()?;
        let step = *record.steps.last()?;
        let of_cells = before.iter().all(|origin| match origin {
            Origin::Cell { group } => self.groups.get(*group).is_some_and(|plan| plan.time == Some(record.field)),
            _ => false,
        });
        // A key in local time shows some hours twice.
        let in_utc = match last {
            Origin::KeyTime { segments } => self.key_zone(segments).is_none(),
            Origin::Key { .. } => true,
            _ => false,
        };
        (of_cells && in_utc && step > 0 && DAY % step == 0).then_some(step)
    }

    /// The group and the column whose values are those of this record field, where nothing else is: a record has the value
    /// that is stored, or none.
    pub fn value_column(&self, field: usize) -> Option<(usize, usize)> {
        match self.records.get(field)?.origins.as_slice() {
            [Origin::Value { group, column }] => Some((*group, *column)),
            _ => None,
        }
    }

    /// The group and the column whose sums by row ([`crate::GroupBlock::sums`]) are those of this record field: every value
    /// of a row is that of one of its records.
    pub fn summed_column(&self, field: usize) -> Option<(usize, usize)> {
        let (group, at) = self.value_column(field)?;
        let column = self.stored.groups.get(group)?.columns.get(at)?;
        let alike = column.value == ValueType::Field(self.records.get(field)?.kind) && column.merge.is_newest();
        (alike && self.group_of_records() == Some(group)).then_some((group, at))
    }

    /// The group whose stored records are those of the table, where each row has some of it: the only one of events.
    pub fn group_of_records(&self) -> Option<usize> {
        let mut events =
            self.groups.iter().zip(&self.stored.groups).enumerate().filter(|(_, (plan, _))| !plan.is_of_row());
        match (events.next(), events.next()) {
            // Records of several groups are joined, and those of packed groups may be freed of doubles.
            (Some((group, (_, stored))), None) if stored.packed.is_none() => Some(group),
            _ => None,
        }
    }

    /// Whether this record field of every stored record of a group is its timestamp, and no other group stores any.
    pub fn is_timestamp_of(&self, field: usize, group: usize) -> bool {
        let stored =
            self.stored.groups.iter().enumerate().filter(|(_, group)| group.timestamps == TimestampKind::Stored);
        if stored.map(|(at, _)| at).ne([group]) {
            return false;
        }
        let first = self.records.get(field).and_then(|record| record.origins.first());
        first.is_some_and(|origin| matches!(origin, Origin::Cell { group: own } if *own == group))
    }

    /// Whether this record field is a timestamp of cells and nothing else: a record has one that is stored, or none.
    pub fn is_cell_time(&self, field: usize) -> bool {
        let origins = self.records.get(field).map(|record| record.origins.as_slice());
        origins.is_some_and(|origins| {
            !origins.is_empty() && origins.iter().all(|origin| matches!(origin, Origin::Cell { .. }))
        })
    }

    /// The values that rows have of these record fields: each is a row field, or the event time cut to the step that keys
    /// tell. The block must hold what [`Layout::projection`] says of no fields.
    ///
    /// # Errors
    /// If the block lacks something, holds a key that this layout cannot have made, or a field is of another kind.
    pub fn decode_rows(&self, block: &Block, fields: &[usize]) -> Result<RowValues, DecodeError> {
        let ends = Frame::build(self, block)?.row_ends;
        let frame = Frame::of_rows(block.keys.len());
        let reader = Reader { layout: self, block, frame: &frame, timestamps: Vec::new() };
        let column = |field: &usize| -> Result<ArrayRef, DecodeError> {
            let unknown = DecodeError::NoField { field: *field, count: self.records.len() };
            let record = self.records.get(*field).ok_or(unknown)?;
            let told = self.is_row_field(*field) || self.row_time_step(*field).is_some();
            let origin = record.origins.last().filter(|_| told);
            let origin = origin.ok_or(DecodeError::NoField { field: *field, count: self.records.len() })?.clone();
            let own = RecordField { field: record.field, kind: record.kind, origins: vec![origin], steps: Vec::new() };
            reader.column(&own)
        };
        Ok(RowValues { columns: fields.iter().map(column).collect::<Result<_, _>>()?, ends })
    }
}

/// The rows that `ends` speak of, as a number of records each.
pub fn record_counts(ends: &[u32]) -> impl Iterator<Item = usize> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    ends.iter().zip(starts).map(|(end, start)| end.saturating_sub(start) as usize)
}
