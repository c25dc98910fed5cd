//! CSV for `cbt import`.
//!
//! ```text
//! ,METER,,                      family of each column; an empty one repeats the one before
//! ,0000,0100,0200               qualifier of each column
//! 0000987654#20170726,28.90@1501027200000000,..
//! ```
//! With `timestamp=value-encoded` a value carries its timestamp. Older cells of a column go to further lines.

use std::collections::HashMap;
use std::io::Write;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;

use crate::file::cells::Cells;

/// Family and qualifier of a column.
pub(crate) type CellColumn = (String, Vec<u8>);

/// Writes cells sorted by row key.
pub(crate) struct CbtCsv<W: Write> {
    out: W,
    columns: HashMap<CellColumn, usize>,
    key: Option<String>,
    /// Lines of the current row: for each, a value per column.
    lines: Vec<Vec<Option<String>>>,
}

impl<W: Write> CbtCsv<W> {
    /// Starts a file with these columns, in ascending order.
    pub(crate) fn new(mut out: W, columns: Vec<CellColumn>) -> Result<Self, ArrowError> {
        let mut families = Vec::with_capacity(columns.len());
        let mut before = None;
        for (family, _) in &columns {
            families.push(if before == Some(family) { String::new() } else { quoted(family) });
            before = Some(family);
        }
        let qualifiers: Vec<String> = columns
            .iter()
            .map(|(_, name)| text(name, "qualifier").map(|name| quoted(&name)))
            .collect::<Result<_, _>>()?;
        writeln!(out, ",{}\n,{}", families.join(","), qualifiers.join(","))?;
        let columns = columns.into_iter().enumerate().map(|(at, column)| (column, at)).collect();
        Ok(Self { out, columns, key: None, lines: Vec::new() })
    }

    /// Adds a batch of cells; writes the rows that are complete.
    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let cells = Cells::of(batch)?;
        for at in 0..cells.len() {
            let key = text(cells.keys.value(at), "row key")?;
            if self.key.as_deref() != Some(&key) {
                self.write_row()?;
                self.key = Some(key);
            }

            let value = text(cells.values.value(at), "value")?;
            if value.is_empty() {
                return Err(wrong("an empty value", "makes no cell in a file for `cbt import`: use bigtable-parquet"));
            }
            let column = (cells.families.value(at).to_owned(), cells.qualifiers.value(at).to_vec());
            let Some(place) = self.columns.get(&column).copied() else {
                return Err(wrong("a column", "came while the file was written: run again"));
            };

            let value = format!("{value}@{}", cells.timestamps.value(at));
            match self.lines.iter_mut().find(|line| line.get(place) == Some(&None)) {
                Some(line) => line[place] = Some(value),
                None => {
                    let mut line = vec![None; self.columns.len()];
                    line[place] = Some(value);
                    self.lines.push(line);
                }
            }
        }

        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<W, ArrowError> {
        self.write_row()?;
        Ok(self.out)
    }

    fn write_row(&mut self) -> Result<(), ArrowError> {
        let Some(key) = self.key.take() else { return Ok(()) };
        for line in self.lines.drain(..) {
            let values: Vec<String> =
                line.iter().map(|value| value.as_deref().map(quoted).unwrap_or_default()).collect();
            writeln!(self.out, "{},{}", quoted(&key), values.join(","))?;
        }
        Ok(())
    }
}

/// Converts bytes to text, the only thing that the format can hold.
fn text(bytes: &[u8], what: &str) -> Result<String, ArrowError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(wrong(
            &format!("a {what} that is not text"),
            "cannot be in a file for `cbt import`: use bigtable-parquet",
        )),
    }
}

fn wrong(what: &str, why: &str) -> ArrowError {
    ArrowError::InvalidArgumentError(format!("{what} {why}"))
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}
