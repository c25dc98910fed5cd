//! Rows in text formats, except JSON.

use std::borrow::Cow;
use std::io::Write;

use super::{FILES_OF_SQL, SARIF_OF_LINT};
use crate::args::Output;
use crate::error::CliError;
use crate::output::columns::Heading;
use crate::output::csv::write_csv_line;
use crate::output::screen::{HintStyle, Screen};
use crate::output::table::TableWriter;
use crate::output::text::{lines, markdown_header, markdown_row};
use crate::output::values::count;
use crate::terminal::printable::printable;

/// Writes rows one after the other.
#[derive(Debug)]
pub struct RowWriter {
    form: Form,
    headings: Vec<Heading>,
    /// Most rows to show.
    most: Option<u64>,
    rows: u64,
    more: bool,
    words: HintStyle,
}

#[derive(Debug)]
enum Form {
    Table(TableWriter),
    Markdown,
    Line,
    Csv,
}

impl RowWriter {
    /// Writes what precedes the first row.
    ///
    /// # Errors
    /// If `output` is not a text format, or `out` cannot be written.
    pub fn start(
        out: &mut impl Write,
        output: Output,
        headings: Vec<Heading>,
        screen: Screen,
    ) -> Result<Self, CliError> {
        let mut headings = headings;
        if output != Output::Csv {
            headings.iter_mut().for_each(|heading| make_printable(&mut heading.name));
        }

        let form = match output {
            Output::Table => Form::Table(TableWriter::new(headings.clone(), screen)),
            Output::Markdown => {
                markdown_header(out, &headings)?;
                Form::Markdown
            }
            Output::Line => Form::Line,
            Output::Csv => {
                write_csv_line(out, headings.iter().map(|heading| heading.name.as_str()))?;
                Form::Csv
            }
            Output::Sarif => return Err(CliError::Usage(SARIF_OF_LINT)),
            Output::Json | Output::Parquet | Output::Arrow | Output::Arrows => {
                return Err(CliError::Usage(FILES_OF_SQL));
            }
        };
        // CSV is for programs, and has no limit.
        let most = screen.rows.filter(|_| output != Output::Csv);
        Ok(Self { form, headings, most, rows: 0, more: false, words: screen.words })
    }

    /// Writes a row. Returns `false` if the limit is reached and the row was left out.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn push(&mut self, out: &mut impl Write, mut cells: Vec<String>) -> Result<bool, CliError> {
        if self.most.is_some_and(|most| self.rows >= most) {
            self.more = true;
            if let Form::Table(table) = &mut self.form {
                table.push(out, cells)?;
            }
            return Ok(false);
        }
        self.rows += 1;
        if !matches!(self.form, Form::Csv) {
            cells.iter_mut().for_each(make_printable);
        }
        match &mut self.form {
            Form::Table(table) => return table.push(out, cells),
            Form::Markdown => markdown_row(out, cells.iter().map(String::as_str))?,
            Form::Line => lines(out, self.rows, &self.headings, &cells)?,
            Form::Csv => write_csv_line(out, cells.iter().map(String::as_str))?,
        }
        Ok(true)
    }

    /// Counts rows written past this writer.
    pub fn wrote(&mut self, rows: u64) {
        self.rows += rows;
    }

    /// Writes what follows the last row.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn finish(self, out: &mut impl Write) -> Result<u64, CliError> {
        match self.form {
            Form::Table(table) => table.finish(out)?,
            _ if self.more => {
                let all = self.words.all_rows();
                writeln!(out, "the first {}, and there are more: {all} shows all", count(self.rows, "row"))?;
            }
            _ => {}
        }
        Ok(self.rows)
    }
}

fn make_printable(text: &mut String) {
    if let Cow::Owned(shown) = printable(text) {
        *text = shown;
    }
}
