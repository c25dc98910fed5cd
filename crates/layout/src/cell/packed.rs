//! The cell bytes of packed groups: JSON objects and protobuf messages.

use std::ops::Range;

use arrow::array::Array;

use crate::cell::json::{write_string, write_value};
use crate::protobuf::coding::{LENGTH, write_delimited, write_field, write_key};
use crate::scalar::ColumnView;
use crate::schema::{Group, MessageField, PackedForm};
use crate::time::calendar::Calendar;

/// Writes the cells of a packed group of a block; downcasts its columns once.
pub struct PackedWriter<'a> {
    group: &'a Group,
    views: Vec<ColumnView<'a>>,
    /// The timestamp of each record, to recognise records with equal timestamps.
    timestamps: Option<&'a [i64]>,
    calendar: Calendar,
    scratch: Vec<u8>,
    message: Vec<u8>,
}

impl<'a> PackedWriter<'a> {
    /// A writer of the cells of `columns`, those of `group` in its order; `None` if the group is not packed.
    pub fn new(group: &'a Group, columns: impl IntoIterator<Item = &'a dyn Array>) -> Option<Self> {
        group.packed.as_ref()?;
        Some(Self {
            group,
            views: columns.into_iter().map(ColumnView::new).collect(),
            timestamps: None,
            calendar: Calendar::default(),
            scratch: Vec::new(),
            message: Vec::new(),
        })
    }

    /// Sets the timestamps of the group's records: records with equal timestamps keep their order.
    #[must_use]
    pub fn with_timestamps(self, timestamps: Option<&'a [i64]>) -> Self {
        Self { timestamps, ..self }
    }

    /// Appends the bytes of the cell of `records` of one row: one record, or all records for a repeated message. Records
    /// are stored newest first and written oldest first; those with equal timestamps keep their order.
    pub fn write(&mut self, records: Range<usize>, out: &mut Vec<u8>) {
        let group = self.group;
        match group.packed.as_ref().map(|packed| &packed.form) {
            Some(PackedForm::Json) => records.for_each(|record| self.object(record, out)),
            Some(PackedForm::Message { fields }) => records.for_each(|record| self.fields(fields, record, out)),
            Some(PackedForm::Repeated { fields, number }) => {
                // From the last run of equal timestamps to the first.
                let mut end = records.end;
                while end > records.start {
                    let start = self.run_start(records.start, end);
                    (start..end).for_each(|record| self.repeated(fields, *number, record, out));
                    end = start;
                }
            }
            None => {}
        }
    }

    /// Appends a record as an element of the repeated field `number`.
    fn repeated(&mut self, fields: &[MessageField], number: u32, record: usize, out: &mut Vec<u8>) {
        let mut message = std::mem::take(&mut self.message);
        message.clear();
        self.fields(fields, record, &mut message);

        write_key(number, LENGTH, out);
        write_delimited(&message, out);
        self.message = message;
    }

    /// The start of the run of equal timestamps that ends at `end`, at least `first`.
    fn run_start(&self, first: usize, end: usize) -> usize {
        let Some(times) = self.timestamps else { return end - 1 };
        let run = (first..end).rev().take_while(|record| times.get(*record) == times.get(end - 1)).count();
        end - run.max(1)
    }

    /// Appends a record as a JSON object of its non-null fields.
    fn object(&mut self, record: usize, out: &mut Vec<u8>) {
        let mut before = b'{';
        for (view, column) in self.views.iter().zip(&self.group.columns) {
            let Some(scalar) = view.get(record) else { continue };
            out.push(before);
            before = b',';
            write_string(&String::from_utf8_lossy(&column.qualifier), out);
            out.push(b':');
            write_value(scalar, &mut self.calendar, out);
        }
        if before == b'{' {
            out.push(before);
        }
        out.push(b'}');
    }

    /// Appends the non-null fields of a record as a protobuf message.
    fn fields(&mut self, fields: &[MessageField], record: usize, out: &mut Vec<u8>) {
        // Compilation sorted them by number.
        for (view, field) in self.views.iter().zip(fields) {
            if let Some(scalar) = view.get(record) {
                write_field(field.number, field.kind, scalar, &mut self.calendar, &mut self.scratch, out);
            }
        }
    }
}
