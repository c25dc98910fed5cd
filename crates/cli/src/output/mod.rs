//! Output of results: tables, JSON lines, CSV and others, on standard output or in a file.

pub(crate) mod cell_text;
pub(crate) mod columns;
pub(crate) mod csv;
mod cut;
pub(crate) mod destination;
pub(crate) mod format;
pub(crate) mod intervals;
pub(crate) mod json;
pub(crate) mod key;
pub(crate) mod rows;
pub(crate) mod screen;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod values;

use std::borrow::Cow;
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use arrow::array::{Array, RecordBatch};
use arrow::error::ArrowError;
use serde_json::Value;

use crate::args::Output;
use crate::error::CliError;
use crate::output::key::Key;
use crate::terminal::hints;
use crate::terminal::printable::Printed;
use crate::terminal::sentences::Sentences;
use cell_text::{CellText, is_null};
pub use cell_text::{Length, write_bytes};
pub use columns::{Give, Heading};
use csv::write_csv;
pub use destination::{Destination, until_reader_is_gone};
pub use format::{EXPORT_FILE_EXTENSIONS, OutputFormat, ROW_FILE_EXTENSIONS, format_from_extension};
pub use json::bytes_value;
use json::write_json;
pub use rows::RowWriter;
pub use screen::{HintStyle, Screen};

/// Standard output for a document or rows: buffered, and printable on a terminal. Lines have the width that they have.
pub fn stdout() -> Printed<BufWriter<StdoutLock<'static>>> {
    let out = io::stdout().lock();
    let is_terminal = out.is_terminal();
    Printed::new(BufWriter::new(out), is_terminal)
}

/// Standard output of a command that reports in sentences, if `output` is the form for people: they fit the terminal, and the
/// commands in them can be pasted. Other forms are written as by [`stdout`].
pub fn sentences(output: Output) -> Sentences<BufWriter<StdoutLock<'static>>> {
    match output {
        Output::Table => Sentences::new(stdout(), Screen::of_stdout(None).width),
        _ => Sentences::verbatim(stdout()),
    }
}

/// Columns of text that may name commands.
const SENTENCES: [&str; 7] = ["costs", "damage", "error", "finding", "remedy", "value", "why"];

/// Longest word that a narrow table does not break.
const UNBROKEN: usize = 30;

/// A small result: named columns and rows of JSON values.
#[derive(Debug)]
pub struct ResultRows {
    columns: Vec<&'static str>,
    rows: Vec<Vec<Value>>,
    /// Columns that a narrow table leaves out, the first first.
    minor: &'static [&'static str],
    /// Columns that a narrow table shows below their rows.
    below: &'static [&'static str],
    /// Columns of ids, of which a narrow table shows the first characters.
    ids: &'static [&'static str],
}

impl ResultRows {
    /// A result with these columns and no row.
    pub fn new(columns: &[&'static str]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new(), minor: &[], below: &[], ids: &[] }
    }

    /// An empty result with the names of these keys as columns.
    pub fn of(keys: &[Key]) -> Self {
        Self::new(&keys.iter().map(|key| key.name).collect::<Vec<_>>())
    }

    /// Names the columns that a table leaves out where the terminal is too narrow, the least important first.
    pub fn minor(self, columns: &'static [&'static str]) -> Self {
        Self { minor: columns, ..self }
    }

    /// Names the columns of long text, which a table shows below each row where the terminal is too narrow.
    pub fn below(self, columns: &'static [&'static str]) -> Self {
        Self { below: columns, ..self }
    }

    /// Names the columns of ids, of which a table shows as much as a command needs to find them.
    pub fn ids(self, columns: &'static [&'static str]) -> Self {
        Self { ids: columns, ..self }
    }

    /// Adds a row with a value for each column. Commands that its sentences name get the place of this one.
    pub fn push(&mut self, mut row: Vec<Value>) {
        for (column, value) in self.columns.iter().zip(&mut row) {
            if let (true, Value::String(text)) = (SENTENCES.contains(column), value)
                && let Cow::Owned(completed) = hints::completed(text)
            {
                *text = completed;
            }
        }
        self.rows.push(row);
    }

    /// Adds a row of two columns: what is said, and its value.
    pub fn fact(&mut self, what: &str, value: Value) {
        self.push(row![what, value]);
    }

    /// The number of rows.
    pub fn len(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Writes all rows to standard output.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn print(&self, output: Output) -> Result<(), CliError> {
        let mut out = stdout();
        self.write(output, &mut out)?;
        Ok(out.flush()?)
    }

    /// Writes all rows in the format `output`.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn write(&self, output: Output, out: &mut impl Write) -> Result<(), CliError> {
        if output == Output::Json {
            for row in &self.rows {
                let keys = self.columns.iter().map(|name| key_of(name));
                let object: serde_json::Map<_, _> = keys.zip(row.iter().cloned()).collect();
                writeln!(out, "{}", Value::Object(object))?;
            }
            return Ok(());
        }

        let headings = (0..self.columns.len()).map(|index| self.heading(index, output)).collect();
        let screen = Screen { rows: None, ..Screen::of_stdout(None) };
        let mut writer = RowWriter::start(out, output, headings, screen)?;
        for row in &self.rows {
            writer.push(out, row.iter().map(text_of).collect())?;
        }
        writer.finish(out).map(drop)
    }

    fn heading(&self, index: usize, output: Output) -> Heading {
        let column = self.columns[index];
        let name = if output == Output::Csv { key_of(column) } else { column.replace('_', " ") };
        let values: Vec<&Value> = self.rows.iter().filter_map(|row| row.get(index)).collect();

        let give = if self.below.contains(&column) {
            Give::Below
        } else if self.ids.contains(&column) {
            Give::Prefix
        } else if values.iter().all(|value| is_word(value)) {
            Give::Nothing
        } else {
            Give::Wrap
        };
        let rank = self.minor.iter().position(|minor| *minor == column).map_or(0, |place| self.minor.len() - place);
        let are_numbers = values.iter().all(|value| value.is_number() || value.is_null());
        let right = are_numbers && values.iter().any(|value| value.is_number());
        Heading { name, right, give, rank }
    }
}

/// A row of a small result, from values that convert to JSON.
macro_rules! row {
    ($($value:expr),* $(,)?) => { vec![$(serde_json::json!($value)),*] };
}
pub(crate) use row;

/// The JSON key of a column.
pub fn key_of(column: &str) -> String {
    column.replace(' ', "_").to_lowercase()
}

/// The error for a binary format without a file.
pub const FILES_OF_SQL: &str =
    "parquet, arrow and arrows are for the rows of `tidetable sql`: write --output table, json, csv, markdown or line";

/// The error for SARIF without findings.
pub const SARIF_OF_LINT: &str = "sarif is for the findings of `tidetable lint JOB`: write another --output";

/// Whether a value is a word that a narrow table does not break.
fn is_word(value: &Value) -> bool {
    let text = text_of(value);
    text.len() <= UNBROKEN && !text.contains(' ')
}

fn text_of(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_u64() || number.is_i64() => number.to_string(),
        other => other.to_string(),
    }
}

/// A value as text; `None` for null.
pub fn value_text(column: &dyn Array, row: usize) -> Result<Option<String>, CliError> {
    if is_null(column, row) {
        return Ok(None);
    }
    Ok(Some(CellText::new(column, Length::Short)?.value(row)))
}

/// Writes the batches of a query, one after the other.
pub struct BatchWriter<W: Write> {
    out: W,
    output: Output,
    screen: Screen,
    writer: Option<RowWriter>,
    rows: u64,
}

impl<W: Write> BatchWriter<W> {
    /// Writes to `out` in the format `output`.
    pub fn new(out: W, output: Output, screen: Screen) -> Self {
        Self { out, output, screen, writer: None, rows: 0 }
    }

    /// Writes a batch. Returns `false` if the limit of rows is reached and more follow.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<bool, CliError> {
        if self.output == Output::Json {
            write_json(&mut self.out, batch)?;
            self.rows += batch.num_rows() as u64;
            return Ok(true);
        }

        self.start(batch.schema_ref())?;
        let Some(writer) = &mut self.writer else { return Ok(true) };
        let texts = batch.columns().iter().map(|column| CellText::new(column.as_ref(), self.screen.length));
        let mut texts: Vec<CellText<'_>> = texts.collect::<Result<_, ArrowError>>()?;
        if self.output == Output::Csv {
            write_csv(&mut self.out, &mut texts, batch.num_rows())?;
            writer.wrote(batch.num_rows() as u64);
            return Ok(true);
        }

        for row in 0..batch.num_rows() {
            if !writer.push(&mut self.out, texts.iter_mut().map(|text| text.value(row)).collect())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes the header once, also for a result without rows.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn start(&mut self, schema: &arrow::datatypes::Schema) -> Result<(), CliError> {
        if self.output == Output::Json || self.writer.is_some() {
            return Ok(());
        }
        let headings = query_headings(schema);
        self.writer = Some(RowWriter::start(&mut self.out, self.output, headings, self.screen)?);
        Ok(())
    }

    /// Writes what is buffered. Returns the writer and the number of rows.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(mut self) -> Result<(W, u64), CliError> {
        let rows = match self.writer.take() {
            Some(writer) => writer.finish(&mut self.out)?,
            None => self.rows,
        };
        self.out.flush()?;
        Ok((self.out, rows))
    }
}

/// The columns of a query's result. In a narrow table those in the middle are left out first, row keys last.
pub fn query_headings(schema: &arrow::datatypes::Schema) -> Vec<Heading> {
    let last = schema.fields().len().saturating_sub(1);
    let headings = schema.fields().iter().enumerate().map(|(index, field)| {
        let is_key = matches!(field.name().as_str(), "_key" | "row_key");
        let kind = field.data_type();
        let is_text = kind.is_string() || kind.is_binary() || kind.is_nested();
        let give = if is_key || !is_text { Give::Nothing } else { Give::Cut };
        let from_end = last - index;
        let rank = if is_key { 1 } else { 2 + 2 * index.min(from_end) + usize::from(index > from_end) };
        Heading { name: field.name().clone(), right: kind.is_numeric(), give, rank }
    });
    headings.collect()
}
