//! Rows as CSV.

use std::io::{self, Write};

use tidetable_export::write_csv_field;

use crate::output::cell_text::CellText;

/// Bytes that are written at once.
const CHUNK: usize = 64 << 10;

/// Writes the rows of a batch, of which `texts` are the columns.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_csv(out: &mut impl Write, texts: &mut [CellText<'_>], rows: usize) -> io::Result<()> {
    let is_alone = texts.len() == 1;
    let (mut lines, mut field) = (Vec::with_capacity(CHUNK + (4 << 10)), Vec::new());

    for row in 0..rows {
        for (at, text) in texts.iter_mut().enumerate() {
            if at > 0 {
                lines.push(b',');
            }
            if is_alone || text.may_need_quotes() {
                field.clear();
                text.append(row, &mut field);
                write_csv_field(&field, is_alone, &mut lines);
            } else {
                text.append(row, &mut lines);
            }
        }

        lines.push(b'\n');
        if lines.len() >= CHUNK {
            out.write_all(&lines)?;
            lines.clear();
        }
    }
    out.write_all(&lines)
}

/// One line of CSV, quoted where needed.
pub fn write_csv_line<'a>(out: &mut impl Write, cells: impl ExactSizeIterator<Item = &'a str>) -> io::Result<()> {
    let is_alone = cells.len() == 1;
    let mut line = Vec::new();
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            line.push(b',');
        }
        write_csv_field(cell.as_bytes(), is_alone, &mut line);
    }
    line.push(b'\n');
    out.write_all(&line)
}
