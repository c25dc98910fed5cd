//! A batch of rows of a dump, as Google's templates name their fields.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Int64Array, ListArray, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields, Int64Type, Schema, TimeUnit};
use arrow::error::ArrowError;
use tidetable_layout::parse::ParsedCell;

use crate::reject::RejectReason;

/// The columns of a dump.
pub(super) const KEY: &str = "key";
pub(super) const CELLS: &str = "cells";
/// The fields of a cell.
pub(super) const FAMILY: &str = "family";
pub(super) const QUALIFIER: &str = "qualifier";
pub(super) const TIMESTAMP: &str = "timestamp";
pub(super) const VALUE: &str = "value";

/// Whether batches of `schema` are rows of a dump: `key`, and `cells` with their fields.
pub(crate) fn is_dump(schema: &Schema) -> bool {
    let is_key = schema.field_with_name(KEY).is_ok_and(|key| is_bytes(key.data_type()));
    let cells = schema.field_with_name(CELLS).ok().and_then(|cells| cell_fields(cells.data_type()));
    is_key && cells.is_some_and(are_cells)
}

/// The fields of the structs of a list.
fn cell_fields(list: &DataType) -> Option<&Fields> {
    let (DataType::List(item) | DataType::LargeList(item)) = list else { return None };
    match item.data_type() {
        DataType::Struct(fields) => Some(fields),
        _ => None,
    }
}

fn are_cells(fields: &Fields) -> bool {
    let has = |name: &str, is_kind: fn(&DataType) -> bool| {
        fields.iter().any(|field| field.name() == name && is_kind(field.data_type()))
    };
    let is_time = |kind: &DataType| matches!(kind, DataType::Int64 | DataType::Timestamp(..));
    has(FAMILY, is_bytes) && has(QUALIFIER, is_bytes) && has(TIMESTAMP, is_time) && has(VALUE, is_bytes)
}

fn is_bytes(kind: &DataType) -> bool {
    use DataType as D;
    matches!(kind, D::Binary | D::LargeBinary | D::BinaryView | D::Utf8 | D::LargeUtf8 | D::Utf8View)
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
    /// Takes a batch of a dump apart. Nothing is copied where the types are those of Google's schemas.
    ///
    /// # Errors
    /// If a type cannot be read, or a text is not UTF-8.
    pub fn of(batch: &RecordBatch) -> Result<Self, ArrowError> {
        let keys = cast(column(batch, KEY)?, &DataType::Binary)?;
        let cells = column(batch, CELLS)?;
        let Some(fields) = cell_fields(cells.data_type()) else { return Err(missing(CELLS)) };
        let item = DataType::List(Field::new("item", DataType::Struct(fields.clone()), true).into());
        let lists = if matches!(cells.data_type(), DataType::List(_)) { cells.clone() } else { cast(cells, &item)? };
        let lists = lists.as_list::<i32>().clone();

        let structs = lists.values().as_struct().clone();
        let field = |name: &str| structs.column_by_name(name).ok_or_else(|| missing(name));
        let timestamps = match field(TIMESTAMP)?.data_type() {
            DataType::Timestamp(_, zone) => {
                cast(field(TIMESTAMP)?, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone()))?
            }
            _ => field(TIMESTAMP)?.clone(),
        };
        let [qualifiers, values] = [QUALIFIER, VALUE].map(|name| cast(field(name)?, &DataType::Binary));
        let families = cast(&cast(field(FAMILY)?, &DataType::Binary)?, &DataType::Utf8)?;
        let timestamps = cast(&timestamps, &DataType::Int64)?;
        let (qualifiers, values) = (qualifiers?, values?);
        let parts: [&dyn Array; 5] = [&structs, &families, &qualifiers, &timestamps, &values];
        Ok(Self {
            keys: keys.as_binary::<i32>().clone(),
            are_whole: parts.iter().all(|part| part.null_count() == 0),
            lists,
            families: families.as_string::<i32>().clone(),
            qualifiers: qualifiers.as_binary::<i32>().clone(),
            timestamps: timestamps.as_primitive::<Int64Type>().clone(),
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

fn column<'a>(batch: &'a RecordBatch, name: &str) -> Result<&'a ArrayRef, ArrowError> {
    batch.column_by_name(name).ok_or_else(|| missing(name))
}

fn missing(name: &str) -> ArrowError {
    ArrowError::SchemaError(format!("a dump without {name}"))
}
