//! `tidetable read`: rows of a table, cell by cell, as Bigtable returns them.

use std::io::Write;

use regex::bytes::Regex;
use serde_json::{Value, json};
use tidetable_layout::{KeyRange, Projection};
use tidetable_sql::{CellRef, cells_of_block};
use tidetable_store::Snapshot;

use super::ranges::{check_times, key_range};
use super::{open_newest, store};
use crate::args::{Column, Global, Output, Read};
use crate::error::CliError;
use crate::output::values::time;
use crate::output::{Give, Heading, RowWriter, Screen, bytes_value, stdout, write_bytes};

/// Rows held in memory at a time for `--reverse`.
const HELD: usize = 256;

/// Reads the rows.
pub fn read(global: &Global, args: &Read) -> Result<(), CliError> {
    let range = match &args.row {
        Some(key) => KeyRange::of_key(key.as_bytes()),
        None => key_range(args.prefix.as_deref(), args.start.as_deref(), args.end.as_deref())?,
    };
    check_times(args.from, args.to)?;
    let snapshot = open_newest(&store(global)?, &args.table)?;
    let snapshot = match args.now {
        Some(now) => snapshot.as_of_now(now)?,
        None if args.include_expired => snapshot.including_expired(),
        None => snapshot,
    };
    let (pattern, wants_cells) = (args.regex.as_ref(), wants_cells(args));
    let rows = SelectedRows { snapshot: &snapshot, args, range, pattern, wants_cells };
    let mut out = stdout();
    if global.output == Output::Json {
        rows.each(|key, cells| {
            let key = bytes_value(key);
            match args.keys_only {
                true => writeln!(out, "{}", json!({ "key": key }))?,
                false => {
                    let cells = cells.iter().map(Cell::object).collect();
                    writeln!(out, "{{\"key\":{key},\"cells\":{}}}", Value::Array(cells))?;
                }
            }
            Ok(true)
        })?;
        out.flush()?;
        return Ok(());
    }
    let names: &[&str] = if args.keys_only { &["key"] } else { &["key", "column", "timestamp", "value"] };
    let headings = names.iter().map(|name| read_heading(name)).collect();
    let screen = Screen::of_stdout(args.max_rows);
    let mut writer = RowWriter::start(&mut out, global.output, headings, screen)?;
    let text = |bytes: &[u8]| {
        let mut text = Vec::new();
        write_bytes(bytes, screen.length, &mut text);
        String::from_utf8_lossy(&text).into_owned()
    };
    rows.each(|key, cells| {
        if args.keys_only {
            return writer.push(&mut out, vec![text(key)]);
        }
        for cell in cells {
            let column = format!("{}:{}", cell.family, text(&cell.qualifier));
            let at = time(cell.timestamp).unwrap_or_else(|| cell.timestamp.to_string());
            if !writer.push(&mut out, vec![text(key), column, at, text(&cell.value)])? {
                return Ok(false);
            }
        }
        Ok(true)
    })?;
    writer.finish(&mut out)?;
    out.flush()?;
    Ok(())
}

/// A column of cells: keys and timestamps are never cut.
fn read_heading(name: &str) -> Heading {
    let give = if matches!(name, "key" | "timestamp") { Give::Nothing } else { Give::Cut };
    Heading { name: name.to_owned(), right: false, give, rank: usize::from(name != "key") }
}

/// Whether a row is shown only if it has matching cells.
fn wants_cells(args: &Read) -> bool {
    !args.columns.is_empty() || args.from.is_some() || args.to.is_some()
}

/// A cell to show.
#[derive(Debug, Clone)]
struct Cell {
    family: String,
    qualifier: Vec<u8>,
    timestamp: i64,
    value: Vec<u8>,
}

impl Cell {
    fn of(cell: &CellRef<'_>) -> Self {
        Self {
            family: cell.family.to_owned(),
            qualifier: cell.qualifier.to_vec(),
            timestamp: cell.timestamp,
            value: cell.value.to_vec(),
        }
    }

    fn object(&self) -> Value {
        json!({
            "family": self.family,
            "qualifier": bytes_value(&self.qualifier),
            "timestamp": time(self.timestamp).unwrap_or_else(|| self.timestamp.to_string()),
            "value": bytes_value(&self.value),
        })
    }
}

/// The selected rows.
struct SelectedRows<'a> {
    snapshot: &'a Snapshot,
    args: &'a Read,
    /// The keys of the rows.
    range: KeyRange,
    pattern: Option<&'a Regex>,
    /// Whether rows without a matching cell are left out.
    wants_cells: bool,
}

/// Receives a row with its cells; returns `false` to stop.
type Show<'a> = dyn FnMut(&[u8], &[Cell]) -> Result<bool, CliError> + 'a;

/// A row with its cells.
type Row = (Vec<u8>, Vec<Cell>);

impl SelectedRows<'_> {
    /// Calls `show` with each row in order, until it returns `false` or the limit is reached.
    fn each(&self, mut show: impl FnMut(&[u8], &[Cell]) -> Result<bool, CliError>) -> Result<(), CliError> {
        let mut left = self.args.limit.unwrap_or(u64::MAX);
        let mut counted = |key: &[u8], cells: &[Cell]| {
            if left == 0 {
                return Ok(false);
            }
            left -= 1;
            Ok(show(key, cells)? && left > 0)
        };
        if self.args.limit == Some(0) {
            return Ok(());
        }
        if self.args.reverse {
            return self.backward(&self.range, &mut counted);
        }
        self.forward(&self.range, &mut counted).map(drop)
    }

    /// The rows of `range` by key. Returns `false` if `show` stopped.
    fn forward(&self, range: &KeyRange, show: &mut Show<'_>) -> Result<bool, CliError> {
        let needs_values = !self.args.keys_only || self.wants_cells;
        let Some(slice) = self.snapshot.whole(range) else { return Ok(true) };
        for block in self.snapshot.scan(&slice, &self.projection(needs_values))? {
            let block = block?;
            let keys = (0..block.keys.len()).map(|row| block.keys.get(row).to_vec());
            let mut rows: Vec<Row> = keys.map(|key| (key, Vec::new())).collect();
            if needs_values {
                cells_of_block(self.snapshot.schema(), &block, |cell| {
                    if let Some((_, cells)) = rows.get_mut(cell.row).filter(|_| self.is_shown(&cell)) {
                        self.add(cells, &cell);
                    }
                    Ok(())
                })?;
            }
            for (key, cells) in &rows {
                let is_shown = self.pattern.is_none_or(|pattern| pattern.is_match(key));
                if is_shown && !(self.wants_cells && cells.is_empty()) && !show(key, cells)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The rows of `range` in descending order: files are read forward, so rows are read in chunks, whose keys are
    /// found first.
    fn backward(&self, range: &KeyRange, show: &mut Show<'_>) -> Result<(), CliError> {
        let Some(slice) = self.snapshot.whole(range) else { return Ok(()) };
        let mut starts = Vec::new();
        let mut rows = 0_usize;
        for block in self.snapshot.scan(&slice, &self.projection(false))? {
            let block = block?;
            for row in 0..block.keys.len() {
                if rows.is_multiple_of(HELD) {
                    starts.push(block.keys.get(row).to_vec());
                }
                rows += 1;
            }
        }
        let mut end = range.end.clone();
        for start in starts.into_iter().rev() {
            let piece = KeyRange { start: start.clone(), end };
            let mut held: Vec<Row> = Vec::new();
            self.forward(&piece, &mut |key, cells| {
                held.push((key.to_vec(), cells.to_vec()));
                Ok(true)
            })?;
            for (key, cells) in held.into_iter().rev() {
                if !show(&key, &cells)? {
                    return Ok(());
                }
            }
            end = Some(start);
        }
        Ok(())
    }

    fn projection(&self, values: bool) -> Projection {
        let mut projection = Projection::all(self.snapshot.schema());
        if !values && !self.snapshot.may_empty_rows() {
            projection.groups.iter_mut().for_each(|group| *group = None);
        }
        projection
    }

    fn is_shown(&self, cell: &CellRef<'_>) -> bool {
        let args = self.args;
        let in_time =
            args.from.is_none_or(|from| cell.timestamp >= from) && args.to.is_none_or(|to| cell.timestamp < to);
        let wanted = |column: &Column| {
            column.family.as_ref().is_none_or(|family| family == cell.family)
                && column.qualifier.as_ref().is_none_or(|qualifier| qualifier.as_bytes() == cell.qualifier)
        };
        in_time && (args.columns.is_empty() || args.columns.iter().flat_map(|list| &list.0).any(wanted))
    }

    /// Adds a cell to its row, up to the limit per column; the newest comes first.
    fn add(&self, cells: &mut Vec<Cell>, cell: &CellRef<'_>) {
        let of_column = |seen: &&Cell| seen.family == cell.family && seen.qualifier == cell.qualifier;
        let seen = || cells.iter().rev().take_while(of_column).count() as u64;
        if self.args.cells_per_column.is_none_or(|most| seen() < most) {
            cells.push(Cell::of(cell));
        }
    }
}
