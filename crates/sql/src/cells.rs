//! The cells of a block, in the order Bigtable returns them.

use std::cmp::Reverse;

use arrow::array::Array;
use tidetable_layout::{Block, CellWriter, Column, Group, GroupBlock, QualifierKind, StoredSchema, TimestampKind};

use crate::error::{Result, SqlError};

/// One cell, as Bigtable holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellRef<'a> {
    /// Row of the block.
    pub row: usize,
    /// Its key.
    pub row_key: &'a [u8],
    /// Family id.
    pub family: &'a str,
    /// Qualifier.
    pub qualifier: &'a [u8],
    /// Microseconds since the epoch.
    pub timestamp: i64,
    /// Its bytes.
    pub value: &'a [u8],
}

/// A cell of the row at hand, before its value is written.
struct Found<'a> {
    family: &'a str,
    qualifier: &'a [u8],
    timestamp: i64,
    /// Which of the columns it is of.
    column: usize,
    record: usize,
}

/// One column of the block.
struct ColumnCells<'a> {
    group: &'a Group,
    column: &'a Column,
    stored: &'a GroupBlock,
    values: &'a dyn Array,
}

/// Calls `visit` with every cell of `block`, which holds all of its groups: rows by key; in a row
/// families by name, qualifiers by bytes, and of each the newest cell first.
///
/// # Errors
/// [`SqlError::Shape`] if the block is not of `schema` or lacks a part of it; those of `visit`.
pub fn cells_of_block(
    schema: &StoredSchema,
    block: &Block,
    mut visit: impl FnMut(CellRef<'_>) -> Result<()>,
) -> Result<()> {
    let columns = columns(schema, block)?;
    let mut writers: Vec<CellWriter<'_>> =
        columns.iter().map(|cells| CellWriter::new(cells.column, cells.values)).collect();
    let mut key = Vec::new();
    let mut value = Vec::new();
    let mut found: Vec<Found<'_>> = Vec::new();
    for row in 0..block.keys.len() {
        key.clear();
        block.keys.write(row, &mut key);
        found.clear();
        for (at, cells) in columns.iter().enumerate() {
            cells.find(at, row, &mut found)?;
        }
        found.sort_by(|a, b| {
            (a.family, a.qualifier, Reverse(a.timestamp)).cmp(&(b.family, b.qualifier, Reverse(b.timestamp)))
        });
        for &Found { family, qualifier, timestamp, column, record } in &found {
            value.clear();
            if let Some(writer) = writers.get_mut(column) {
                writer.write(record, &mut value);
            }
            visit(CellRef { row, row_key: &key, family, qualifier, timestamp, value: &value })?;
        }
    }
    Ok(())
}

fn lacks(what: &'static str) -> SqlError {
    SqlError::Shape { what }
}

fn columns<'a>(schema: &'a StoredSchema, block: &'a Block) -> Result<Vec<ColumnCells<'a>>> {
    let mut out = Vec::new();
    for (at, group) in schema.groups.iter().enumerate() {
        let stored = block.groups.get(at).and_then(Option::as_ref).ok_or(lacks("a group"))?;
        for (at, column) in group.columns.iter().enumerate() {
            let values = stored.columns.get(at).and_then(Option::as_ref).ok_or(lacks("a column"))?;
            out.push(ColumnCells { group, column, stored, values: values.as_ref() });
        }
    }
    Ok(out)
}

impl<'a> ColumnCells<'a> {
    /// Puts its cells of `row` into `found`, in the order they are stored.
    fn find(&self, at: usize, row: usize, found: &mut Vec<Found<'a>>) -> Result<()> {
        if row >= self.stored.row_ends.len() {
            return Err(lacks("rows"));
        }
        let records = self.stored.records(row);
        if records.end > self.values.len() {
            return Err(lacks("values"));
        }
        for record in records {
            if self.values.is_valid(record) {
                let (qualifier, timestamp) = (self.qualifier(record)?, self.timestamp(record)?);
                found.push(Found { family: &self.column.family, qualifier, timestamp, column: at, record });
            }
        }
        Ok(())
    }

    fn qualifier(&self, record: usize) -> Result<&'a [u8]> {
        if self.group.qualifier == QualifierKind::Constant {
            return Ok(&self.column.qualifier);
        }
        let names = self.stored.qualifiers.as_ref().ok_or(lacks("qualifiers"))?;
        let name = names.codes.get(record).and_then(|code| names.dictionary.get(*code as usize));
        name.map(AsRef::as_ref).ok_or(lacks("a qualifier"))
    }

    fn timestamp(&self, record: usize) -> Result<i64> {
        if self.group.timestamps == TimestampKind::Zero {
            return Ok(0);
        }
        let time = self.stored.timestamps.as_ref().and_then(|times| times.get(record));
        time.copied().ok_or(lacks("a timestamp"))
    }
}
