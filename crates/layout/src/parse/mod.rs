//! Cells of Bigtable back to a block: keys and qualifiers are split by their templates, values are read in their encodings.
//!
//! [`BlockParser::push`] takes a row or says why the layout cannot have written it; then nothing of it is in the block.

mod json;
mod message;
mod value;

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::{ArrayRef, BinaryBuilder, BooleanBuilder};
use arrow::error::ArrowError;

use crate::block::{Block, GroupBlock, Keys, Qualifiers};
use crate::parse::json::JsonValue;
use crate::parse::value::{read_text, read_value};
use crate::plan::Layout;
use crate::scalar::{ColumnBuilder, Scalar};
use crate::schema::{Column, ColumnRef, FieldType, Group, Packed, PackedForm, QualifierKind, TimestampKind, ValueType};
use crate::template::print::split;

/// A cell of a row as it was read from Bigtable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParsedCell<'a> {
    /// The id of its family.
    pub family: &'a str,
    /// The qualifier of its column.
    pub qualifier: &'a [u8],
    /// Its timestamp, in microseconds since the epoch.
    pub timestamp: i64,
    /// The bytes of its value.
    pub value: &'a [u8],
}

/// Why a layout cannot have written a row, so that it cannot be read as records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The row key has another form than the template's.
    #[error("its row key is not of the form of the layout's")]
    Key,
    /// A row key that is not after the one before.
    #[error("its row key is not after the one before")]
    Order,
    /// A cell of a column that the layout does not have.
    #[error("the layout has no column {family}:{qualifier}")]
    Column {
        /// The id of the family.
        family: String,
        /// The qualifier, with bytes escaped that are not printable.
        qualifier: String,
    },
    /// A timestamp other than 0 in a column without times.
    #[error("{family}:{qualifier} has the timestamp {timestamp}, and the layout writes 0")]
    Timestamp {
        /// The id of the family.
        family: String,
        /// The qualifier, with bytes escaped that are not printable.
        qualifier: String,
        /// The timestamp of the cell, in microseconds since the epoch.
        timestamp: i64,
    },
    /// A value that does not fit the type of its column.
    #[error("the value of {family}:{qualifier} is no {kind}")]
    Value {
        /// The id of the family.
        family: String,
        /// The qualifier, with bytes escaped that are not printable.
        qualifier: String,
        /// What the value should be, such as `int64`.
        kind: &'static str,
    },
}

/// A value of a column, read from a cell.
#[derive(Debug, Clone, PartialEq)]
enum Parsed {
    Empty,
    Bytes(Vec<u8>),
    Typed(Scalar),
}

/// A record: qualifier and descending time, with a value for some columns of its group.
type Records = BTreeMap<(Vec<u8>, Reverse<i64>, usize), Vec<Option<Parsed>>>;

/// Builds a block of the rows that a layout has written.
#[derive(Debug)]
pub struct BlockParser<'a> {
    layout: &'a Layout,
    /// The columns with constant qualifiers, by family and qualifier.
    constant: HashMap<(&'a str, &'a [u8]), ColumnRef>,
    /// The columns of dynamic groups, by family.
    dynamic: HashMap<&'a str, Vec<ColumnRef>>,
    keys: Keys,
    last: Vec<u8>,
    groups: Vec<GroupParser<'a>>,
}

/// The part of a parser that builds one group.
#[derive(Debug)]
struct GroupParser<'a> {
    group: &'a Group,
    row_ends: Vec<u32>,
    names: BTreeMap<Vec<u8>, u32>,
    codes: Vec<u32>,
    timestamps: Vec<i64>,
    /// For each column, its values so far.
    columns: Vec<Vec<Option<Parsed>>>,
}

impl<'a> BlockParser<'a> {
    /// A parser of rows that `layout` has written, without rows yet.
    pub fn new(layout: &'a Layout) -> Self {
        let stored = layout.stored();
        let (mut constant, mut dynamic) = (HashMap::new(), HashMap::<&str, Vec<ColumnRef>>::new());
        for (index, group) in stored.groups.iter().enumerate() {
            let packed = group.packed.as_ref().map(|packed| (packed.family.as_str(), packed.qualifier.as_slice(), 0));
            let columns = group.columns.iter().enumerate();
            let columns = columns.map(|(at, column)| (column.family.as_str(), column.qualifier.as_slice(), at));
            let names: Vec<(&str, &[u8], usize)> = packed.map_or_else(|| columns.collect(), |packed| vec![packed]);

            for (family, qualifier, column) in names {
                let place = ColumnRef { group: index, column };
                match group.qualifier {
                    QualifierKind::Constant => drop(constant.insert((family, qualifier), place)),
                    QualifierKind::Dynamic => dynamic.entry(family).or_default().push(place),
                }
            }
        }

        let groups = stored.groups.iter().map(GroupParser::new).collect();
        let keys = Keys::new(Arc::new(stored.tail.clone()));
        Self { layout, constant, dynamic, keys, last: Vec::new(), groups }
    }

    /// The number of rows so far.
    pub fn rows(&self) -> usize {
        self.keys.len()
    }

    /// Takes a row.
    ///
    /// # Errors
    /// Why the layout cannot have written it.
    pub fn push<'c>(&mut self, key: &[u8], cells: impl IntoIterator<Item = ParsedCell<'c>>) -> Result<(), ParseError> {
        if self.rows() > 0 && key <= self.last.as_slice() {
            return Err(ParseError::Order);
        }
        let width = self.keys.tail_shape().width();
        let (prefix, tail) = key.len().checked_sub(width).map(|at| key.split_at(at)).ok_or(ParseError::Key)?;
        let tail = if width == 0 { 0 } else { self.keys.tail_shape().read(tail).ok_or(ParseError::Key)? };
        if self.layout.split_key(key).is_none() {
            return Err(ParseError::Key);
        }

        let mut records: Vec<Records> = self.groups.iter().map(|_| Records::new()).collect();
        for cell in cells {
            let (place, values) = self.parse(&cell)?;
            if let Some(found) = records.get_mut(place.group) {
                self.place(found, place, &cell, values);
            }
        }

        for (group, records) in self.groups.iter_mut().zip(records) {
            group.push(records);
        }
        self.keys.push(prefix, tail);
        self.last.clear();
        self.last.extend_from_slice(key);
        Ok(())
    }

    /// Adds the values of a cell of this column to the records of its row.
    fn place(&self, records: &mut Records, place: ColumnRef, cell: &ParsedCell<'_>, values: Vec<CellRecord>) {
        let Some(group) = self.groups.get(place.group).map(|parser| parser.group) else { return };
        let name = if group.qualifier == QualifierKind::Dynamic { cell.qualifier.to_vec() } else { Vec::new() };
        let width = group.columns.len();

        for CellRecord { time, values } in values {
            // Records of a joined message with one time are all kept, in their order.
            let mut number = 0;
            if group.keeps_duplicates() {
                while records.contains_key(&(name.clone(), Reverse(time), number)) {
                    number += 1;
                }
            }

            let record = records.entry((name.clone(), Reverse(time), number)).or_insert_with(|| vec![None; width]);
            if group.packed.is_some() {
                *record = values;
            } else if let (Some(slot), Some(value)) = (record.get_mut(place.column), values.into_iter().next()) {
                *slot = value;
            }
        }
    }

    /// The column of a cell, and its values.
    fn parse(&self, cell: &ParsedCell<'_>) -> Result<(ColumnRef, Vec<CellRecord>), ParseError> {
        if let Some(place) = self.constant.get(&(cell.family, cell.qualifier)).copied() {
            return self.values(cell, place).map(|values| (place, values));
        }

        let mut error = ParseError::Column { family: cell.family.to_owned(), qualifier: escaped(cell.qualifier) };
        let mut spans = Vec::new();
        for place in self.dynamic.get(cell.family).into_iter().flatten().copied() {
            let plan = self.layout.groups.get(place.group);
            let segments = plan.and_then(|plan| plan.qualifier.as_deref()).unwrap_or_default();
            if !split(segments, cell.qualifier, &mut spans) {
                continue;
            }
            match self.values(cell, place) {
                Ok(values) => return Ok((place, values)),
                Err(found) => error = found,
            }
        }
        Err(error)
    }

    /// The records that a cell of this column holds: one, or those of a repeated message.
    fn values(&self, cell: &ParsedCell<'_>, place: ColumnRef) -> Result<Vec<CellRecord>, ParseError> {
        let group = self.groups.get(place.group).map(|parser| parser.group);
        let group = group.ok_or_else(|| wrong(cell, "cell of the layout"))?;
        if (group.timestamps == TimestampKind::Zero || group.keeps_duplicates()) && cell.timestamp != 0 {
            return Err(ParseError::Timestamp {
                family: cell.family.to_owned(),
                qualifier: escaped(cell.qualifier),
                timestamp: cell.timestamp,
            });
        }

        if let Some(packed) = &group.packed {
            let kind =
                if packed.form == PackedForm::Json { "JSON object of its columns" } else { "message of its fields" };
            return self.packed(group, packed, cell).ok_or_else(|| wrong(cell, kind));
        }
        let column = group.columns.get(place.column).ok_or_else(|| wrong(cell, "cell of the layout"))?;
        let value = parse_column(column, cell.value).ok_or_else(|| wrong(cell, kind_name(column.value)))?;
        Ok(vec![CellRecord { time: cell.timestamp, values: vec![Some(value)] }])
    }

    /// The records that a packed cell holds; `None` if its bytes are not of the packed form.
    fn packed(&self, group: &Group, packed: &Packed, cell: &ParsedCell<'_>) -> Option<Vec<CellRecord>> {
        let kinds: Vec<FieldType> = group.columns.iter().map(|column| field_type(column.value)).collect();

        match &packed.form {
            PackedForm::Json => {
                let mut values = vec![None; group.columns.len()];
                for (name, value) in json::object(std::str::from_utf8(cell.value).ok()?)? {
                    let at = group.columns.iter().position(|column| column.qualifier == name.as_bytes())?;
                    let text = match value {
                        JsonValue::Bare(bare) if bare == "null" => continue,
                        JsonValue::Text(text) | JsonValue::Bare(text) => text,
                    };
                    *values.get_mut(at)? = Some(read_text(*kinds.get(at)?, &text)?);
                }
                Some(vec![CellRecord { time: cell.timestamp, values: typed(values) }])
            }
            PackedForm::Message { fields } => {
                let values = message::read_message(fields, &kinds, cell.value)?;
                Some(vec![CellRecord { time: cell.timestamp, values: typed(values) }])
            }
            PackedForm::Repeated { fields, number } => {
                let time = self.layout.source.fields.get(self.layout.source.time)?;
                let time = fields.iter().position(|field| field.name == time.name)?;
                let mut records = Vec::new();
                for (found, value) in message::fields(cell.value)? {
                    let message::Wire::Bytes(bytes) = value else { return None };
                    if found != u64::from(*number) {
                        return None;
                    }
                    let values = message::read_message(fields, &kinds, bytes)?;
                    let Some(Some(Scalar::Timestamp(time))) = values.get(time) else { return None };
                    records.push(CellRecord { time: *time, values: typed(values) });
                }
                Some(records)
            }
        }
    }

    /// The block of all rows.
    ///
    /// # Errors
    /// If Arrow refuses a decimal.
    pub fn finish(self) -> Result<Block, ArrowError> {
        let groups = self.groups.into_iter().map(|group| group.finish().map(Some)).collect::<Result<_, _>>()?;
        Ok(Block { keys: self.keys, groups })
    }
}

/// A record that a cell holds.
#[derive(Debug)]
struct CellRecord {
    time: i64,
    /// Of the cell's column, or of all columns of a packed group.
    values: Vec<Option<Parsed>>,
}

/// The error for a cell whose value is not what its column has.
fn wrong(cell: &ParsedCell<'_>, kind: &'static str) -> ParseError {
    ParseError::Value { family: cell.family.to_owned(), qualifier: escaped(cell.qualifier), kind }
}

/// Scalars as values of columns.
fn typed(values: Vec<Option<Scalar>>) -> Vec<Option<Parsed>> {
    values.into_iter().map(|value| value.map(Parsed::Typed)).collect()
}

impl<'a> GroupParser<'a> {
    fn new(group: &'a Group) -> Self {
        let columns = group.columns.iter().map(|_| Vec::new()).collect();
        Self { group, row_ends: Vec::new(), names: BTreeMap::new(), codes: Vec::new(), timestamps: Vec::new(), columns }
    }

    /// Appends a row with these records.
    fn push(&mut self, records: Records) {
        for ((name, Reverse(time), _), values) in records {
            let next = self.names.len() as u32;
            self.codes.push(*self.names.entry(name).or_insert(next));
            self.timestamps.push(time);
            for (column, value) in self.columns.iter_mut().zip(values) {
                column.push(value);
            }
        }
        self.row_ends.push(self.codes.len() as u32);
    }

    /// The group's block, with codes in the order of the qualifiers.
    fn finish(self) -> Result<GroupBlock, ArrowError> {
        let mut ranks = vec![0_u32; self.names.len()];
        for (rank, code) in self.names.values().enumerate() {
            if let Some(slot) = ranks.get_mut(*code as usize) {
                *slot = rank as u32;
            }
        }
        let codes = self.codes.iter().map(|code| ranks.get(*code as usize).copied().unwrap_or_default()).collect();
        let dictionary = self.names.into_keys().map(Vec::into_boxed_slice).collect();

        let is_dynamic = self.group.qualifier == QualifierKind::Dynamic;
        let is_stored = self.group.timestamps == TimestampKind::Stored;
        let columns = self.group.columns.iter().zip(self.columns);
        let columns =
            columns.map(|(column, values)| build(column.value, values).map(Some)).collect::<Result<_, _>>()?;
        Ok(GroupBlock {
            row_ends: self.row_ends,
            qualifiers: is_dynamic.then_some(Qualifiers { dictionary, codes }),
            timestamps: is_stored.then_some(self.timestamps),
            columns,
            sums: Vec::new(),
        })
    }
}

/// The Arrow array of a column's values.
fn build(kind: ValueType, values: Vec<Option<Parsed>>) -> Result<ArrayRef, ArrowError> {
    match kind {
        ValueType::Empty => {
            let mut builder = BooleanBuilder::with_capacity(values.len());
            values.iter().for_each(|value| builder.append_option(value.as_ref().map(|_| true)));
            Ok(Arc::new(builder.finish()))
        }

        ValueType::Bytes => {
            let mut builder = BinaryBuilder::new();
            for value in values {
                match value {
                    Some(Parsed::Bytes(bytes)) => builder.append_value(bytes),
                    _ => builder.append_null(),
                }
            }
            Ok(Arc::new(builder.finish()))
        }

        ValueType::Field(kind) => {
            let mut builder = ColumnBuilder::new(kind, values.len());
            for value in &values {
                match value {
                    Some(Parsed::Typed(scalar)) if builder.push_scalar(scalar) => {}
                    _ => builder.push_null(),
                }
            }
            builder.finish()
        }
    }
}

fn parse_column(column: &Column, bytes: &[u8]) -> Option<Parsed> {
    match column.value {
        ValueType::Empty => bytes.is_empty().then_some(Parsed::Empty),
        ValueType::Bytes => Some(Parsed::Bytes(bytes.to_vec())),
        ValueType::Field(kind) => read_value(kind, column.encoding, bytes).map(Parsed::Typed),
    }
}

fn field_type(value: ValueType) -> FieldType {
    if let ValueType::Field(kind) = value { kind } else { FieldType::Text }
}

fn kind_name(value: ValueType) -> &'static str {
    match value {
        ValueType::Empty => "empty value",
        ValueType::Bytes => "bytes",
        ValueType::Field(FieldType::UInt64) => "uint64",
        ValueType::Field(FieldType::Int64) => "int64",
        ValueType::Field(FieldType::Float64) => "float64",
        ValueType::Field(FieldType::Decimal { .. }) => "decimal of its precision and scale",
        ValueType::Field(FieldType::Text) => "text in UTF-8",
        ValueType::Field(FieldType::Bool) => "bool",
        ValueType::Field(FieldType::Timestamp) => "timestamp",
        ValueType::Field(FieldType::Date) => "date",
    }
}

fn escaped(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
