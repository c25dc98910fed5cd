//! Iterates the cells of a block in Bigtable's order.

use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BinaryBuilder, RecordBatch, RecordBatchOptions, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow::datatypes::SchemaRef;
use tidetable_layout::cell::{CellWriter, PackedWriter};
use tidetable_layout::schema::{Packed, QualifierKind, TimestampKind};
use tidetable_layout::{Block, Column, Group, GroupBlock, StoredSchema};

use crate::error::{Result, SqlError};

/// A cell, as in Bigtable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellRef<'a> {
    /// Index of the row in the block.
    pub row: usize,
    /// Row key.
    pub row_key: &'a [u8],
    /// Family id.
    pub family: &'a str,
    /// Qualifier.
    pub qualifier: &'a [u8],
    /// Microseconds since the epoch.
    pub timestamp: i64,
    /// Value bytes.
    pub value: &'a [u8],
}

/// A cell of the current row, before its value is encoded.
struct RowCell<'a> {
    family: &'a str,
    qualifier: &'a [u8],
    timestamp: i64,
    /// Index of the writer that encodes it.
    maker: usize,
    /// The records it is encoded from: one, or all of a row for a joined cell.
    records: Range<usize>,
}

/// Encodes cells from the records of a group: from one column, or from all of a packed group.
struct CellMaker<'a> {
    group: &'a Group,
    stored: &'a GroupBlock,
    source: CellSource<'a>,
}

enum CellSource<'a> {
    Column(&'a Column, &'a dyn Array),
    Packed(&'a Packed, Vec<&'a dyn Array>),
}

enum CellBytesWriter<'a> {
    Column(CellWriter<'a>),
    Packed(PackedWriter<'a>),
}

impl CellBytesWriter<'_> {
    fn write(&mut self, records: Range<usize>, out: &mut Vec<u8>) {
        match self {
            Self::Column(writer) => writer.write(records.start, out),
            Self::Packed(writer) => writer.write(records, out),
        }
    }
}

/// Calls `visit` with every cell of `block`, which holds all groups of `schema`: rows by key, then families by name,
/// qualifiers by bytes, newest cell first.
///
/// # Errors
/// [`SqlError::Shape`] if the block does not match `schema`; errors of `visit`.
pub fn cells_of_block(
    schema: &StoredSchema,
    block: &Block,
    mut visit: impl FnMut(CellRef<'_>) -> Result<()>,
) -> Result<()> {
    let makers = cell_makers(schema, block)?;
    let mut writers: Vec<CellBytesWriter<'_>> = makers.iter().map(CellMaker::writer).collect::<Result<_>>()?;
    let mut key = Vec::new();
    let mut value = Vec::new();
    let mut found: Vec<RowCell<'_>> = Vec::new();
    for row in 0..block.keys.len() {
        key.clear();
        block.keys.write(row, &mut key);
        found.clear();
        for (at, maker) in makers.iter().enumerate() {
            maker.find(at, row, &mut found)?;
        }
        found.sort_by(|a, b| {
            (a.family, a.qualifier, Reverse(a.timestamp)).cmp(&(b.family, b.qualifier, Reverse(b.timestamp)))
        });
        for RowCell { family, qualifier, timestamp, maker, records } in &found {
            value.clear();
            if let Some(writer) = writers.get_mut(*maker) {
                writer.write(records.clone(), &mut value);
            }
            visit(CellRef { row, row_key: &key, family, qualifier, timestamp: *timestamp, value: &value })?;
        }
    }
    Ok(())
}

fn missing(what: &'static str) -> SqlError {
    SqlError::Shape { what }
}

fn cell_makers<'a>(schema: &'a StoredSchema, block: &'a Block) -> Result<Vec<CellMaker<'a>>> {
    let mut out = Vec::new();
    for (at, group) in schema.groups.iter().enumerate() {
        let stored = block.groups.get(at).and_then(Option::as_ref).ok_or(missing("a group"))?;
        let values = |at: usize| -> Result<&'a dyn Array> {
            let values = stored.columns.get(at).and_then(Option::as_ref).ok_or(missing("a column"))?;
            if values.len() < stored.len() { Err(missing("values")) } else { Ok(values.as_ref()) }
        };
        if let Some(packed) = &group.packed {
            let columns = (0..group.columns.len()).map(values).collect::<Result<_>>()?;
            out.push(CellMaker { group, stored, source: CellSource::Packed(packed, columns) });
            continue;
        }
        for (at, column) in group.columns.iter().enumerate() {
            out.push(CellMaker { group, stored, source: CellSource::Column(column, values(at)?) });
        }
    }
    Ok(out)
}

impl<'a> CellMaker<'a> {
    fn writer(&self) -> Result<CellBytesWriter<'a>> {
        match &self.source {
            CellSource::Column(column, values) => Ok(CellBytesWriter::Column(CellWriter::new(column, *values))),
            CellSource::Packed(_, columns) => {
                let writer = PackedWriter::new(self.group, columns.iter().copied());
                let timestamps = self.stored.timestamps.as_deref();
                writer
                    .map(|writer| CellBytesWriter::Packed(writer.with_timestamps(timestamps)))
                    .ok_or(missing("a packed cell"))
            }
        }
    }

    /// Appends its cells of `row` to `found` in stored order.
    fn find(&self, at: usize, row: usize, found: &mut Vec<RowCell<'a>>) -> Result<()> {
        if row >= self.stored.row_ends.len() {
            return Err(missing("rows"));
        }
        let records = self.stored.records(row);
        if self.group.keeps_alike() {
            if let (CellSource::Packed(packed, _), false) = (&self.source, records.is_empty()) {
                let (family, qualifier) = (packed.family.as_str(), packed.qualifier.as_slice());
                found.push(RowCell { family, qualifier, timestamp: 0, maker: at, records });
            }
            return Ok(());
        }
        for record in records {
            let family = match &self.source {
                CellSource::Column(_, values) if values.is_null(record) => continue,
                CellSource::Column(column, _) => &column.family,
                CellSource::Packed(packed, _) => &packed.family,
            };
            let (qualifier, timestamp) = (self.qualifier(record)?, self.timestamp(record)?);
            found.push(RowCell { family, qualifier, timestamp, maker: at, records: record..record + 1 });
        }
        Ok(())
    }

    fn qualifier(&self, record: usize) -> Result<&'a [u8]> {
        if self.group.qualifier == QualifierKind::Constant {
            return Ok(match &self.source {
                CellSource::Column(column, _) => &column.qualifier,
                CellSource::Packed(packed, _) => &packed.qualifier,
            });
        }
        let names = self.stored.qualifiers.as_ref().ok_or(missing("qualifiers"))?;
        let name = names.codes.get(record).and_then(|code| names.dictionary.get(*code as usize));
        name.map(AsRef::as_ref).ok_or(missing("a qualifier"))
    }

    fn timestamp(&self, record: usize) -> Result<i64> {
        if self.group.timestamps == TimestampKind::Zero {
            return Ok(0);
        }
        let time = self.stored.timestamps.as_ref().and_then(|times| times.get(record));
        time.copied().ok_or(missing("a timestamp"))
    }
}

/// Builders of the cell columns; unprojected ones stay empty.
pub(crate) struct CellColumns {
    pub(crate) rows: usize,
    row_key: BinaryBuilder,
    family: StringBuilder,
    qualifier: BinaryBuilder,
    timestamp: TimestampMicrosecondBuilder,
    value: BinaryBuilder,
}

impl Default for CellColumns {
    fn default() -> Self {
        Self {
            rows: 0,
            row_key: BinaryBuilder::new(),
            family: StringBuilder::new(),
            qualifier: BinaryBuilder::new(),
            timestamp: TimestampMicrosecondBuilder::new().with_timezone("UTC"),
            value: BinaryBuilder::new(),
        }
    }
}

impl CellColumns {
    pub(crate) fn push(&mut self, cell: CellRef<'_>, columns: &[usize]) {
        self.rows += 1;
        for column in columns {
            match column {
                0 => self.row_key.append_value(cell.row_key),
                1 => self.family.append_value(cell.family),
                2 => self.qualifier.append_value(cell.qualifier),
                3 => self.timestamp.append_value(cell.timestamp),
                _ => self.value.append_value(cell.value),
            }
        }
    }

    /// Takes the batch built so far.
    pub(crate) fn take(&mut self, columns: &[usize], schema: &SchemaRef) -> Result<RecordBatch> {
        let column = |at: &usize| -> ArrayRef {
            match at {
                0 => Arc::new(self.row_key.finish()),
                1 => Arc::new(self.family.finish()),
                2 => Arc::new(self.qualifier.finish()),
                3 => Arc::new(self.timestamp.finish()),
                _ => Arc::new(self.value.finish()),
            }
        };
        let arrays = columns.iter().map(column).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(std::mem::take(&mut self.rows)));
        let batch = RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options);
        batch.map_err(|error| SqlError::Query(error.into()))
    }
}
