//! `tidetable read`: rows of a table, cell by cell, as Bigtable would return them.

use std::io::Write;

use serde_json::{Value, json};
use tidetable_layout::{Block, KeyRange, Projection};
use tidetable_sql::{CellRef, cells_of_block};
use tidetable_store::{Snapshot, slice};

use super::store;
use crate::args::{Global, Output, Read};
use crate::error::CliError;
use crate::output::{Rows, bytes_value, stdout};

/// Reads the rows.
pub fn read(global: &Global, args: &Read) -> Result<(), CliError> {
    let snapshot = store(global)?.snapshot(&args.table)?;
    let snapshot = match args.now {
        Some(now) => snapshot.as_of_now(now)?,
        None if args.include_expired => snapshot.including_expired(),
        None => snapshot,
    };
    let mut out = stdout();
    match (global.output, args.keys_only) {
        (Output::Json, true) => {
            each_block(&snapshot, args, |block| {
                let mut keys = (0..block.keys.len()).map(|row| json!({ "key": bytes_value(&block.keys.get(row)) }));
                Ok(keys.try_for_each(|key| writeln!(out, "{key}"))?)
            })?;
        }
        (Output::Json, false) => {
            each_block(&snapshot, args, |block| write_objects(&snapshot, block, &mut out))?;
        }
        (output, true) => {
            let mut rows = Rows::new(&["key"]);
            each_block(&snapshot, args, |block| {
                (0..block.keys.len()).for_each(|row| rows.push(vec![bytes_value(&block.keys.get(row))]));
                Ok(())
            })?;
            rows.write(output, &mut out)?;
        }
        (output, false) => {
            let mut rows = Rows::new(&["key", "column", "timestamp", "value"]);
            each_block(&snapshot, args, |block| {
                Ok(cells_of_block(snapshot.schema(), block, |cell| {
                    let column = format!("{}:{}", cell.family, String::from_utf8_lossy(cell.qualifier));
                    let (key, value) = (bytes_value(cell.row_key), bytes_value(cell.value));
                    rows.push(vec![key, json!(column), json!(cell.timestamp), value]);
                    Ok(())
                })?)
            })?;
            rows.write(output, &mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}

/// Calls `show` with the blocks of the asked rows.
fn each_block(
    snapshot: &Snapshot,
    args: &Read,
    mut show: impl FnMut(&Block) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut projection = Projection::all(snapshot.schema());
    if args.keys_only && !snapshot.collects() {
        projection.groups.iter_mut().for_each(|group| *group = None);
    }
    if let Some(key) = &args.row {
        return snapshot.row(key.as_bytes(), &projection)?.iter().try_for_each(show);
    }
    let Some(whole) = snapshot.whole(&range(args)) else { return Ok(()) };
    let mut left = args.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    for block in snapshot.scan(&whole, &projection)? {
        if left == 0 {
            break;
        }
        let block = block?;
        let rows = block.keys.len().min(left);
        left -= rows;
        if rows == block.keys.len() { show(&block)? } else { show(&slice(&block, 0..rows))? }
    }
    Ok(())
}

fn range(args: &Read) -> KeyRange {
    match &args.prefix {
        Some(prefix) => KeyRange::prefix(prefix.as_bytes()),
        None => KeyRange {
            start: args.start.clone().unwrap_or_default().into_bytes(),
            end: args.end.clone().map(String::into_bytes),
        },
    }
}

/// One object a row.
fn write_objects(snapshot: &Snapshot, block: &Block, out: &mut impl Write) -> Result<(), CliError> {
    let mut rows: Vec<Vec<Value>> = vec![Vec::new(); block.keys.len()];
    cells_of_block(snapshot.schema(), block, |cell| {
        rows[cell.row].push(object(&cell));
        Ok(())
    })?;
    let mut keyed = rows.into_iter().enumerate().map(|(row, cells)| (bytes_value(&block.keys.get(row)), cells));
    keyed
        .try_for_each(|(key, cells)| writeln!(out, "{{\"key\":{key},\"cells\":{}}}", Value::Array(cells)))
        .map_err(Into::into)
}

fn object(cell: &CellRef<'_>) -> Value {
    json!({
        "family": cell.family,
        "qualifier": bytes_value(cell.qualifier),
        "timestamp": cell.timestamp,
        "value": bytes_value(cell.value),
    })
}
