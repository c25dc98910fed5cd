//! Rows as a file: `COPY (query) TO STDOUT`.

use bytes::{BufMut, BytesMut};
use pgwire::messages::copy::{CopyDone, CopyOutResponse};

use crate::connection::rows::{Cursor, gone};
use crate::encode::{Format, Rows, Values};
use crate::error::{Refusal, code};
use crate::statement::{CopyFormat, CopyOptions, ForcedQuotes};
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
    let mut writer = Writer::new(options, &columns)?;
    outgoing.put(&CopyOutResponse::new(form, count, vec![form.into(); columns.len()]))?;

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
    quote: u8,
    escape: u8,
    /// Whether the values of each column are in quotes, whatever they are.
    are_quoted: Vec<bool>,
    /// The format of each column of a binary file.
    formats: Vec<Format>,
    /// A value as text, before it is escaped.
    value: BytesMut,
}

impl Writer {
    /// A writer of these columns.
    ///
    /// # Errors
    /// If quotes are asked for around the values of a column that is none of them.
    fn new(options: &CopyOptions, columns: &[Column]) -> Result<Self, Refusal> {
        let (delimiter, null) = match options.format {
            CopyFormat::Csv => (b',', ""),
            _ => (b'\t', "\\N"),
        };
        let null = options.null.clone().unwrap_or_else(|| null.to_owned());
        let delimiter = options.delimiter.unwrap_or(delimiter);
        let quote = options.quote.unwrap_or(b'"');
        Ok(Self {
            format: options.format,
            delimiter,
            null,
            quote,
            escape: options.escape.unwrap_or(quote),
            are_quoted: quoted_columns(&options.forced_quotes, columns)?,
            formats: vec![Format::Binary; columns.len()],
            value: BytesMut::new(),
        })
    }

    fn header(&self, columns: &[Column], out: &mut BytesMut) {
        for (place, column) in columns.iter().enumerate() {
            if place > 0 {
                out.put_u8(self.delimiter);
            }
            self.text(column.name.as_bytes(), false, out);
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
            self.value(values, row, place, out);
        }
        out.put_u8(b'\n');
    }

    fn value(&mut self, values: &Values, row: usize, place: usize, out: &mut BytesMut) {
        if values.is_null(row) {
            out.put_slice(self.null.as_bytes());
            return;
        }
        self.value.clear();
        values.write_text(row, &mut self.value);
        self.text(&self.value, self.are_quoted.get(place).copied().unwrap_or_default(), out);
    }

    fn text(&self, text: &[u8], is_quoted: bool, out: &mut BytesMut) {
        match self.format {
            CopyFormat::Csv => self.quoted(text, is_quoted, out),
            _ => self.escaped(text, out),
        }
    }

    /// A value of CSV: in quotes where it would be read otherwise.
    fn quoted(&self, text: &[u8], is_quoted: bool, out: &mut BytesMut) {
        let is_special = |byte: &u8| *byte == self.delimiter || *byte == self.quote || matches!(byte, b'\n' | b'\r');
        // The only value of a line must not be the end of data.
        let is_end = text == b"\\." && self.are_quoted.len() == 1;
        if !is_quoted && !is_end && !text.iter().any(is_special) && text != self.null.as_bytes() {
            out.put_slice(text);
            return;
        }
        out.put_u8(self.quote);
        for byte in text {
            if *byte == self.quote || *byte == self.escape {
                out.put_u8(self.escape);
            }
            out.put_u8(*byte);
        }
        out.put_u8(self.quote);
    }

    /// A value of text: with escapes.
    fn escaped(&self, text: &[u8], out: &mut BytesMut) {
        for byte in text {
            match byte {
                b'\\' => out.put_slice(b"\\\\"),
                b'\n' => out.put_slice(b"\\n"),
                b'\r' => out.put_slice(b"\\r"),
                b'\t' => out.put_slice(b"\\t"),
                b'\x08' => out.put_slice(b"\\b"),
                b'\x0b' => out.put_slice(b"\\v"),
                b'\x0c' => out.put_slice(b"\\f"),
                byte if *byte == self.delimiter => out.put_slice(&[b'\\', *byte]),
                byte => out.put_u8(*byte),
            }
        }
    }
}

/// Whether the values of each column are in quotes, whatever they are.
fn quoted_columns(forced: &ForcedQuotes, columns: &[Column]) -> Result<Vec<bool>, Refusal> {
    let names = match forced {
        ForcedQuotes::None => return Ok(vec![false; columns.len()]),
        ForcedQuotes::All => return Ok(vec![true; columns.len()]),
        ForcedQuotes::Columns(names) => names,
    };
    if let Some(unknown) = names.iter().find(|name| !columns.iter().any(|column| column.name == **name)) {
        let text = format!("FORCE_QUOTE names the column {unknown:?}, which the query does not have");
        return Err(Refusal::new(code::COLUMN, text));
    }
    Ok(columns.iter().map(|column| names.contains(&column.name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Base;

    fn column(name: &str) -> Column {
        Column { name: name.to_owned(), kind: Base::Text.one(), modifier: -1 }
    }

    fn written(options: &CopyOptions, text: &str) -> String {
        let mut out = BytesMut::new();
        let writer = Writer::new(options, &[column("a")]).unwrap();
        writer.text(text.as_bytes(), writer.are_quoted[0], &mut out);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn values_that_would_be_read_otherwise_are_marked() {
        let text = CopyOptions::default();
        assert_eq!(written(&text, "a\tb\\\n"), "a\\tb\\\\\\n");
        let csv = CopyOptions { format: CopyFormat::Csv, ..CopyOptions::default() };
        assert_eq!(written(&csv, "plain"), "plain");
        assert_eq!(written(&csv, "a,\"b\""), "\"a,\"\"b\"\"\"");
        // Nothing stands for null, so empty text is in quotes.
        assert_eq!(written(&csv, ""), "\"\"");
        assert_eq!(written(&csv, "\\."), "\"\\.\"");
    }

    #[test]
    fn options_of_csv_are_followed() {
        let csv = CopyOptions { format: CopyFormat::Csv, ..CopyOptions::default() };
        let odd = CopyOptions { quote: Some(b'\''), escape: Some(b'\\'), ..csv.clone() };
        assert_eq!(written(&odd, "a,'b\\"), "'a,\\'b\\\\'");
        assert_eq!(written(&odd, "\"a\""), "\"a\"");
        for forced_quotes in [ForcedQuotes::All, ForcedQuotes::Columns(vec!["a".to_owned()])] {
            assert_eq!(written(&CopyOptions { forced_quotes, ..csv.clone() }, "plain"), "\"plain\"");
        }
        let unknown = CopyOptions { forced_quotes: ForcedQuotes::Columns(vec!["b".to_owned()]), ..csv };
        assert_eq!(Writer::new(&unknown, &[column("a")]).err().map(|refusal| refusal.code), Some("42703"));
    }
}
