//! A batch of rows of a dump, as Google's templates name their fields.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Int64Array, ListArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, Int64Type, Schema, TimeUnit};
use arrow::error::ArrowError;
use tidetable_layout::parse::ParsedCell;

use crate::error::SourceError;
use crate::reject::RejectReason;

/// The columns of a dump.
pub(super) const KEY: &str = "key";
pub(super) const CELLS: &str = "cells";
/// The fields of a cell.
pub(super) const FAMILY: &str = "family";
pub(super) const QUALIFIER: &str = "qualifier";
pub(super) const TIMESTAMP: &str = "timestamp";
pub(super) const VALUE: &str = "value";

/// Whether batches of `schema` are rows of a dump: `key`, and `cells` with their fields, all of types that can be read.
pub(crate) fn is_dump(schema: &Schema) -> bool {
    parts(schema).is_some_and(|parts| parts.iter().all(|part| part.is_read()))
}

/// A column of a dump whose type is not read.
#[derive(Debug)]
pub(crate) struct UnlikeColumn {
    pub column: String,
    pub found: DataType,
    /// The types that are read, in words.
    pub wanted: &'static str,
}

/// The types of timestamps that are read, in words.
pub(crate) const TIME_TYPES: &str = "integers, or timestamps of 64 bits";

/// The first column whose type is not read, if the names are those of a dump.
pub(crate) fn unlike_column(schema: &Schema) -> Option<UnlikeColumn> {
    let cells = schema.field_with_name(CELLS).ok()?;
    let Some(parts) = parts(schema) else {
        let is_other_list = list_item(cells.data_type()).is_none() && schema.field_with_name(KEY).is_ok();
        return is_other_list.then(|| UnlikeColumn {
            column: CELLS.to_owned(),
            found: cells.data_type().clone(),
            wanted: "a list of variable length, of family, qualifier, timestamp and value",
        });
    };
    let part = parts.into_iter().find(|part| !part.is_read())?;
    let column = if part.name == KEY { KEY.to_owned() } else { format!("{CELLS}.{}", part.name) };
    let wanted = if part.name == TIMESTAMP { TIME_TYPES } else { "bytes or text" };
    Some(UnlikeColumn { column, found: part.kind.clone(), wanted })
}

/// A column of a dump, or a field of its cells.
struct Part<'a> {
    name: &'static str,
    kind: &'a DataType,
}

impl Part<'_> {
    fn is_read(&self) -> bool {
        match self.name {
            TIMESTAMP => matches!(self.kind, DataType::Int64 | DataType::Timestamp(..)),
            _ => is_bytes(self.kind),
        }
    }
}

/// The parts of a dump by their names; `None` if some are missing.
fn parts(schema: &Schema) -> Option<[Part<'_>; 5]> {
    let key = schema.field_with_name(KEY).ok()?;
    let cells = schema.field_with_name(CELLS).ok()?;
    let fields = cell_fields(cells.data_type())?;
    let part = |name: &'static str| {
        let field = fields.iter().find(|field| field.name() == name)?;
        Some(Part { name, kind: field.data_type() })
    };
    let key = Part { name: KEY, kind: key.data_type() };
    Some([key, part(FAMILY)?, part(QUALIFIER)?, part(TIMESTAMP)?, part(VALUE)?])
}

fn list_item(list: &DataType) -> Option<&DataType> {
    match list {
        DataType::List(item) | DataType::LargeList(item) => Some(item.data_type()),
        _ => None,
    }
}

/// The fields of the structs of a list.
fn cell_fields(list: &DataType) -> Option<&Fields> {
    match list_item(list)? {
        DataType::Struct(fields) => Some(fields),
        _ => None,
    }
}

/// Whether values are bytes, whatever holds them. A text is the bytes of its UTF-8.
fn is_bytes(kind: &DataType) -> bool {
    use DataType as D;
    match kind {
        D::Binary | D::LargeBinary | D::BinaryView | D::FixedSizeBinary(_) => true,
        D::Utf8 | D::LargeUtf8 | D::Utf8View => true,
        D::Dictionary(_, values) => is_bytes(values),
        _ => false,
    }
}

/// The rows of a batch of a dump.
#[derive(Debug)]
pub(crate) struct CellLists {
    keys: BinaryArray,
    lists: ListArray,
    families: StringArray,
    qualifiers: BinaryArray,
    timestamps: Int64Array,
    values: BinaryArray,
    /// Whether nothing in the cells is missing, as Google's schemas say.
    are_whole: bool,
}

impl CellLists {
    /// Takes a batch of the dump at `path` apart. Nothing is copied where the types are those of Google's schemas.
    ///
    /// # Errors
    /// [`SourceError::DumpTime`], and [`SourceError::Arrow`] if a type cannot be read.
    pub fn of(path: &str, batch: &RecordBatch) -> Result<Self, SourceError> {
        let arrow = |source| SourceError::Arrow { path: path.to_owned(), source };
        let (keys, lists) = lists(batch).map_err(arrow)?;
        let structs = lists.values().as_struct().clone();
        let field = |name: &str| structs.column_by_name(name).ok_or_else(|| arrow(missing(name)));
        let bytes = |name: &str| cast(field(name)?, &DataType::Binary).map_err(arrow);

        let timestamps = micros(path, field(TIMESTAMP)?)?;
        let families = cast(&bytes(FAMILY)?, &DataType::Utf8).map_err(arrow)?;
        let (qualifiers, values) = (bytes(QUALIFIER)?, bytes(VALUE)?);
        let parts: [&dyn Array; 5] = [&structs, &families, &qualifiers, &timestamps, &values];
        Ok(Self {
            keys,
            are_whole: parts.iter().all(|part| part.null_count() == 0),
            lists,
            families: families.as_string::<i32>().clone(),
            qualifiers: qualifiers.as_binary::<i32>().clone(),
            timestamps,
            values: values.as_binary::<i32>().clone(),
        })
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.keys.len()
    }

    /// The number of cells of all rows.
    pub fn cells(&self) -> usize {
        let offsets = self.lists.value_offsets();
        let (first, last) = (offsets.first().copied().unwrap_or_default(), offsets.last().copied().unwrap_or_default());
        (last - first) as usize
    }

    /// The places of the cells of a row.
    pub fn cells_of(&self, row: usize) -> Range<usize> {
        let offsets = self.lists.value_offsets();
        match (offsets.get(row), offsets.get(row + 1)) {
            (Some(start), Some(end)) if self.lists.is_valid(row) => *start as usize..*end as usize,
            _ => 0..0,
        }
    }

    pub fn key(&self, row: usize) -> &[u8] {
        self.keys.value(row)
    }

    /// The cell at a place, with what [`Self::cell_fault`] finds no fault with.
    pub fn cell(&self, place: usize) -> ParsedCell<'_> {
        ParsedCell {
            family: self.families.value(place),
            qualifier: self.qualifiers.value(place),
            timestamp: self.timestamps.value(place),
            value: self.values.value(place),
        }
    }

    /// What is wrong with a row, whatever its cells are.
    pub fn row_fault(&self, row: usize) -> Option<RejectReason> {
        if self.keys.is_null(row) || self.keys.value(row).is_empty() {
            return Some(RejectReason::NoRowKey);
        }
        self.lists.is_null(row).then_some(RejectReason::NoPart { part: CELLS })
    }

    /// What a cell lacks.
    pub fn cell_fault(&self, place: usize) -> Option<RejectReason> {
        if self.are_whole {
            return None;
        }
        let is_null = [
            (FAMILY, self.families.is_null(place)),
            (QUALIFIER, self.qualifiers.is_null(place)),
            (TIMESTAMP, self.timestamps.is_null(place)),
            (VALUE, self.values.is_null(place)),
        ];
        is_null.into_iter().find(|(_, is_null)| *is_null).map(|(part, _)| RejectReason::NoPart { part })
    }
}

/// The keys and the cells of a batch.
fn lists(batch: &RecordBatch) -> Result<(BinaryArray, ListArray), ArrowError> {
    let keys = cast(column(batch, KEY)?, &DataType::Binary)?;
    let cells = column(batch, CELLS)?;
    let Some(fields) = cell_fields(cells.data_type()) else { return Err(missing(CELLS)) };
    let item = DataType::List(Field::new("item", DataType::Struct(fields.clone()), true).into());
    let lists = if matches!(cells.data_type(), DataType::List(_)) { cells.clone() } else { cast(cells, &item)? };
    Ok((keys.as_binary::<i32>().clone(), lists.as_list::<i32>().clone()))
}

/// Timestamps in microseconds: those of Bigtable. None is cut.
fn micros(path: &str, times: &ArrayRef) -> Result<Int64Array, SourceError> {
    let stored =
        cast(times, &DataType::Int64).map_err(|source| SourceError::Arrow { path: path.to_owned(), source })?;
    let stored = stored.as_primitive::<Int64Type>();
    let DataType::Timestamp(unit, _) = times.data_type() else { return Ok(stored.clone()) };
    let (word, problem) = match unit {
        TimeUnit::Microsecond => return Ok(stored.clone()),
        TimeUnit::Nanosecond => ("ns", "is no whole number of microseconds"),
        TimeUnit::Millisecond => ("ms", "is later or earlier than Bigtable's microseconds"),
        TimeUnit::Second => ("s", "is later or earlier than Bigtable's microseconds"),
    };
    stored.try_unary(|time: i64| {
        let micros = match unit {
            TimeUnit::Nanosecond => (time % 1000 == 0).then_some(time / 1000),
            TimeUnit::Second => time.checked_mul(1_000_000),
            TimeUnit::Millisecond | TimeUnit::Microsecond => time.checked_mul(1000),
        };
        micros.ok_or_else(|| SourceError::DumpTime { path: path.to_owned(), time: format!("{time} {word}"), problem })
    })
}

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef, ArrowError> {
    batch.column_by_name(name).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> ArrowError {
    ArrowError::SchemaError(format!("a dump without {name}"))
}
