//! Results on standard output: a table for people, JSON a line, or CSV.

mod cell_text;
mod json;

use std::io::{self, BufWriter, StdoutLock, Write};

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use arrow::util::display::FormatOptions;
use comfy_table::{CellAlignment, Table, presets};
use serde_json::Value;

use crate::args::Output;
use crate::error::CliError;
use cell_text::CellText;
pub use json::{bytes_value, write_row};

/// Standard output, buffered.
pub fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

/// A small result: named columns and rows of JSON values.
#[derive(Debug)]
pub struct Rows {
    columns: Vec<&'static str>,
    rows: Vec<Vec<Value>>,
}

impl Rows {
    /// No rows yet.
    pub fn new(columns: &[&'static str]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row, a value for each column.
    pub fn push(&mut self, row: Vec<Value>) {
        self.rows.push(row);
    }

    /// Writes all rows as `output` asks.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn write(&self, output: Output, out: &mut impl Write) -> Result<(), CliError> {
        match output {
            Output::Json => {
                for row in &self.rows {
                    let object: serde_json::Map<_, _> =
                        self.columns.iter().map(|name| (*name).to_owned()).zip(row.iter().cloned()).collect();
                    writeln!(out, "{}", Value::Object(object))?;
                }
            }
            Output::Csv => {
                write_csv_line(out, self.columns.iter().map(|name| (*name).to_owned()))?;
                for row in &self.rows {
                    write_csv_line(out, row.iter().map(text))?;
                }
            }
            Output::Table => {
                let mut table = table(self.columns.iter().map(|name| (*name).to_owned()));
                for row in &self.rows {
                    table.add_row(row.iter().map(|value| {
                        let cell = comfy_table::Cell::new(printable(text(value)));
                        if value.is_number() { cell.set_alignment(CellAlignment::Right) } else { cell }
                    }));
                }
                writeln!(out, "{table}")?;
            }
            Output::Parquet | Output::Arrow => return Err(CliError::Usage(FILES_OF_SQL)),
        }
        Ok(())
    }
}

/// Said to whoever asks for a file where there is none to write.
pub const FILES_OF_SQL: &str =
    "parquet and arrow are for the rows of `tidetable sql`: write --output table, json or csv";

/// An empty table in the house's style.
fn table(header: impl IntoIterator<Item = String>) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_FULL_CONDENSED).set_header(header);
    table
}

/// Control characters of data must not steer the terminal. Line breaks stay: plans have them.
fn printable(text: String) -> String {
    let steers = |c: char| c.is_control() && c != '\n';
    if !text.contains(steers) {
        return text;
    }
    let escape = |c: char| if steers(c) { c.escape_default().to_string() } else { c.to_string() };
    text.chars().map(escape).collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_u64() || number.is_i64() => number.to_string(),
        other => other.to_string(),
    }
}

/// Writes the batches of a query, one after the other.
pub struct BatchWriter<W: Write> {
    out: W,
    output: Output,
    header: bool,
    table: Option<Table>,
}

impl<W: Write> BatchWriter<W> {
    /// Writes to `out` as `output` asks.
    pub fn new(out: W, output: Output) -> Self {
        Self { out, output, header: false, table: None }
    }

    /// Writes a batch. Tables are held back until all their rows are known.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), CliError> {
        if self.output == Output::Json {
            for row in 0..batch.num_rows() {
                write_row(&mut self.out, batch, row)?;
            }
            return Ok(());
        }
        self.start(batch.schema_ref())?;
        let options = FormatOptions::new().with_timestamp_tz_format(Some("%Y-%m-%dT%H:%M:%S%.fZ"));
        let texts = batch.columns().iter().map(|column| CellText::new(column.as_ref(), &options));
        let texts: Vec<CellText<'_>> = texts.collect::<Result<_, ArrowError>>()?;
        for row in 0..batch.num_rows() {
            let cells = texts.iter().map(|text| text.value(row));
            match &mut self.table {
                Some(table) => {
                    let cells = cells.zip(batch.columns()).map(|(text, column)| {
                        let cell = comfy_table::Cell::new(printable(text));
                        let number = column.data_type().is_numeric();
                        if number { cell.set_alignment(CellAlignment::Right) } else { cell }
                    });
                    table.add_row(cells);
                }
                None => write_csv_line(&mut self.out, cells)?,
            }
        }
        Ok(())
    }

    /// Writes the header, once: also for a result without rows.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn start(&mut self, schema: &arrow::datatypes::Schema) -> Result<(), CliError> {
        if std::mem::replace(&mut self.header, true) {
            return Ok(());
        }
        let names = schema.fields().iter().map(|field| field.name().clone());
        match self.output {
            Output::Table => self.table = Some(table(names)),
            Output::Csv => write_csv_line(&mut self.out, names)?,
            Output::Json => {}
            Output::Parquet | Output::Arrow => return Err(CliError::Usage(FILES_OF_SQL)),
        }
        Ok(())
    }

    /// Writes what was held back.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn finish(self) -> Result<(), CliError> {
        self.into_inner().map(drop)
    }

    /// The same; where it was written to.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn into_inner(mut self) -> Result<W, CliError> {
        if let Some(table) = &self.table {
            writeln!(self.out, "{table}")?;
        }
        self.out.flush()?;
        Ok(self.out)
    }
}

/// One line of CSV, quoted where it must be.
fn write_csv_line(out: &mut impl Write, cells: impl Iterator<Item = String>) -> io::Result<()> {
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            out.write_all(b",")?;
        }
        if cell.contains(['"', ',', '\n', '\r']) {
            write!(out, "\"{}\"", cell.replace('"', "\"\""))?;
        } else {
            out.write_all(cell.as_bytes())?;
        }
    }
    out.write_all(b"\n")
}
