//! Statistics of stripes in the stripe table.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{Date32Type, Decimal128Type, Float64Type, Int64Type, TimestampMicrosecondType, UInt64Type};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tidetable_layout::{FieldType, Group, ValueType};

use crate::coding::{Input, put_block, put_varint};
use crate::error::ReadError;

/// The first version whose stripe table has the row flags of groups.
const ROW_FLAGS_VERSION: u32 = 4;

/// A value of a numeric or time type.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scalar {
    /// Of [`FieldType::UInt64`].
    UInt64(u64),
    /// Of [`FieldType::Int64`].
    Int64(i64),
    /// Of [`FieldType::Float64`].
    Float64(f64),
    /// Of [`FieldType::Decimal`], in units of its scale.
    Decimal(i128),
    /// Of [`FieldType::Timestamp`], microseconds.
    Timestamp(i64),
    /// Of [`FieldType::Date`], days.
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

    /// Appends a value of a column of this type.
    pub(crate) fn put(self, out: &mut Vec<u8>, kind: FieldType) {
        out.extend_from_slice(&self.bits().to_le_bytes()[..Self::width(kind)]);
    }

    /// Reads what [`Self::put`] wrote.
    pub(crate) fn read(input: &mut Input, kind: FieldType) -> Result<Self, ReadError> {
        let corrupt = input.corrupt();
        let bytes = input.take(Self::width(kind))?;
        let bits = bytes.iter().rev().fold(0u128, |bits, byte| bits << 8 | u128::from(*byte));
        Self::of_bits(kind, bits).ok_or(corrupt)
    }
}

/// One column of one stripe.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnMeta {
    /// Records that have a value.
    pub present: u64,
    /// Least and greatest value, of numeric and time types. `None` if there is none, or if a NaN is among them.
    /// Zeros of floats count as -0.0 below and +0.0 above, so that bounds hold for both orders of zeros.
    pub range: Option<(Scalar, Scalar)>,
}

/// One stripe of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct StripeMeta {
    /// First byte in the file.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// Least row key.
    pub first_key: Bytes,
    /// Greatest row key.
    pub last_key: Bytes,
    /// Rows; at least one.
    pub rows: u64,
    /// Records of each group of the schema.
    pub records: Vec<u64>,
    /// For each group, whether no row has two records of one qualifier; false if unknown, as before version 4.
    pub one_version_each: Vec<bool>,
    /// For each group, whether every row has a record of it; false if unknown.
    pub fills_rows: Vec<bool>,
    /// Cells of each group.
    pub group_cells: Vec<u64>,
    /// Cells of all groups.
    pub cells: u64,
    /// Least and greatest stored timestamp, microseconds. `None` if no group stores any here.
    pub timestamps: Option<(i64, i64)>,
    /// For each group of the schema, its columns.
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

/// The statistics of a column.
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

fn float_bounds(array: &ArrayRef) -> Option<(Scalar, Scalar)> {
    let array = array.as_primitive_opt::<Float64Type>()?;
    let start = (f64::INFINITY, f64::NEG_INFINITY, false);
    let grow = |(low, high, nan): (f64, f64, bool), value: f64| {
        (if value < low { value } else { low }, if value > high { value } else { high }, nan | value.is_nan())
    };
    let (low, high, nan) = if array.null_count() == 0 {
        array.values().iter().copied().fold(start, grow)
    } else {
        array.iter().flatten().fold(start, grow)
    };
    if nan || array.len() == array.null_count() {
        return None;
    }
    let low = if low == 0.0 { -0.0 } else { low };
    let high = if high == 0.0 { 0.0 } else { high };
    Some((Scalar::Float64(low), Scalar::Float64(high)))
}

impl ColumnMeta {
    pub(crate) fn put(&self, out: &mut Vec<u8>, kind: ValueType) {
        put_varint(out, self.present);
        out.push(u8::from(self.range.is_some()));
        if let (Some((least, greatest)), ValueType::Field(kind)) = (self.range, kind) {
            for scalar in [least, greatest] {
                scalar.put(out, kind);
            }
        }
    }

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

impl StripeMeta {
    pub(crate) fn put(&self, out: &mut Vec<u8>, schema: &tidetable_layout::StoredSchema) {
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
        let told = self.one_version_each.iter().zip(&self.fills_rows);
        let counts = self.records.iter().zip(told).zip(&self.group_cells);
        for ((group, ((records, (one_version_each, fills_rows)), cells)), columns) in
            schema.groups.iter().zip(counts).zip(&self.columns)
        {
            put_varint(out, *records);
            out.push(u8::from(*one_version_each) | u8::from(*fills_rows) << 1);
            // Cells of other groups follow from the counts.
            if group.keeps_duplicates() {
                put_varint(out, *cells);
            }
            for (column, meta) in group.columns.iter().zip(columns) {
                meta.put(out, column.value);
            }
        }
    }

    /// Reads the entry of the stripe that begins at `offset` of a file of this version.
    pub(crate) fn read(
        input: &mut Input,
        schema: &tidetable_layout::StoredSchema,
        offset: u64,
        version: u32,
    ) -> Result<Self, ReadError> {
        let most = crate::format::MAX_RECORDS;
        let len = input.varint()?;
        let head_len = input.varint()?;
        let head_checksum = input.u64()?;
        let rows = input.count(most)? as u64;
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
            let count = input.count(most)? as u64;
            let told = if version < ROW_FLAGS_VERSION { 0 } else { input.u8()? };
            if told > 3 {
                return Err(input.corrupt());
            }
            one_version_each.push(told & 1 != 0);
            fills_rows.push(told & 2 != 0);
            let filled = if group.keeps_duplicates() { input.varint()? } else { 0 };
            if filled > count.min(rows) || (group.keeps_duplicates() && (filled == 0) != (count == 0)) {
                return Err(input.corrupt());
            }
            let metas: Vec<ColumnMeta> = group
                .columns
                .iter()
                .map(|column| ColumnMeta::read(input, column.value, count))
                .collect::<Result<_, _>>()?;
            group_cells.push(cells_of(group, count, &metas, filled));
            records.push(count);
            columns.push(metas);
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
