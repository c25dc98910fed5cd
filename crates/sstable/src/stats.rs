//! Statistics of stripes in the stripe table.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Date32Type, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tidetable_layout::{FieldType, Group, StoredSchema, ValueType};

use crate::coding::{Input, put_block, put_varint};
use crate::error::ReadError;
use crate::format::MAX_RECORDS;

/// The first version whose stripe table has the row flags of groups.
const ROW_FLAGS_VERSION: u32 = 4;

/// A value of a numeric or time type, such as a bound of a column in the stripe table.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scalar {
    /// A value of [`FieldType::UInt64`].
    UInt64(u64),
    /// A value of [`FieldType::Int64`].
    Int64(i64),
    /// A value of [`FieldType::Float64`].
    Float64(f64),
    /// A value of [`FieldType::Decimal`], in units of its column's scale.
    Decimal(i128),
    /// A value of [`FieldType::Timestamp`], in microseconds since the epoch.
    Timestamp(i64),
    /// A value of [`FieldType::Date`], in days since the epoch.
    Date(i32),
}

impl Scalar {
    fn bits(self) -> u128 {
        match self {
            Self::UInt64(value) => u128::from(value),
            Self::Int64(value) | Self::Timestamp(value) => u128::from(value.cast_unsigned()),
            Self::Float64(value) => u128::from(value.to_bits()),
            Self::Decimal(value) => value.cast_unsigned(),
            Self::Date(value) => u128::from(value.cast_unsigned()),
        }
    }

    fn width(kind: FieldType) -> usize {
        match kind {
            FieldType::Decimal { .. } => 16,
            FieldType::Date => 4,
            _ => 8,
        }
    }

    fn of_bits(kind: FieldType, bits: u128) -> Option<Self> {
        Some(match kind {
            FieldType::UInt64 => Self::UInt64(bits as u64),
            FieldType::Int64 => Self::Int64(bits as u64 as i64),
            FieldType::Float64 => Self::Float64(f64::from_bits(bits as u64)),
            FieldType::Decimal { .. } => Self::Decimal(bits.cast_signed()),
            FieldType::Timestamp => Self::Timestamp(bits as u64 as i64),
            FieldType::Date => Self::Date(bits as u32 as i32),
            FieldType::Text | FieldType::Bool => return None,
        })
    }

    /// Appends the value, which is of a column of type `kind`, in 4, 8 or 16 bytes.
    pub(crate) fn put(self, out: &mut Vec<u8>, kind: FieldType) {
        out.extend_from_slice(&self.bits().to_le_bytes()[..Self::width(kind)]);
    }

    /// Reads a value of a column of type `kind` that [`Self::put`] appended.
    pub(crate) fn read(input: &mut Input, kind: FieldType) -> Result<Self, ReadError> {
        let corrupt = input.corrupt();
        let bytes = input.take(Self::width(kind))?;
        let bits = bytes.iter().rev().fold(0u128, |bits, byte| bits << 8 | u128::from(*byte));

        Self::of_bits(kind, bits).ok_or(corrupt)
    }
}

/// The statistics of one column in one stripe. A scan skips stripes by them, and answers counts without reading pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnMeta {
    /// The number of records that have a value.
    pub present: u64,
    /// Least and greatest value, of numeric and time types. `None` if there is none, or if a NaN is among them.
    /// Zeros of floats count as -0.0 below and +0.0 above, so that bounds hold for both orders of zeros.
    pub range: Option<(Scalar, Scalar)>,
}

/// The entry of one stripe in the stripe table: its location and statistics, known without reading the stripe.
#[derive(Debug, Clone, PartialEq)]
pub struct StripeMeta {
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// Its size in bytes, head and pages.
    pub len: u64,
    /// The least row key, that of the first row.
    pub first_key: Bytes,
    /// The greatest row key, that of the last row.
    pub last_key: Bytes,
    /// The number of rows; at least one.
    pub rows: u64,
    /// The number of records of each group of the schema.
    pub records: Vec<u64>,
    /// For each group, whether no row has two records of one qualifier; false if unknown, as before version 4.
    pub one_version_each: Vec<bool>,
    /// For each group, whether every row has a record of it; false if unknown.
    pub fills_rows: Vec<bool>,
    /// The number of cells of each group: of values, or of packed records.
    pub group_cells: Vec<u64>,
    /// The number of cells of all groups together.
    pub cells: u64,
    /// Least and greatest stored timestamp, microseconds. `None` if no group stores any here.
    pub timestamps: Option<(i64, i64)>,
    /// The statistics of each column, by group of the schema.
    pub columns: Vec<Vec<ColumnMeta>>,
    pub(crate) head_len: u64,
    pub(crate) head_checksum: u64,
}

/// The cells of a group: its values; for a packed group its records, or with one cell per row the `filled` rows.
pub(crate) fn cells_of(group: &Group, records: u64, columns: &[ColumnMeta], filled: u64) -> u64 {
    match &group.packed {
        None => columns.iter().map(|column| column.present).sum(),
        Some(_) if group.keeps_duplicates() => filled,
        Some(_) => records,
    }
}

/// Computes the statistics of a column whose values are `array`, of type `kind`.
pub(crate) fn column_meta(array: &ArrayRef, kind: ValueType) -> ColumnMeta {
    let present = (array.len() - array.null_count()) as u64;
    let range = match kind {
        ValueType::Field(FieldType::UInt64) => bounds(array.as_primitive_opt::<UInt64Type>(), Scalar::UInt64),
        ValueType::Field(FieldType::Int64) => bounds(array.as_primitive_opt::<Int64Type>(), Scalar::Int64),
        ValueType::Field(FieldType::Timestamp) => {
            bounds(array.as_primitive_opt::<TimestampMicrosecondType>(), Scalar::Timestamp)
        }
        ValueType::Field(FieldType::Date) => bounds(array.as_primitive_opt::<Date32Type>(), Scalar::Date),
        ValueType::Field(FieldType::Decimal { .. }) => {
            bounds(array.as_primitive_opt::<Decimal128Type>(), Scalar::Decimal)
        }
        ValueType::Field(FieldType::Float64) => float_bounds(array),
        _ => None,
    };
    ColumnMeta { present, range }
}

/// The least and the greatest non-null value.
fn bounds<T: arrow::datatypes::ArrowPrimitiveType>(
    array: Option<&arrow::array::PrimitiveArray<T>>,
    of: fn(T::Native) -> Scalar,
) -> Option<(Scalar, Scalar)>
where
    T::Native: Ord,
{
    let array = array?;
    let (least, greatest) = if array.null_count() == 0 {
        let first = *array.values().first()?;
        array.values().iter().fold((first, first), |(low, high), value| (low.min(*value), high.max(*value)))
    } else {
        let mut values = array.iter().flatten();
        let first = values.next()?;
        values.fold((first, first), |(low, high), value| (low.min(value), high.max(value)))
    };
    Some((of(least), of(greatest)))
}

/// The least and the greatest of some floats, and whether a NaN is among them.
#[derive(Clone, Copy)]
struct FloatBounds {
    low: f64,
    high: f64,
    nan: bool,
}

impl FloatBounds {
    const NONE: Self = Self { low: f64::INFINITY, high: f64::NEG_INFINITY, nan: false };

    #[inline]
    fn with(self, value: f64) -> Self {
        Self {
            low: if value < self.low { value } else { self.low },
            high: if value > self.high { value } else { self.high },
            nan: self.nan | value.is_nan(),
        }
    }
}

/// As [`bounds`], for floats: `None` if a NaN is among them, and zeros as [`ColumnMeta::range`] says.
fn float_bounds(array: &ArrayRef) -> Option<(Scalar, Scalar)> {
    let array = array.as_primitive_opt::<Float64Type>()?;
    let FloatBounds { low, high, nan } = if array.null_count() == 0 {
        array.values().iter().copied().fold(FloatBounds::NONE, FloatBounds::with)
    } else {
        array.iter().flatten().fold(FloatBounds::NONE, FloatBounds::with)
    };
    if nan || array.len() == array.null_count() {
        return None;
    }

    let low = if low == 0.0 { -0.0 } else { low };
    let high = if high == 0.0 { 0.0 } else { high };
    Some((Scalar::Float64(low), Scalar::Float64(high)))
}

impl ColumnMeta {
    /// Appends the statistics of a column of type `kind` to the stripe table.
    pub(crate) fn put(&self, out: &mut Vec<u8>, kind: ValueType) {
        put_varint(out, self.present);
        out.push(u8::from(self.range.is_some()));
        if let (Some((least, greatest)), ValueType::Field(kind)) = (self.range, kind) {
            for scalar in [least, greatest] {
                scalar.put(out, kind);
            }
        }
    }

    /// Reads what [`Self::put`] appended, for a column of type `kind` in a group of `records` records.
    pub(crate) fn read(input: &mut Input, kind: ValueType, records: u64) -> Result<Self, ReadError> {
        let present = input.varint()?;
        let range = match (input.u8()?, kind) {
            (0, _) => None,
            (1, ValueType::Field(kind)) => Some((Scalar::read(input, kind)?, Scalar::read(input, kind)?)),
            _ => return Err(input.corrupt()),
        };
        if present > records {
            return Err(input.corrupt());
        }
        Ok(Self { present, range })
    }
}

/// The part of a stripe's entry that is about one group.
struct GroupEntry {
    records: u64,
    one_version_each: bool,
    fills_rows: bool,
    cells: u64,
    columns: Vec<ColumnMeta>,
}

impl GroupEntry {
    /// Reads the entry of `group` in a stripe of `rows` rows, in a file of this version.
    fn read(input: &mut Input, group: &Group, rows: u64, version: u32) -> Result<Self, ReadError> {
        let records = input.count(MAX_RECORDS)? as u64;
        let flags = if version < ROW_FLAGS_VERSION { 0 } else { input.u8()? };
        if flags > 3 {
            return Err(input.corrupt());
        }

        let filled = if group.keeps_duplicates() { input.varint()? } else { 0 };
        if filled > records.min(rows) || (group.keeps_duplicates() && (filled == 0) != (records == 0)) {
            return Err(input.corrupt());
        }

        let mut columns = Vec::with_capacity(group.columns.len());
        for column in &group.columns {
            columns.push(ColumnMeta::read(input, column.value, records)?);
        }
        let cells = cells_of(group, records, &columns, filled);
        Ok(Self { records, one_version_each: flags & 1 != 0, fills_rows: flags & 2 != 0, cells, columns })
    }
}

impl StripeMeta {
    /// Appends the stripe's entry to the stripe table of a file of `schema`. The offset is not stored: stripes are contiguous.
    pub(crate) fn put(&self, out: &mut Vec<u8>, schema: &StoredSchema) {
        put_varint(out, self.len);
        put_varint(out, self.head_len);
        out.extend_from_slice(&self.head_checksum.to_le_bytes());
        put_varint(out, self.rows);
        put_block(out, &self.first_key);
        put_block(out, &self.last_key);

        out.push(u8::from(self.timestamps.is_some()));
        if let Some((least, greatest)) = self.timestamps {
            out.extend_from_slice(&least.to_le_bytes());
            out.extend_from_slice(&greatest.to_le_bytes());
        }

        let flags = self.one_version_each.iter().zip(&self.fills_rows);
        let flags =
            flags.map(|(one_version_each, fills_rows)| u8::from(*one_version_each) | u8::from(*fills_rows) << 1);
        let counts = self.records.iter().zip(flags).zip(&self.group_cells);
        for ((group, columns), ((records, flags), cells)) in schema.groups.iter().zip(&self.columns).zip(counts) {
            put_varint(out, *records);
            out.push(flags);
            // Cells of other groups follow from the counts.
            if group.keeps_duplicates() {
                put_varint(out, *cells);
            }
            for (column, meta) in group.columns.iter().zip(columns) {
                meta.put(out, column.value);
            }
        }
    }

    /// Reads the entry of the stripe that begins at `offset` of a file of `schema` and this version.
    ///
    /// # Errors
    /// If the entry is damaged, or states more than the format allows.
    pub(crate) fn read(input: &mut Input, schema: &StoredSchema, offset: u64, version: u32) -> Result<Self, ReadError> {
        let len = input.varint()?;
        let head_len = input.varint()?;
        let head_checksum = input.u64()?;
        let rows = input.count(MAX_RECORDS)? as u64;
        let first_key = input.block()?;
        let last_key = input.block()?;
        let timestamps = match input.u8()? {
            0 => None,
            1 => Some((input.i64()?, input.i64()?)),
            _ => return Err(input.corrupt()),
        };

        let (mut records, mut columns, mut group_cells) = (Vec::new(), Vec::new(), Vec::new());
        let (mut one_version_each, mut fills_rows) = (Vec::new(), Vec::new());
        for group in &schema.groups {
            let entry = GroupEntry::read(input, group, rows, version)?;
            records.push(entry.records);
            one_version_each.push(entry.one_version_each);
            fills_rows.push(entry.fills_rows);
            group_cells.push(entry.cells);
            columns.push(entry.columns);
        }

        if head_len > len || rows == 0 || first_key.cmp(&last_key) == Ordering::Greater {
            return Err(input.corrupt());
        }

        Ok(Self {
            offset,
            len,
            first_key,
            last_key,
            rows,
            records,
            one_version_each,
            fills_rows,
            cells: group_cells.iter().sum(),
            group_cells,
            timestamps,
            columns,
            head_len,
            head_checksum,
        })
    }
}
