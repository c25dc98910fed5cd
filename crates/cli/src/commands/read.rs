//! `tidetable read`: rows of a table, cell by cell, as Bigtable returns them.

use std::io::Write;
use std::sync::Arc;

use serde_json::{Value, json};
use tidetable_cells::{BlockCell, CellRow, CellScan, Columns, RowSink, Rows};
use tidetable_layout::KeyRange;
use tidetable_store::Snapshot;

use super::ranges::{check_times, key_range};
use super::{open_newest, store, warn_of_lost_windows};
use crate::args::{Column, Global, Output, Read};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::output::values::time;
use crate::output::{Give, Heading, Length, RowWriter, Screen, bytes_value, stdout, write_bytes};

/// Reads rows of a table, cell by cell, in the order of their keys or in reverse.
pub fn read(global: &Global, args: &Read) -> Result<(), CliError> {
    let range = match &args.row {
        Some(key) => KeyRange::of_key(key.as_bytes()),
        None => key_range(args.prefix.as_deref(), args.start.as_deref(), args.end.as_deref())?,
    };
    check_times(args.from, args.to)?;
    let snapshot = open_newest(&store(global)?, &args.table)?;
    warn_of_lost_windows(global, [&snapshot]);
    let snapshot = match args.now {
        Some(now) => snapshot.as_of_now(now)?,
        None if args.include_expired => snapshot.including_expired(),
        None => snapshot,
    };
    let scan = scan(snapshot, range, args);
    let mut out = stdout();

    let is_found;
    if global.output == Output::Json {
        let mut rows = Found { rows: JsonRows { out: &mut out, keys_only: args.keys_only }, any: false };
        scan.run(&mut rows)?;
        is_found = rows.any;
    } else {
        let names: &[&str] = if args.keys_only { &["key"] } else { &["key", "column", "timestamp", "value"] };
        let headings = names.iter().map(|name| read_heading(name)).collect();
        let screen = Screen::of_stdout(args.max_rows);
        let writer = RowWriter::start(&mut out, global.output, headings, screen)?;
        let rows = TextRows { out: &mut out, writer, keys_only: args.keys_only, length: screen.length };
        let mut rows = Found { rows, any: false };
        scan.run(&mut rows)?;
        is_found = rows.any;
        rows.rows.writer.finish(&mut out)?;
    }

    out.flush()?;
    if !is_found && args.limit != Some(0) {
        print_message(global, &nothing(args));
    }
    Ok(())
}

/// The message that no row was found.
fn nothing(args: &Read) -> String {
    let table = &args.table;
    let is_narrowed = !args.columns.is_empty() || args.from.is_some() || args.to.is_some() || args.regex.is_some();
    match (&args.row, is_narrowed) {
        (Some(row), false) => format!("no row {row} in {table}"),
        (Some(row), true) => format!("no row {row} with such cells in {table}"),
        (None, _) => format!("no such rows in {table}"),
    }
}

/// A column of cells: keys and timestamps are never cut.
fn read_heading(name: &str) -> Heading {
    let give = if matches!(name, "key" | "timestamp") { Give::Nothing } else { Give::Cut };
    Heading { name: name.to_owned(), right: false, give, rank: usize::from(name != "key") }
}

/// The scan of the selected rows and cells.
fn scan(snapshot: Snapshot, range: KeyRange, args: &Read) -> CellScan {
    let selects_cells = !args.columns.is_empty() || args.from.is_some() || args.to.is_some();
    CellScan {
        keys: vec![range],
        pattern: args.regex.clone(),
        reversed: args.reverse,
        limit: args.limit.unwrap_or(u64::MAX),
        rows: if selects_cells { Rows::WithSelected } else { Rows::All },
        columns: columns(args, selects_cells),
        times: args.from.unwrap_or(i64::MIN)..args.to.unwrap_or(i64::MAX),
        newest: args.cells_per_column.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX)),
        ..CellScan::new(snapshot)
    }
}

/// The columns to read; all if `None`.
fn columns(args: &Read, selects_cells: bool) -> Option<Columns> {
    if args.keys_only && !selects_cells {
        return Some(Arc::new(|_: &str, _: Option<&[u8]>| false));
    }

    let selected: Vec<Column> = args.columns.iter().flat_map(|list| list.0.clone()).collect();
    if selected.is_empty() {
        return None;
    }
    Some(Arc::new(move |family: &str, qualifier: Option<&[u8]>| {
        selected.iter().any(|column| is_selected(column, family, qualifier))
    }))
}

/// Whether an argument selects a column; without a qualifier, whether it may select one of the family.
fn is_selected(column: &Column, family: &str, qualifier: Option<&[u8]>) -> bool {
    let is_family = column.family.as_ref().is_none_or(|wanted| wanted == family);
    let is_qualifier = match (&column.qualifier, qualifier) {
        (Some(wanted), Some(qualifier)) => wanted.as_bytes() == qualifier,
        _ => true,
    };
    is_family && is_qualifier
}

fn time_text(micros: i64) -> String {
    time(micros).unwrap_or_else(|| micros.to_string())
}

/// Passes rows on, and notes whether there were any.
struct Found<S> {
    rows: S,
    any: bool,
}

impl<S: RowSink> RowSink for Found<S> {
    type Error = S::Error;

    fn row(&mut self, row: &mut CellRow<'_, '_>) -> Result<bool, Self::Error> {
        self.any = true;
        self.rows.row(row)
    }
}

/// Writes rows as JSON, one a line.
struct JsonRows<'a, W> {
    out: &'a mut W,
    keys_only: bool,
}

impl<W: Write> RowSink for JsonRows<'_, W> {
    type Error = CliError;

    fn row(&mut self, row: &mut CellRow<'_, '_>) -> Result<bool, CliError> {
        let mut key = Vec::new();
        row.write_key(&mut key);
        let key = bytes_value(&key);
        if self.keys_only {
            writeln!(self.out, "{}", json!({ "key": key }))?;
            return Ok(true);
        }

        let cells = row.cells().iter().map(|cell| cell_object(row, cell)).collect();
        writeln!(self.out, "{{\"key\":{key},\"cells\":{}}}", Value::Array(cells))?;
        Ok(true)
    }
}

fn cell_object(row: &mut CellRow<'_, '_>, cell: &BlockCell) -> Value {
    let column = row.column(cell);
    let mut value = Vec::new();
    row.write_value(cell, &mut value);
    json!({
        "family": column.family,
        "qualifier": bytes_value(column.qualifier),
        "timestamp": time_text(cell.timestamp),
        "value": bytes_value(&value),
    })
}

/// Writes cells as a table or CSV, one a line.
struct TextRows<'a, W> {
    out: &'a mut W,
    writer: RowWriter,
    keys_only: bool,
    length: Length,
}

impl<W: Write> TextRows<'_, W> {
    fn text(&self, bytes: &[u8]) -> String {
        let mut text = Vec::new();
        write_bytes(bytes, self.length, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    }
}

impl<W: Write> RowSink for TextRows<'_, W> {
    type Error = CliError;

    fn row(&mut self, row: &mut CellRow<'_, '_>) -> Result<bool, CliError> {
        let mut key = Vec::new();
        row.write_key(&mut key);
        let key = self.text(&key);
        if self.keys_only {
            return self.writer.push(self.out, vec![key]);
        }

        for cell in row.cells() {
            let column = row.column(cell);
            let name = format!("{}:{}", column.family, self.text(column.qualifier));
            let mut value = Vec::new();
            row.write_value(cell, &mut value);
            let line = vec![key.clone(), name, time_text(cell.timestamp), self.text(&value)];
            if !self.writer.push(self.out, line)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
