//! The types of a file into the declared ones, where nothing is lost. A value that does not fit rejects its row.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, new_null_array};
use arrow::compute::{CastOptions, cast_with_options, nullif};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType, UInt64Type,
};
use arrow::error::ArrowError;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use parquet::data_type::Int96;
use tidetable_layout::FieldType;
use tidetable_layout::time::DAY;

use crate::columnar::columns::FileColumn;
use crate::columnar::int96;
use crate::number::Exact;
use crate::reject::RejectReason;
use crate::time::{Clock, Remarks, Stamp, TimeFault, TimeRule, Unit};
use crate::value::ColumnBuilder;
use crate::value::ColumnPlan;

/// A value that does not fit.
pub(super) struct Fault {
    pub row: u32,
    pub reason: RejectReason,
}

/// A column in its declared type.
pub(super) struct Coerced {
    pub array: ArrayRef,
    /// The rows that do not fit, whose values are arbitrary.
    pub faults: Vec<Fault>,
    pub remarks: Remarks,
    /// The rows with NaN, which are null.
    pub nans: Vec<u32>,
}

impl Coerced {
    fn new(array: ArrayRef, faults: Vec<Fault>) -> Self {
        Self { array, faults, remarks: Remarks::default(), nans: Vec::new() }
    }

    fn of(mut column: ColumnBuilder<'_>, faults: Vec<Fault>) -> Result<Self, ArrowError> {
        let remarks = column.remarks();
        Ok(Self { remarks, ..Self::new(column.finish()?, faults) })
    }
}

/// The way from a file's type to a declared one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coercion {
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
    /// Floats in that unit.
    EpochFloat,
    /// Bytes of a fixed width as hexadecimal digits.
    Hex,
    /// 16 bytes as a UUID.
    Uuid,
    Nulls,
}

impl Coercion {
    /// `None` if there is no way.
    pub fn choose(from: &FileColumn, column: &ColumnPlan) -> Option<Self> {
        match (&from.data_type, column.kind) {
            (DataType::FixedSizeBinary(16), FieldType::Text) if from.is_uuid => Some(Self::Uuid),
            (data_type, _) => Self::of_type(data_type, column),
        }
    }

    fn of_type(from: &DataType, column: &ColumnPlan) -> Option<Self> {
        use DataType as D;
        use FieldType as F;
        let epoch = column.time.as_ref().is_some_and(TimeRule::is_epoch);
        Some(match (from, column.kind) {
            (D::Dictionary(_, value), _) => Self::of_type(value, column)?,
            (D::Null, _) => Self::Nulls,
            (D::Utf8 | D::LargeUtf8 | D::Utf8View, F::Text) => Self::Cast,
            (D::Utf8 | D::LargeUtf8 | D::Utf8View, _) => Self::ThroughText,
            (D::Binary | D::LargeBinary | D::BinaryView, _) => Self::Bytes,
            (integer, F::UInt64 | F::Int64) if integer.is_integer() => Self::Cast,
            (integer, F::Float64) if integer.is_integer() => Self::IntegerToFloat,
            (integer, F::Text | F::Decimal { .. }) if integer.is_integer() => Self::Written,
            (integer, F::Timestamp) if integer.is_integer() && epoch => Self::Epoch,
            (D::Float16 | D::Float32 | D::Float64, F::Float64) => Self::Float,
            (D::Float16 | D::Float32 | D::Float64, F::Decimal { .. }) => Self::FloatToDecimal,
            (D::Float16 | D::Float32 | D::Float64, F::Timestamp) if epoch => Self::EpochFloat,
            (D::Decimal32(..) | D::Decimal64(..) | D::Decimal128(..) | D::Decimal256(..), F::Timestamp) if epoch => {
                Self::Written
            }
            (D::FixedSizeBinary(_), F::Text) => Self::Hex,
            (D::Decimal128(has, same), F::Decimal { precision, scale })
                if *same == scale.cast_signed() && *has <= precision =>
            {
                Self::Cast
            }
            (
                D::Decimal32(..) | D::Decimal64(..) | D::Decimal128(..) | D::Decimal256(..),
                F::Decimal { .. } | F::Text | F::Float64,
            ) => Self::Written,
            (
                D::Decimal32(_, 0) | D::Decimal64(_, 0) | D::Decimal128(_, 0) | D::Decimal256(_, 0),
                F::Int64 | F::UInt64,
            ) => Self::Written,
            (D::Boolean, F::Bool) => Self::Cast,
            (D::Boolean, F::Text) => Self::Written,
            (D::Timestamp(unit, Some(_)), F::Timestamp) => Self::Instant(*unit),
            (D::Timestamp(unit, None), F::Timestamp) => Self::Local(*unit),
            (D::Date32 | D::Date64, F::Date) => Self::Cast,
            (D::Date32 | D::Date64, F::Timestamp) => Self::Days,
            _ => return None,
        })
    }

    /// The column in its declared type. Numbers that equal a null marker are null.
    pub fn apply(self, array: &ArrayRef, column: &ColumnPlan) -> Result<Coerced, ArrowError> {
        let coerced = self.typed(array, column)?;
        match self {
            Self::Cast | Self::Float | Self::FloatToDecimal | Self::IntegerToFloat | Self::Written
                if !column.null_numbers.is_empty() =>
            {
                without_markers(coerced, array, column)
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
        let is_local = match self {
            Self::Local(_) => true,
            Self::Instant(_) => false,
            _ => return self.apply(array, column),
        };
        settle(array, column, |row, clock| {
            let value = values.get(row).and_then(Option::as_ref).ok_or(TimeFault::Range)?;
            let stamp = int96::stamp(value)?;
            match &column.time {
                Some(rule) if is_local => Ok(Stamp { cut: stamp.cut, ..rule.local(stamp.micros, clock)? }),
                _ => stamp.within(),
            }
        })
    }

    fn typed(self, array: &ArrayRef, column: &ColumnPlan) -> Result<Coerced, ArrowError> {
        let target = column.kind.arrow();
        match self {
            Self::Nulls => Ok(Coerced::new(new_null_array(&target, array.len()), Vec::new())),
            Self::Cast => {
                let result = cast(array, &target)?;
                let faults = lost(array, &result, |text| RejectReason::OutOfRange { kind: column.kind, text })?;
                Ok(Coerced::new(result, faults))
            }
            Self::Float => {
                let result = cast(array, &target)?;
                let values = result.as_primitive::<Float64Type>();
                if values.values().iter().all(|value| value.is_finite()) {
                    return Ok(Coerced::new(result, Vec::new()));
                }
                let faults = faulty(values.len(), |row| {
                    let value = values.value(row);
                    let is_wrong =
                        values.is_valid(row) && (value.is_infinite() || value.is_nan() && column.rejects_nan);
                    is_wrong.then(|| RejectReason::NotFinite { text: value.to_string() })
                });
                if column.rejects_nan {
                    return Ok(Coerced::new(result, faults));
                }
                let is_nan: BooleanArray =
                    (0..values.len()).map(|row| Some(values.is_valid(row) && values.value(row).is_nan())).collect();
                let nans = (0u32..).zip(is_nan.values()).filter(|(_, is_nan)| *is_nan).map(|(row, _)| row).collect();
                Ok(Coerced { nans, ..Coerced::new(nullif(&result, &is_nan)?, faults) })
            }
            Self::IntegerToFloat => {
                let result = cast(array, &target)?;
                let wide =
                    if matches!(array.data_type(), DataType::UInt64) { DataType::UInt64 } else { DataType::Int64 };
                let back = cast(&result, &wide)?;
                let original = cast(array, &wide)?;
                let same = |row| match wide {
                    DataType::UInt64 => {
                        original.as_primitive::<UInt64Type>().value(row) == back.as_primitive::<UInt64Type>().value(row)
                    }
                    _ => original.as_primitive::<Int64Type>().value(row) == back.as_primitive::<Int64Type>().value(row),
                };
                let text = formatter(array)?;
                let faults = faulty(array.len(), |row| {
                    (original.is_valid(row) && (back.is_null(row) || !same(row)))
                        .then(|| RejectReason::OutOfRange { kind: column.kind, text: text.value(row).to_string() })
                });
                Ok(Coerced::new(result, faults))
            }
            Self::ThroughText => {
                let text = if matches!(array.data_type(), DataType::Utf8) {
                    Arc::clone(array)
                } else {
                    cast(array, &DataType::Utf8)?
                };
                let text = text.as_string::<i32>();
                read_fields(column, text.len(), |row| text.is_valid(row).then(|| text.value(row).as_bytes()))
            }
            Self::Written => {
                let text = cast(array, &DataType::Utf8)?;
                let text = text.as_string::<i32>();
                let mut result = ColumnBuilder::new(column, text.len());
                let mut faults = Vec::new();
                for row in 0..text.len() {
                    if text.is_null(row) {
                        result.push_null();
                    } else if let Err(reason) = result.push_written(text.value(row)) {
                        result.push_null();
                        faults.push(Fault { row: row as u32, reason });
                    }
                }
                Coerced::of(result, faults)
            }
            Self::FloatToDecimal => {
                let is_single = !matches!(array.data_type(), DataType::Float64);
                let doubles = cast(array, &DataType::Float64)?;
                let doubles = doubles.as_primitive::<Float64Type>();
                let mut result = ColumnBuilder::new(column, doubles.len());
                let (mut faults, mut nans) = (Vec::new(), Vec::new());
                for (row, value) in (0u32..).zip(doubles) {
                    let Some(value) = value.filter(|value| !value.is_nan() || column.rejects_nan) else {
                        nans.extend(value.map(|_| row));
                        result.push_null();
                        continue;
                    };
                    // Written without an exponent.
                    let text = if is_single { (value as f32).to_string() } else { value.to_string() };
                    let pushed = if value.is_finite() {
                        result.push_written(&text)
                    } else {
                        Err(RejectReason::NotFinite { text })
                    };
                    if let Err(reason) = pushed {
                        result.push_null();
                        faults.push(Fault { row, reason });
                    }
                }
                Ok(Coerced { nans, ..Coerced::of(result, faults)? })
            }
            Self::Bytes => {
                let bytes = cast(array, &DataType::Binary)?;
                let bytes = bytes.as_binary::<i32>();
                read_fields(column, bytes.len(), |row| bytes.is_valid(row).then(|| bytes.value(row)))
            }
            Self::Instant(unit) => times(array, column, unit, true),
            Self::Local(unit) => times(array, column, unit, false),
            Self::Days => {
                let days = cast(array, &DataType::Date32)?;
                let days = days.as_primitive::<Date32Type>();
                settle(array, column, |row, clock| {
                    let local = i64::from(days.value(row)) * DAY;
                    column.time.as_ref().map_or(Stamp::at(local).within(), |rule| rule.local(local, clock))
                })
            }
            Self::Epoch => {
                let counts = cast(array, &DataType::Int64)?;
                let counts = counts.as_primitive::<Int64Type>();
                settle(array, column, |row, clock| {
                    let rule = column.time.as_ref().filter(|_| counts.is_valid(row));
                    rule.and_then(|rule| rule.epoch(counts.value(row), clock)).unwrap_or(Err(TimeFault::Form))
                })
            }
            Self::EpochFloat => {
                let counts = cast(array, &DataType::Float64)?;
                let counts = counts.as_primitive::<Float64Type>();
                let is_nan: BooleanArray =
                    (0..counts.len()).map(|row| Some(counts.is_valid(row) && counts.value(row).is_nan())).collect();
                let array = if column.rejects_nan { Arc::clone(array) } else { nullif(array, &is_nan)? };
                settle(&array, column, |row, clock| {
                    let rule = column.time.as_ref();
                    rule.and_then(|rule| rule.epoch_float(counts.value(row), clock)).unwrap_or(Err(TimeFault::Form))
                })
            }
            Self::Hex => fixed_bytes(array, column, write_hex),
            Self::Uuid => fixed_bytes(array, column, |bytes, text| {
                for (index, part) in [0..4, 4..6, 6..8, 8..10, 10..16].into_iter().enumerate() {
                    text.push_str(if index == 0 { "" } else { "-" });
                    write_hex(bytes.get(part).unwrap_or_default(), text);
                }
            }),
        }
    }
}

/// Nulls the numbers that equal a null marker, also those that do not fit the declared type.
fn without_markers(coerced: Coerced, array: &ArrayRef, column: &ColumnPlan) -> Result<Coerced, ArrowError> {
    let is_marker = |number: Option<Exact>| number.is_some_and(|number| column.null_numbers.contains(&number));
    let text = formatter(array)?;
    let typed = coerced.array.as_ref();
    let rows = 0..typed.len();
    let mut nulls: Vec<bool> = match column.kind {
        FieldType::Int64 => {
            let values = typed.as_primitive::<Int64Type>();
            rows.map(|row| is_marker(Some(Exact::of_scaled(i128::from(values.value(row)), 0)))).collect()
        }
        FieldType::UInt64 => {
            let values = typed.as_primitive::<UInt64Type>();
            rows.map(|row| is_marker(Some(Exact::of_scaled(i128::from(values.value(row)), 0)))).collect()
        }
        FieldType::Decimal { scale, .. } => {
            let values = typed.as_primitive::<Decimal128Type>();
            rows.map(|row| is_marker(Some(Exact::of_scaled(values.value(row), scale)))).collect()
        }
        FieldType::Float64 => {
            // In the width of the file: a marker of -9999.9 is another double than the float -9999.9.
            let is_single = matches!(array.data_type(), DataType::Float32);
            let markers: Vec<f64> = column.null_doubles(is_single);
            let values = typed.as_primitive::<Float64Type>();
            rows.map(|row| markers.contains(&values.value(row))).collect()
        }
        _ => return Ok(coerced),
    };
    let (marked, faults): (Vec<Fault>, Vec<Fault>) = coerced.faults.into_iter().partition(|fault| {
        let written = text.value(fault.row as usize).to_string();
        is_marker(Exact::parse(written.as_bytes(), b'.'))
    });
    for fault in marked {
        if let Some(slot) = nulls.get_mut(fault.row as usize) {
            *slot = true;
        }
    }
    Ok(Coerced { array: nullif(typed, &BooleanArray::from(nulls))?, faults, ..coerced })
}

/// Text of bytes of a fixed width.
fn fixed_bytes(
    array: &ArrayRef,
    column: &ColumnPlan,
    write: impl Fn(&[u8], &mut String),
) -> Result<Coerced, ArrowError> {
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

fn cast(array: &ArrayRef, target: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == target {
        return Ok(Arc::clone(array));
    }
    cast_with_options(array, target, &CastOptions { safe: true, format_options: FormatOptions::new() })
}

fn formatter(array: &ArrayRef) -> Result<ArrayFormatter<'_>, ArrowError> {
    const OPTIONS: FormatOptions<'static> = FormatOptions::new();
    ArrayFormatter::try_new(array.as_ref(), &OPTIONS)
}

fn faulty(rows: usize, check: impl Fn(usize) -> Option<RejectReason>) -> Vec<Fault> {
    (0..rows).filter_map(|row| check(row).map(|reason| Fault { row: row as u32, reason })).collect()
}

/// Rows that have a value in `from` and none in `to`.
fn lost(from: &ArrayRef, to: &ArrayRef, reason: impl Fn(String) -> RejectReason) -> Result<Vec<Fault>, ArrowError> {
    if from.logical_null_count() == to.null_count() {
        return Ok(Vec::new());
    }
    let nulls = from.logical_nulls();
    let text = formatter(from)?;
    Ok(faulty(from.len(), |row| {
        let had = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        (had && to.is_null(row)).then(|| reason(text.value(row).to_string()))
    }))
}

/// Reads each value as a field of a CSV file is read.
fn read_fields<'a>(
    column: &ColumnPlan,
    rows: usize,
    field: impl Fn(usize) -> Option<&'a [u8]>,
) -> Result<Coerced, ArrowError> {
    let mut result = ColumnBuilder::new(column, rows);
    let mut faults = Vec::new();
    let is_text = column.kind == FieldType::Text;
    for row in 0..rows {
        let outcome = match field(row) {
            None => {
                result.push_null();
                continue;
            }
            Some(bytes) if is_text && std::str::from_utf8(bytes).is_err() => Err(RejectReason::InvalidUtf8),
            // Parquet has nulls of its own: a text that looks like a marker is a text.
            Some(bytes) => result.push(bytes, is_text),
        };
        if let Err(reason) = outcome {
            result.push_null();
            faults.push(Fault { row: row as u32, reason });
        }
    }
    Coerced::of(result, faults)
}

fn times(array: &ArrayRef, column: &ColumnPlan, unit: TimeUnit, instant: bool) -> Result<Coerced, ArrowError> {
    let counts = match array.data_type() {
        DataType::Timestamp(..) => cast(array, &DataType::Int64)?,
        // A dictionary of times: its values first.
        _ => cast(&cast(array, &DataType::Timestamp(unit, None))?, &DataType::Int64)?,
    };
    let counts = counts.as_primitive::<Int64Type>();
    settle(array, column, |row, clock| {
        let count = counts.value(row);
        let unit = match unit {
            TimeUnit::Second => Unit::Seconds,
            TimeUnit::Millisecond => Unit::Millis,
            TimeUnit::Microsecond => Unit::Micros,
            TimeUnit::Nanosecond => Unit::Nanos,
        };
        let stamp = unit.stamp(count).ok_or(TimeFault::Range)?;
        match &column.time {
            Some(rule) if !instant => Ok(Stamp { cut: stamp.cut, ..rule.local(stamp.micros, clock)? }),
            _ => stamp.within(),
        }
    })
}

/// A column of microseconds, one call for each row that is not null.
fn settle(
    array: &ArrayRef,
    column: &ColumnPlan,
    stamp: impl Fn(usize, &mut Clock) -> Result<Stamp, TimeFault>,
) -> Result<Coerced, ArrowError> {
    let nulls = array.logical_nulls();
    let mut clock = Clock::default();
    let (mut faults, mut remarks) = (Vec::new(), Remarks::default());
    let mut values = Vec::with_capacity(array.len());
    for row in 0..array.len() {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            values.push(0);
            continue;
        }
        values.push(match stamp(row, &mut clock) {
            Ok(stamp) => {
                remarks.add(row, stamp);
                stamp.micros
            }
            Err(fault) => {
                let text = formatter(array)?.value(row).to_string();
                faults.push(Fault { row: row as u32, reason: column.time_reason(fault, text.as_bytes()) });
                0
            }
        });
    }
    let array = arrow::array::PrimitiveArray::<TimestampMicrosecondType>::try_new(values.into(), nulls)?;
    Ok(Coerced { remarks, ..Coerced::new(Arc::new(array.with_timezone("UTC")), faults) })
}
