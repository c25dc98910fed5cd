//! The bytes of cells that are made of several columns.

use std::ops::Range;

use arrow::array::Array;

use crate::civil::Calendar;
use crate::datum::View;
use crate::json::{write_string, write_value};
use crate::protobuf::{LENGTH, write_delimited, write_field, write_key};
use crate::schema::{Group, MessageField, PackedForm};

/// Writes the cells of a packed group of a block: the types of its columns are found out once.
pub struct PackedWriter<'a> {
    group: &'a Group,
    views: Vec<View<'a>>,
    /// Of each record, where they tell which are of one moment.
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
            views: columns.into_iter().map(View::new).collect(),
            timestamps: None,
            calendar: Calendar::default(),
            scratch: Vec::new(),
            message: Vec::new(),
        })
    }

    /// The writer, with the timestamps of the group's records: those of one moment stay in the order they came.
    #[must_use]
    pub fn with_timestamps(self, timestamps: Option<&'a [i64]>) -> Self {
        Self { timestamps, ..self }
    }

    /// Appends the bytes of the cell that `records` of one row make: one record, or for a repeated message all of
    /// them, which are stored newest first and written oldest first; those of one moment in the order they came.
    pub fn write(&mut self, records: Range<usize>, out: &mut Vec<u8>) {
        let group = self.group;
        match group.packed.as_ref().map(|packed| &packed.form) {
            Some(PackedForm::Json) => records.for_each(|record| self.object(record, out)),
            Some(PackedForm::Message { fields }) => records.for_each(|record| self.fields(fields, record, out)),
            Some(PackedForm::Repeated { fields, number }) => {
                let mut end = records.end;
                while end > records.start {
                    let start = self.moment(records.start, end);
                    for record in start..end {
                        let mut message = std::mem::take(&mut self.message);
                        message.clear();
                        self.fields(fields, record, &mut message);
                        write_key(*number, LENGTH, out);
                        write_delimited(&message, out);
                        self.message = message;
                    }
                    end = start;
                }
            }
            None => {}
        }
    }

    /// Where the records of one moment begin that end before `end`, not before `first`.
    fn moment(&self, first: usize, end: usize) -> usize {
        let time = |record: usize| self.timestamps.and_then(|times| times.get(record));
        let alike = (first..end).rev().take_while(|record| time(*record) == time(end - 1)).count();
        end - if self.timestamps.is_some() { alike.max(1) } else { 1 }
    }

    fn object(&mut self, record: usize, out: &mut Vec<u8>) {
        let mut before = b'{';
        for (view, column) in self.views.iter().zip(&self.group.columns) {
            let Some(datum) = view.get(record) else { continue };
            out.push(before);
            before = b',';
            write_string(&String::from_utf8_lossy(&column.qualifier), out);
            out.push(b':');
            write_value(datum, &mut self.calendar, out);
        }
        if before == b'{' {
            out.push(before);
        }
        out.push(b'}');
    }

    fn fields(&mut self, fields: &[MessageField], record: usize, out: &mut Vec<u8>) {
        // Compilation has put them in the order of their numbers.
        for (view, field) in self.views.iter().zip(fields) {
            if let Some(datum) = view.get(record) {
                write_field(field.number, field.kind, datum, &mut self.calendar, &mut self.scratch, out);
            }
        }
    }
}
