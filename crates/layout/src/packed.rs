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
            calendar: Calendar::default(),
            scratch: Vec::new(),
            message: Vec::new(),
        })
    }

    /// Appends the bytes of the cell that `records` of one row make: one record, or for a repeated message all of
    /// them, which are stored newest first and written oldest first.
    pub fn write(&mut self, records: Range<usize>, out: &mut Vec<u8>) {
        let group = self.group;
        match group.packed.as_ref().map(|packed| &packed.form) {
            Some(PackedForm::Json) => records.for_each(|record| self.object(record, out)),
            Some(PackedForm::Message { fields }) => records.for_each(|record| self.fields(fields, record, out)),
            Some(PackedForm::Repeated { fields, number }) => {
                for record in records.rev() {
                    let mut message = std::mem::take(&mut self.message);
                    message.clear();
                    self.fields(fields, record, &mut message);
                    write_key(*number, LENGTH, out);
                    write_delimited(&message, out);
                    self.message = message;
                }
            }
            None => {}
        }
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
