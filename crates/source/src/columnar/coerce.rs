//! The types of a file into the declared ones, where nothing is lost. A value that does not fit rejects its row.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, new_null_array};
use arrow::datatypes::{DataType, TimeUnit};
use arrow::error::ArrowError;
use parquet::data_type::Int96;
use tidetable_layout::FieldType;

use crate::columnar::coerced::{Coerced, Fault, cast, lost};
use crate::columnar::columns::FileColumn;
use crate::columnar::json_text::texts;
use crate::columnar::{numbers, times};
use crate::reject::RejectReason;
use crate::time::TimeRule;
use crate::value::{ColumnBuilder, ColumnPlan};

/// The way from a file's type to a declared one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coercion {
    /// The same type, with any value of it.
    Same,
    /// The same type, in another width or encoding at most: what Arrow's cast loses is out of range.
    Cast,
    /// Infinite floats are faults; NaN is null, or a fault where the source says so.
    Float,
    /// Integers that doubles may not hold exactly.
    IntegerToFloat,
    /// Text that is read as a field of a CSV file is.
    ThroughText,
    /// Numbers written out, then read as the declared type.
    Written,
    /// Floats by the shortest digits that mean them: 0.1 is 0.1 in both precisions.
    FloatToDecimal,
    /// Bytes that ought to be UTF-8, then as [`Coercion::ThroughText`].
    Bytes,
    /// Times with an offset, or in UTC.
    Instant(TimeUnit),
    /// Times, or days, of the column's own zone.
    Local(TimeUnit),
    Days,
    /// Integers in the unit that the column's format names.
    Epoch,
    /// Floats in the unit that the column's format names.
    EpochFloat,
    /// Bytes of a fixed width as hexadecimal digits.
    Hex,
    /// 16 bytes as the five groups of a UUID.
    Uuid,
    /// Lists and maps as JSON.
    Json,
    /// Values of several types, each read as its text is.
    Union,
    Nulls,
}

impl Coercion {
    /// The way from the type of a column of a file to that of the declared one; `None` if there is none.
    pub fn choose(from: &FileColumn, column: &ColumnPlan) -> Option<Self> {
        match (&from.data_type, column.kind) {
            (DataType::FixedSizeBinary(16), FieldType::Text) if from.is_uuid => Some(Self::Uuid),
            (data_type, _) => Self::of_type(data_type, column),
        }
    }

    fn of_type(from: &DataType, column: &ColumnPlan) -> Option<Self> {
        use DataType as D;
        use FieldType as F;
        let is_epoch = column.time.as_ref().is_some_and(TimeRule::is_epoch);

        Some(match (from, column.kind) {
            (D::Dictionary(_, value), _) => Self::of_type(value, column)?,
            (D::Null, _) => Self::Nulls,
            (D::Utf8 | D::LargeUtf8 | D::Utf8View, F::Text) => Self::Cast,
            (D::Utf8 | D::LargeUtf8 | D::Utf8View, _) => Self::ThroughText,
            (D::Binary | D::LargeBinary | D::BinaryView, _) => Self::Bytes,
            (D::FixedSizeBinary(_), F::Text) => Self::Hex,
            (D::Boolean, F::Bool) => Self::Cast,
            (D::Boolean, F::Text) => Self::Written,

            (integer, F::UInt64 | F::Int64) if integer.is_integer() => Self::Cast,
            (integer, F::Float64) if integer.is_integer() => Self::IntegerToFloat,
            (integer, F::Text | F::Decimal { .. }) if integer.is_integer() => Self::Written,
            (integer, F::Timestamp) if integer.is_integer() && is_epoch => Self::Epoch,
            (D::Float16 | D::Float32 | D::Float64, F::Float64) => Self::Float,
            (D::Float16 | D::Float32 | D::Float64, F::Decimal { .. }) => Self::FloatToDecimal,
            (D::Float16 | D::Float32 | D::Float64, F::Timestamp) if is_epoch => Self::EpochFloat,
            (decimal, kind) if decimal.is_decimal() => return Self::of_decimal(decimal, kind, is_epoch),

            (D::Timestamp(unit, Some(_)), F::Timestamp) => Self::Instant(*unit),
            (D::Timestamp(unit, None), F::Timestamp) => Self::Local(*unit),
            (D::Date32 | D::Date64, F::Date) => Self::Cast,
            (D::Date32 | D::Date64, F::Timestamp) => Self::Days,

            (D::Time32(_) | D::Time64(_), F::Text) => Self::Cast,
            (D::Duration(_), F::Int64 | F::UInt64 | F::Float64 | F::Decimal { .. } | F::Text) => {
                Self::of_type(&D::Int64, column)?
            }
            (D::List(_) | D::LargeList(_) | D::FixedSizeList(..) | D::Map(..), F::Text) => Self::Json,
            (D::Union(..), _) => Self::Union,
            _ => return None,
        })
    }

    /// The way of a decimal. One without a fraction may become an integer.
    fn of_decimal(from: &DataType, kind: FieldType, is_epoch: bool) -> Option<Self> {
        use DataType as D;
        use FieldType as F;
        let is_whole =
            matches!(from, D::Decimal32(_, 0) | D::Decimal64(_, 0) | D::Decimal128(_, 0) | D::Decimal256(_, 0));

        match (from, kind) {
            (D::Decimal128(digits, places), F::Decimal { precision, scale })
                if *places == scale.cast_signed() && *digits <= precision =>
            {
                Some(Self::Cast)
            }
            (_, F::Decimal { .. } | F::Text | F::Float64) => Some(Self::Written),
            (_, F::Int64 | F::UInt64) if is_whole => Some(Self::Written),
            (_, F::Timestamp) if is_epoch => Some(Self::Written),
            _ => None,
        }
    }

    /// The column in its declared type. Numbers that equal a null marker are null.
    pub fn apply(self, array: &ArrayRef, column: &ColumnPlan) -> Result<Coerced, ArrowError> {
        let array = &match array.data_type() {
            DataType::Duration(_) => cast(array, &DataType::Int64)?,
            _ => Arc::clone(array),
        };
        let coerced = self.typed(array, column)?;
        match self {
            Self::Cast | Self::Float | Self::FloatToDecimal | Self::IntegerToFloat | Self::Written
                if !column.null_numbers.is_empty() =>
            {
                numbers::without_markers(coerced, array, column)
            }
            _ => Ok(coerced),
        }
    }

    /// As [`Self::apply`] for a column of INT96: `values` are its values, `array` shows them in messages.
    pub fn apply_int96(
        self,
        array: &ArrayRef,
        values: &[Option<Int96>],
        column: &ColumnPlan,
    ) -> Result<Coerced, ArrowError> {
        match self {
            Self::Local(_) => times::int96_timestamps(array, values, column, true),
            Self::Instant(_) => times::int96_timestamps(array, values, column, false),
            _ => self.apply(array, column),
        }
    }

    fn typed(self, array: &ArrayRef, column: &ColumnPlan) -> Result<Coerced, ArrowError> {
        let target = column.kind.arrow();
        match self {
            Self::Same => Ok(Coerced::new(Arc::clone(array), Vec::new())),
            Self::Nulls => Ok(Coerced::new(new_null_array(&target, array.len()), Vec::new())),
            Self::Cast => {
                let result = cast(array, &target)?;
                let faults = lost(array, &result, |text| RejectReason::OutOfRange { kind: column.kind, text })?;
                Ok(Coerced::new(result, faults))
            }

            Self::Float => numbers::floats(array, column),
            Self::IntegerToFloat => numbers::integers_as_floats(array, column),
            Self::FloatToDecimal => numbers::floats_as_decimals(array, column),
            Self::Written => written(array, column),

            Self::ThroughText => {
                let text = cast(array, &DataType::Utf8)?;
                let text = text.as_string::<i32>();
                read_fields(column, text.len(), |row| text.is_valid(row).then(|| text.value(row).as_bytes()))
            }
            Self::Bytes => {
                let bytes = cast(array, &DataType::Binary)?;
                let bytes = bytes.as_binary::<i32>();
                read_fields(column, bytes.len(), |row| bytes.is_valid(row).then(|| bytes.value(row)))
            }
            Self::Hex => fixed_bytes(array, column, write_hex),
            Self::Uuid => fixed_bytes(array, column, write_uuid),
            Self::Json => Ok(Coerced::new(texts(array)?, Vec::new())),
            Self::Union => alternatives(array, column),

            Self::Instant(unit) => times::timestamps(array, column, unit, false),
            Self::Local(unit) => times::timestamps(array, column, unit, true),
            Self::Days => times::days(array, column),
            Self::Epoch => times::epochs(array, column),
            Self::EpochFloat => times::float_epochs(array, column),
        }
    }
}

/// Values of several types, each read as a field with its text is. NaN is null, or a fault where the source says so.
fn alternatives(array: &ArrayRef, column: &ColumnPlan) -> Result<Coerced, ArrowError> {
    let text = texts(array)?;
    let text = text.as_string::<i32>();
    let has_nans = matches!(column.kind, FieldType::Float64 | FieldType::Decimal { .. }) && !column.rejects_nan;
    let is_nan = |row: usize| has_nans && text.value(row) == "NaN";
    let nans = (0..text.len()).filter(|row| text.is_valid(*row) && is_nan(*row)).map(|row| row as u32).collect();
    let value = |row: usize| (text.is_valid(row) && !is_nan(row)).then(|| text.value(row).as_bytes());
    Ok(Coerced { nans, ..read_fields(column, text.len(), value)? })
}

/// Numbers and flags as Arrow writes them, read as the declared type.
fn written(array: &ArrayRef, column: &ColumnPlan) -> Result<Coerced, ArrowError> {
    let text = cast(array, &DataType::Utf8)?;
    let mut result = ColumnBuilder::new(column, text.len());
    let mut faults = Vec::new();
    for (row, text) in (0u32..).zip(text.as_string::<i32>()) {
        let Some(text) = text else {
            result.push_null();
            continue;
        };
        if let Err(reason) = result.push_written(text) {
            result.push_null();
            faults.push(Fault { row, reason });
        }
    }
    Coerced::of(result, faults)
}

/// Bytes of a fixed width as the text that `write` appends for each value.
fn fixed_bytes(array: &ArrayRef, column: &ColumnPlan, write: fn(&[u8], &mut String)) -> Result<Coerced, ArrowError> {
    let bytes = match array.data_type() {
        // A dictionary: its values.
        DataType::Dictionary(_, value) => cast(array, value)?,
        _ => Arc::clone(array),
    };
    let bytes = bytes.as_fixed_size_binary();
    let mut result = ColumnBuilder::new(column, bytes.len());
    let mut text = String::new();
    let mut faults = Vec::new();

    for row in 0..bytes.len() {
        if bytes.is_null(row) {
            result.push_null();
            continue;
        }
        text.clear();
        write(bytes.value(row), &mut text);
        if let Err(reason) = result.value(text.as_bytes()) {
            result.push_null();
            faults.push(Fault { row: row as u32, reason });
        }
    }
    Coerced::of(result, faults)
}

fn write_hex(bytes: &[u8], text: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in bytes {
        text.extend([byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)])));
    }
}

fn write_uuid(bytes: &[u8], text: &mut String) {
    for (index, part) in [0..4, 4..6, 6..8, 8..10, 10..16].into_iter().enumerate() {
        text.push_str(if index == 0 { "" } else { "-" });
        write_hex(bytes.get(part).unwrap_or_default(), text);
    }
}

/// Reads each value as a field of a CSV file is read; `field` gives that of a row, `None` for a null.
fn read_fields<'a>(
    column: &ColumnPlan,
    rows: usize,
    field: impl Fn(usize) -> Option<&'a [u8]>,
) -> Result<Coerced, ArrowError> {
    let mut result = ColumnBuilder::new(column, rows);
    let mut faults = Vec::new();
    let is_text = column.kind == FieldType::Text;

    for row in 0..rows {
        let Some(bytes) = field(row) else {
            result.push_null();
            continue;
        };
        let pushed = if is_text && std::str::from_utf8(bytes).is_err() {
            Err(RejectReason::InvalidUtf8)
        } else {
            // Parquet has nulls of its own: a text that looks like a marker is a text.
            result.push(bytes, is_text)
        };
        if let Err(reason) = pushed {
            result.push_null();
            faults.push(Fault { row: row as u32, reason });
        }
    }
    Coerced::of(result, faults)
}
