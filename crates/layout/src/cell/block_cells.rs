//! The cells of a block, row by row, in Bigtable's order: families by name, qualifiers by bytes, newest first.
//!
//! Names of columns are ordered once a block, so that the cells of a row are ordered by integers.

use std::cmp::Reverse;
use std::ops::Range;

use arrow::array::Array;
use arrow::buffer::BooleanBuffer;

use crate::block::{Block, GroupBlock};
use crate::cell::packed::PackedWriter;
use crate::cell::writer::CellWriter;
use crate::error::ShapeError;
use crate::schema::{Column, Group, Packed, QualifierKind, StoredSchema, TimestampKind};

/// The name of a column: family and qualifier, ordered as Bigtable returns them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ColumnName<'a> {
    /// The id of the family.
    pub family: &'a str,
    /// The qualifier, which may be empty.
    pub qualifier: &'a [u8],
}

/// A cell with its value, borrowed from buffers of its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellRef<'a> {
    /// The key of its row.
    pub row_key: &'a [u8],
    /// The id of its family.
    pub family: &'a str,
    /// The qualifier of its column.
    pub qualifier: &'a [u8],
    /// Its timestamp, in microseconds since the epoch.
    pub timestamp: i64,
    /// The bytes of its value, in the column's encoding.
    pub value: &'a [u8],
}

/// The records of a group whose cells pass a filter.
#[derive(Debug, Clone)]
pub enum Passes {
    /// The cells of all records pass.
    All,
    /// No cell passes.
    None,
    /// The cells of the records that are set pass.
    Records(BooleanBuffer),
}

/// A cell of a row, before its value is encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockCell {
    /// The index of its column in [`BlockCells::names`].
    pub name: u32,
    /// Its timestamp, in microseconds since the epoch.
    pub timestamp: i64,
    /// The index of the writer that encodes it.
    maker: u32,
    /// The records it is encoded from: one, or all of a row for a joined cell.
    records: Range<u32>,
}

/// The cells of a block that pass a filter, to be read row by row.
pub struct BlockCells<'a> {
    makers: Vec<CellMaker<'a>>,
    names: Vec<ColumnName<'a>>,
}

/// Encodes the values of cells of one block. Has scratch buffers, so each thread has its own.
pub struct CellValues<'a>(Vec<CellBytesWriter<'a>>);

/// Encodes cells from the records of a group: from one column, or from all of a packed group.
struct CellMaker<'a> {
    group: &'a Group,
    stored: &'a GroupBlock,
    source: CellSource<'a>,
    passes: Passes,
    names: Names,
}

/// The indexes of the names of a maker's cells.
enum Names {
    One(u32),
    /// By code of the dictionary; undefined for codes that no record has.
    ByCode(Vec<u32>),
}

/// What the cells of a maker are encoded from.
enum CellSource<'a> {
    Column(&'a Column, &'a dyn Array),
    Packed(&'a Packed, Vec<&'a dyn Array>),
}

enum CellBytesWriter<'a> {
    Column(CellWriter<'a>),
    Packed(PackedWriter<'a>),
}

impl<'a> BlockCells<'a> {
    /// The cells of `block`, which holds all groups of `schema`, that `passes` lets through: it is asked once a column, or
    /// once a packed group, that has cells, with the group, its records, the family and, unless it varies, the qualifier.
    ///
    /// # Errors
    /// [`ShapeError`] if the block does not match `schema`; errors of `passes`.
    pub fn new<E: From<ShapeError>>(
        schema: &'a StoredSchema,
        block: &'a Block,
        passes: impl Fn(&Group, &GroupBlock, (&str, &[u8])) -> Result<Passes, E>,
    ) -> Result<Self, E> {
        let mut makers = cell_makers(schema, block)?;
        // A filter may fail for the name of a column that no row has.
        makers.retain(CellMaker::has_cells);
        for maker in &mut makers {
            maker.passes = passes(maker.group, maker.stored, maker.name())?;
        }
        makers.retain(|maker| !matches!(maker.passes, Passes::None));
        let names = name_all(&mut makers)?;
        Ok(Self { makers, names })
    }

    /// The names of columns, ascending. Some may have no cell.
    pub fn names(&self) -> &[ColumnName<'a>] {
        &self.names
    }

    /// The name of the column of a cell; empty for a cell of another block.
    pub fn name(&self, cell: &BlockCell) -> ColumnName<'a> {
        self.names.get(cell.name as usize).copied().unwrap_or(ColumnName { family: "", qualifier: &[] })
    }

    /// Replaces `cells` by the cells of `row` in order.
    ///
    /// # Errors
    /// If the block does not match its schema.
    pub fn row(&self, row: usize, cells: &mut Vec<BlockCell>) -> Result<(), ShapeError> {
        cells.clear();
        for (at, maker) in (0..).zip(&self.makers) {
            maker.find(at, row, cells)?;
        }
        // Each maker has them in order, and most rows have one maker, or makers of ascending names.
        if !cells.is_sorted_by_key(|cell| (cell.name, Reverse(cell.timestamp))) {
            cells.sort_by_key(|cell| (cell.name, Reverse(cell.timestamp)));
        }
        Ok(())
    }

    /// The encoder of their values.
    ///
    /// # Errors
    /// If the block does not match its schema.
    pub fn values(&self) -> Result<CellValues<'a>, ShapeError> {
        self.makers.iter().map(CellMaker::writer).collect::<Result<_, _>>().map(CellValues)
    }
}

impl CellValues<'_> {
    /// Appends the value of a cell of this block to `out`.
    pub fn write(&mut self, cell: &BlockCell, out: &mut Vec<u8>) {
        match self.0.get_mut(cell.maker as usize) {
            Some(CellBytesWriter::Column(writer)) => writer.write(cell.records.start as usize, out),
            Some(CellBytesWriter::Packed(writer)) => {
                writer.write(cell.records.start as usize..cell.records.end as usize, out);
            }
            None => {}
        }
    }
}

fn missing(what: &'static str) -> ShapeError {
    ShapeError { what }
}

/// A maker for each column, or for each packed group, of a block that has all groups of `schema`.
fn cell_makers<'a>(schema: &'a StoredSchema, block: &'a Block) -> Result<Vec<CellMaker<'a>>, ShapeError> {
    let mut out = Vec::new();
    for (at, group) in schema.groups.iter().enumerate() {
        let stored = block.groups.get(at).and_then(Option::as_ref).ok_or(missing("a group"))?;
        if let Some(packed) = &group.packed {
            let columns = (0..group.columns.len()).map(|at| values_of(stored, at)).collect::<Result<_, _>>()?;
            out.push(CellMaker::new(group, stored, CellSource::Packed(packed, columns)));
            continue;
        }

        for (at, column) in group.columns.iter().enumerate() {
            out.push(CellMaker::new(group, stored, CellSource::Column(column, values_of(stored, at)?)));
        }
    }
    Ok(out)
}

/// The values of column `index` of a group, one per record.
fn values_of(stored: &GroupBlock, index: usize) -> Result<&dyn Array, ShapeError> {
    let values = stored.columns.get(index).and_then(Option::as_ref).ok_or(missing("a column"))?;
    if values.len() < stored.len() { Err(missing("values")) } else { Ok(values.as_ref()) }
}

/// Where a name occurs: the maker, and the code of the qualifier in its dictionary, 0 if it has no dictionary.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct NameUse<'a> {
    name: ColumnName<'a>,
    maker: usize,
    code: usize,
}

/// Orders the names of all makers; `names` of each is set.
fn name_all<'a>(makers: &mut [CellMaker<'a>]) -> Result<Vec<ColumnName<'a>>, ShapeError> {
    let mut uses: Vec<NameUse<'a>> = Vec::new();
    for (index, maker) in makers.iter_mut().enumerate() {
        let (family, qualifier) = maker.name();
        if maker.is_joined() || maker.group.qualifier == QualifierKind::Constant {
            uses.push(NameUse { name: ColumnName { family, qualifier }, maker: index, code: 0 });
            continue;
        }

        let names = maker.stored.qualifiers.as_ref().ok_or(missing("qualifiers"))?;
        // The dictionary may be that of a whole stripe.
        let mut is_used = vec![false; names.dictionary.len()];
        for code in &names.codes {
            *is_used.get_mut(*code as usize).ok_or(missing("a qualifier"))? = true;
        }
        let used = names.dictionary.iter().enumerate().zip(&is_used).filter(|(_, is_used)| **is_used);
        uses.extend(used.map(|((code, qualifier), _)| NameUse {
            name: ColumnName { family, qualifier },
            maker: index,
            code,
        }));
        maker.names = Names::ByCode(vec![0; is_used.len()]);
    }

    uses.sort();
    let mut names: Vec<ColumnName<'a>> = Vec::with_capacity(uses.len());
    for NameUse { name, maker, code } in uses {
        if names.last() != Some(&name) {
            names.push(name);
        }
        let index = names.len() as u32 - 1;
        match makers.get_mut(maker).map(|maker| &mut maker.names) {
            Some(Names::One(of_all)) => *of_all = index,
            Some(Names::ByCode(by_code)) => by_code[code] = index,
            None => {}
        }
    }
    Ok(names)
}

impl<'a> CellMaker<'a> {
    fn new(group: &'a Group, stored: &'a GroupBlock, source: CellSource<'a>) -> Self {
        Self { group, stored, source, passes: Passes::All, names: Names::One(0) }
    }

    /// Family, and qualifier unless it varies by record.
    fn name(&self) -> (&'a str, &'a [u8]) {
        match &self.source {
            CellSource::Column(column, _) => (&column.family, &column.qualifier),
            CellSource::Packed(packed, _) => (&packed.family, &packed.qualifier),
        }
    }

    /// Whether any record has a value, or for a packed group whether there is a record.
    fn has_cells(&self) -> bool {
        match &self.source {
            CellSource::Column(_, values) => values.null_count() < values.len(),
            CellSource::Packed(..) => !self.stored.is_empty(),
        }
    }

    /// Whether it makes one cell of all records of a row.
    fn is_joined(&self) -> bool {
        self.group.keeps_duplicates()
    }

    fn writer(&self) -> Result<CellBytesWriter<'a>, ShapeError> {
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
    fn find(&self, maker: u32, row: usize, found: &mut Vec<BlockCell>) -> Result<(), ShapeError> {
        if row >= self.stored.row_ends.len() {
            return Err(missing("rows"));
        }
        let records = self.stored.records(row);
        if self.is_joined() {
            if let (CellSource::Packed(..), Names::One(name), false) = (&self.source, &self.names, records.is_empty()) {
                let records = records.start as u32..records.end as u32;
                found.push(BlockCell { name: *name, timestamp: 0, maker, records });
            }
            return Ok(());
        }

        let nulls = match &self.source {
            CellSource::Column(_, values) => values.nulls(),
            CellSource::Packed(..) => None,
        };
        let has_times = self.group.timestamps != TimestampKind::Zero;
        let times = match (has_times, &self.stored.timestamps) {
            (false, _) => None,
            (true, Some(times)) => Some(times.get(records.clone()).ok_or(missing("a timestamp"))?),
            (true, None) if records.is_empty() => None,
            (true, None) => return Err(missing("a timestamp")),
        };
        let codes = match (&self.names, &self.stored.qualifiers) {
            (Names::ByCode(by_code), Some(names)) => {
                Some((by_code, names.codes.get(records.clone()).ok_or(missing("a qualifier"))?))
            }
            _ => None,
        };

        for (at, record) in records.enumerate() {
            let is_hidden = matches!(&self.passes, Passes::Records(passes) if !passes.value(record));
            if is_hidden || nulls.is_some_and(|nulls| nulls.is_null(record)) {
                continue;
            }
            let name = match (codes, &self.names) {
                (Some((by_code, codes)), _) => by_code[codes[at] as usize],
                (None, Names::One(name)) => *name,
                (None, Names::ByCode(_)) => return Err(missing("qualifiers")),
            };
            let timestamp = times.map_or(0, |times| times[at]);
            found.push(BlockCell { name, timestamp, maker, records: record as u32..record as u32 + 1 });
        }
        Ok(())
    }
}
