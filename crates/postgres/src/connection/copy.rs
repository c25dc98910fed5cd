//! Rows as a file: `COPY (query) TO STDOUT`.

use bytes::{BufMut, BytesMut};
use pgwire::messages::copy::{CopyDone, CopyOutResponse};

use crate::connection::rows::{Cursor, gone};
use crate::encode::{Format, Rows, Values};
use crate::error::Refusal;
use crate::statement::{CopyFormat, CopyOptions};
use crate::types::Column;
use crate::wire::Outgoing;

/// How a binary file begins, with flags and the length of an extension, which are zero.
const BINARY_HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// The number of columns that ends a binary file.
const BINARY_END: i16 = -1;

/// Sends the rows of a query as a file. Returns how many.
pub(super) async fn send(
    cursor: &mut Cursor,
    options: &CopyOptions,
    outgoing: &mut Outgoing,
) -> Result<usize, Refusal> {
    let columns = std::sync::Arc::clone(&cursor.columns);
    let count = i16::try_from(columns.len()).unwrap_or(i16::MAX);
    let form = i8::from(options.format == CopyFormat::Binary);
    outgoing.put(&CopyOutResponse::new(form, count, vec![form.into(); columns.len()]))?;

    let mut writer = Writer::new(options, columns.len());
    if options.format != CopyFormat::Binary && options.has_header {
        outgoing.put_copied(|out| writer.header(&columns, out));
    }

    // Drivers take each message for a row: what a file begins with stands before the first.
    let mut head = if options.format == CopyFormat::Binary { BINARY_HEAD } else { b"" };
    let mut sent = 0;
    while let Some((rows, next)) = cursor.rows().await? {
        while *next < rows.count() {
            outgoing.put_copied(|out| {
                out.put_slice(std::mem::take(&mut head));
                writer.row(rows, *next, out);
            });
            *next += 1;
            sent += 1;
            outgoing.flush_full().await.map_err(gone)?;
        }
    }

    if options.format == CopyFormat::Binary {
        outgoing.put_copied(|out| {
            out.put_slice(head);
            out.put_i16(BINARY_END);
        });
    }
    outgoing.put(&CopyDone::new())?;
    Ok(sent)
}

/// Writes rows in the form of a file.
struct Writer {
    format: CopyFormat,
    delimiter: u8,
    null: String,
    /// The format of each column of a binary file.
    formats: Vec<Format>,
    /// A value as text, before it is escaped.
    value: BytesMut,
}

impl Writer {
    fn new(options: &CopyOptions, columns: usize) -> Self {
        let (delimiter, null) = match options.format {
            CopyFormat::Csv => (b',', ""),
            _ => (b'\t', "\\N"),
        };
        let null = options.null.clone().unwrap_or_else(|| null.to_owned());
        let delimiter = options.delimiter.unwrap_or(delimiter);
        let formats = vec![Format::Binary; columns];
        Self { format: options.format, delimiter, null, formats, value: BytesMut::new() }
    }

    fn header(&self, columns: &[Column], out: &mut BytesMut) {
        for (place, column) in columns.iter().enumerate() {
            if place > 0 {
                out.put_u8(self.delimiter);
            }
            self.text(column.name.as_bytes(), out);
        }
        out.put_u8(b'\n');
    }

    fn row(&mut self, rows: &Rows, row: usize, out: &mut BytesMut) {
        if self.format == CopyFormat::Binary {
            out.put_i16(i16::try_from(rows.columns().len()).unwrap_or(i16::MAX));
            rows.write(row, &self.formats, out);
            return;
        }

        for (place, values) in rows.columns().iter().enumerate() {
            if place > 0 {
                out.put_u8(self.delimiter);
            }
            self.value(values, row, out);
        }
        out.put_u8(b'\n');
    }

    fn value(&mut self, values: &Values, row: usize, out: &mut BytesMut) {
        if values.is_null(row) {
            out.put_slice(self.null.as_bytes());
            return;
        }
        self.value.clear();
        values.write_text(row, &mut self.value);
        self.text(&self.value, out);
    }

    fn text(&self, text: &[u8], out: &mut BytesMut) {
        match self.format {
            CopyFormat::Csv => self.quoted(text, out),
            _ => self.escaped(text, out),
        }
    }

    /// A value of CSV: in quotes where it would be read otherwise.
    fn quoted(&self, text: &[u8], out: &mut BytesMut) {
        let is_special = |byte: &u8| *byte == self.delimiter || matches!(byte, b'"' | b'\n' | b'\r');
        if !text.iter().any(is_special) && text != self.null.as_bytes() {
            out.put_slice(text);
            return;
        }
        out.put_u8(b'"');
        for byte in text {
            if *byte == b'"' {
                out.put_u8(b'"');
            }
            out.put_u8(*byte);
        }
        out.put_u8(b'"');
    }

    /// A value of text: with escapes.
    fn escaped(&self, text: &[u8], out: &mut BytesMut) {
        for byte in text {
            match byte {
                b'\\' => out.put_slice(b"\\\\"),
                b'\n' => out.put_slice(b"\\n"),
                b'\r' => out.put_slice(b"\\r"),
                b'\t' => out.put_slice(b"\\t"),
                byte if *byte == self.delimiter => out.put_slice(&[b'\\', *byte]),
                byte => out.put_u8(*byte),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_would_be_read_otherwise_are_marked() {
        let written = |format: CopyFormat, text: &str| {
            let mut out = BytesMut::new();
            Writer::new(&CopyOptions { format, ..CopyOptions::default() }, 1).text(text.as_bytes(), &mut out);
            String::from_utf8(out.to_vec()).unwrap()
        };
        assert_eq!(written(CopyFormat::Text, "a\tb\\\n"), "a\\tb\\\\\\n");
        assert_eq!(written(CopyFormat::Csv, "plain"), "plain");
        assert_eq!(written(CopyFormat::Csv, "a,\"b\""), "\"a,\"\"b\"\"\"");
        // Nothing stands for null, so empty text is in quotes.
        assert_eq!(written(CopyFormat::Csv, ""), "\"\"");
    }
}
