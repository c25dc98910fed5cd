//! Iterates the cells of a block in Bigtable's order.

use std::cmp::Reverse;
use std::ops::Range;

use arrow::array::Array;
use arrow::buffer::BooleanBuffer;
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
    passes: Passes,
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
    visit: impl FnMut(CellRef<'_>) -> Result<()>,
) -> Result<()> {
    filtered_cells(schema, block, CellParts { key: true, value: true }, |_, _, _| Ok(Passes::All), visit)
}

/// The parts of cells that are written; others stay empty.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CellParts {
    pub(crate) key: bool,
    pub(crate) value: bool,
}

/// The records of a group whose cells pass a filter.
pub(crate) enum Passes {
    All,
    None,
    Records(BooleanBuffer),
}

/// As [`cells_of_block`], for the cells that `passes` lets through: it is asked once a column, or once a packed group, that
/// has cells, with the group, its records and the family.
pub(crate) fn filtered_cells(
    schema: &StoredSchema,
    block: &Block,
    parts: CellParts,
    passes: impl Fn(&Group, &GroupBlock, (&str, &[u8])) -> Result<Passes>,
    mut visit: impl FnMut(CellRef<'_>) -> Result<()>,
) -> Result<()> {
    let mut makers = cell_makers(schema, block)?;
    // A filter may fail for the name of a column that no row has.
    makers.retain(CellMaker::has_cells);
    for maker in &mut makers {
        maker.passes = passes(maker.group, maker.stored, maker.name())?;
    }
    makers.retain(|maker| !matches!(maker.passes, Passes::None));
    let mut writers: Vec<CellBytesWriter<'_>> = makers.iter().map(CellMaker::writer).collect::<Result<_>>()?;
    let mut key = Vec::new();
    let mut value = Vec::new();
    let mut found: Vec<RowCell<'_>> = Vec::new();
    for row in 0..block.keys.len() {
        found.clear();
        for (at, maker) in makers.iter().enumerate() {
            maker.find(at, row, &mut found)?;
        }
        if found.is_empty() {
            continue;
        }
        key.clear();
        if parts.key {
            block.keys.write(row, &mut key);
        }
        found.sort_by(|a, b| {
            (a.family, a.qualifier, Reverse(a.timestamp)).cmp(&(b.family, b.qualifier, Reverse(b.timestamp)))
        });
        for RowCell { family, qualifier, timestamp, maker, records } in &found {
            value.clear();
            if let Some(writer) = writers.get_mut(*maker).filter(|_| parts.value) {
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
            out.push(CellMaker { group, stored, source: CellSource::Packed(packed, columns), passes: Passes::All });
            continue;
        }
        for (at, column) in group.columns.iter().enumerate() {
            out.push(CellMaker { group, stored, source: CellSource::Column(column, values(at)?), passes: Passes::All });
        }
    }
    Ok(out)
}

impl<'a> CellMaker<'a> {
    /// Family, and qualifier unless it varies by record.
    fn name(&self) -> (&'a str, &'a [u8]) {
        match &self.source {
            CellSource::Column(column, _) => (&column.family, &column.qualifier),
            CellSource::Packed(packed, _) => (&packed.family, &packed.qualifier),
        }
    }

    fn has_cells(&self) -> bool {
        match &self.source {
            CellSource::Column(_, values) => values.null_count() < values.len(),
            CellSource::Packed(..) => !self.stored.is_empty(),
        }
    }

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
        if self.group.keeps_duplicates() {
            if let (CellSource::Packed(packed, _), false) = (&self.source, records.is_empty()) {
                let (family, qualifier) = (packed.family.as_str(), packed.qualifier.as_slice());
                found.push(RowCell { family, qualifier, timestamp: 0, maker: at, records });
            }
            return Ok(());
        }
        for record in records {
            if matches!(&self.passes, Passes::Records(passes) if !passes.value(record)) {
                continue;
            }
            let family = match &self.source {
                CellSource::Column(_, values) if values.is_null(record) => continue,
                _ => self.name().0,
            };
            let (qualifier, timestamp) = (self.qualifier(record)?, self.timestamp(record)?);
            found.push(RowCell { family, qualifier, timestamp, maker: at, records: record..record + 1 });
        }
        Ok(())
    }

    fn qualifier(&self, record: usize) -> Result<&'a [u8]> {
        if self.group.qualifier == QualifierKind::Constant {
            return Ok(self.name().1);
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
