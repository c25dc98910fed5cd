//! Sums by row: the sum of a column's values in each row, stored beside the values.
//!
//! A meter's day is 96 values and one sum. Totals by day or by meter read only the sums, a few percent of the bytes. Sums
//! are stored for columns without nulls in groups with several values per row.
//!
//! ```text
//! sums    for each column: stored u8 | if 1, a stream with a value for each row
//! ```
//! Floats that are decimals are summed as decimals and rounded once. Integers and decimals have no sums if one does not fit
//! in 64 bits.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int64Array, PrimitiveArray, UInt64Array};
use arrow::datatypes::{ArrowPrimitiveType, Decimal128Type, Float64Type, Int64Type, UInt64Type};
use tidetable_layout::{Column, FieldType, Group, ValueType};

use crate::codec::float_decimals;
use crate::coding::Input;
use crate::column;
use crate::column::Target;
use crate::column::stream::{PageSource, Stream};
use crate::error::{FilePart, ReadError, WriteError};
use crate::keys::row_patterns::Records;
use crate::stats::Scalar;

/// Minimum average number of values per row that pays for sums.
const MIN_VALUES: usize = 8;
/// The precision of decimal sums.
const DIGITS: u8 = 38;

/// Computes the sums of `columns`, given the number of decimals of float columns if known.
pub(crate) fn of_group<'a>(
    group: &Group,
    records: &Records<'_>,
    columns: impl Iterator<Item = (&'a ArrayRef, Option<u8>)>,
) -> Vec<Option<ArrayRef>> {
    let worth = records.len() >= MIN_VALUES * records.ends.len();
    let of_column = |((array, decimals), column): ((&ArrayRef, Option<u8>), &Column)| {
        let told = worth && array.null_count() == 0 && column.merge.is_newest();
        told.then(|| of_rows(array, column.value, &records.ends, decimals)).flatten()
    };
    columns.zip(&group.columns).map(of_column).collect()
}

/// Appends the sums of each column.
pub(crate) fn put(target: &mut Target<'_>, sums: Vec<Option<ArrayRef>>) -> Result<(), WriteError> {
    for sums in sums {
        target.head.push(u8::from(sums.is_some()));
        let Some(sums) = sums else { continue };
        if let Some(floats) = sums.as_primitive_opt::<Float64Type>() {
            column::put_gapless(target, floats.values())?;
        } else if let Some(integers) = sums.as_primitive_opt::<UInt64Type>() {
            column::put_gapless(target, integers.values())?;
        } else if let Some(integers) = sums.as_primitive_opt::<Int64Type>() {
            column::put_gapless(target, integers.values())?;
        } else if let Some(decimals) = sums.as_primitive_opt::<Decimal128Type>() {
            // In range: see `of_rows`.
            let narrow: Vec<i64> = decimals.values().iter().map(|sum| *sum as i64).collect();
            column::put_gapless(target, &narrow)?;
        }
    }
    Ok(())
}

/// Reads the entries of [`put`]: one per column of `group`, or none.
pub(crate) fn read_entries(
    input: &mut Input,
    (index, group): (usize, &Group),
    rows: usize,
    next: &mut u64,
) -> Result<Vec<Option<Stream>>, ReadError> {
    if input.left() == 0 {
        return Ok(Vec::new());
    }
    let entry = |(at, column): (usize, &Column)| match input.u8()? {
        0 => Ok(None),
        1 if is_summed(column.value) => {
            Stream::read(input, FilePart::Sums { group: index, column: at }, rows, next).map(Some)
        }
        _ => Err(input.corrupt()),
    };
    group.columns.iter().enumerate().map(entry).collect()
}

/// The sums of the rows `rows`.
pub(crate) fn read(
    source: &PageSource<'_>,
    stream: &Stream,
    kind: ValueType,
    rows: Range<usize>,
) -> Result<ArrayRef, ReadError> {
    Ok(match kind {
        ValueType::Field(FieldType::Float64) => array::<Float64Type>(column::read_gapless(source, stream, rows)?),
        ValueType::Field(FieldType::UInt64) => array::<UInt64Type>(column::read_gapless(source, stream, rows)?),
        ValueType::Field(FieldType::Int64) => array::<Int64Type>(column::read_gapless(source, stream, rows)?),
        ValueType::Field(FieldType::Decimal { scale, .. }) => {
            let narrow = column::read_gapless::<i64>(source, stream, rows)?;
            let wide: Decimal128Array = narrow.into_iter().map(i128::from).collect::<Vec<_>>().into();
            let sums = wide.with_precision_and_scale(DIGITS, scale.cast_signed());
            Arc::new(sums.map_err(|_| stream.setup.corrupt())?)
        }
        _ => return Err(stream.setup.corrupt()),
    })
}

fn array<T: ArrowPrimitiveType>(values: Vec<T::Native>) -> ArrayRef {
    Arc::new(PrimitiveArray::<T>::new(values.into(), None))
}

fn is_summed(kind: ValueType) -> bool {
    use FieldType::{Decimal, Float64, Int64, UInt64};
    matches!(kind, ValueType::Field(Float64 | Int64 | UInt64 | Decimal { .. }))
}

/// Whether sums of up to `most` integers of a range fit in 64 bits. Old files can have wrapped sums; then the values are read
/// instead.
pub(crate) fn fit(range: (Scalar, Scalar), most: usize) -> bool {
    let most = most as i128;
    match range {
        (Scalar::Int64(least), Scalar::Int64(greatest)) => {
            let fits = |end: i64| i64::try_from(i128::from(end) * most).is_ok();
            fits(least) && fits(greatest)
        }
        (_, Scalar::UInt64(greatest)) => u64::try_from(i128::from(greatest) * most).is_ok(),
        _ => false,
    }
}

/// The sum of each row; `None` if the type has no sums or a sum overflows.
pub(crate) fn of_rows(values: &ArrayRef, kind: ValueType, ends: &[u32], decimals: Option<u8>) -> Option<ArrayRef> {
    match kind {
        ValueType::Field(FieldType::Float64) => {
            let values = values.as_primitive_opt::<Float64Type>()?.values();
            let sum = |row: Range<usize>| float_decimals::sum(values.get(row).unwrap_or_default(), decimals);
            Some(Arc::new(Float64Array::from_iter_values(rows(ends).map(sum))))
        }
        ValueType::Field(FieldType::UInt64) => {
            let values = values.as_primitive_opt::<UInt64Type>()?.values();
            let sum = |row| {
                let mut values = values.get::<Range<usize>>(row).unwrap_or_default().iter();
                values.try_fold(0u64, |sum, value| sum.checked_add(*value))
            };
            let sums: UInt64Array = rows(ends).map(sum).collect::<Option<Vec<_>>>()?.into();
            Some(Arc::new(sums))
        }
        ValueType::Field(FieldType::Int64) => {
            let values = values.as_primitive_opt::<Int64Type>()?.values();
            let sum = |row| {
                let values = values.get::<Range<usize>>(row).unwrap_or_default().iter();
                i64::try_from(values.map(|value| i128::from(*value)).sum::<i128>()).ok()
            };
            let sums: Int64Array = rows(ends).map(sum).collect::<Option<Vec<_>>>()?.into();
            Some(Arc::new(sums))
        }
        ValueType::Field(FieldType::Decimal { scale, .. }) => {
            let values = values.as_primitive_opt::<Decimal128Type>()?.values();
            let sum = |row| {
                let mut values = values.get::<Range<usize>>(row).unwrap_or_default().iter();
                let sum = values.try_fold(0i128, |sum, value| sum.checked_add(*value))?;
                i64::try_from(sum).ok().map(i128::from)
            };
            let sums: Decimal128Array = rows(ends).map(sum).collect::<Option<Vec<_>>>()?.into();
            Some(Arc::new(sums.with_precision_and_scale(DIGITS, scale.cast_signed()).ok()?))
        }
        _ => None,
    }
}

/// Whether two arrays of sums are equal. All NaNs are equal: their bits depend on the machine.
pub(crate) fn alike(left: &ArrayRef, right: &ArrayRef) -> bool {
    match (left.as_primitive_opt::<Float64Type>(), right.as_primitive_opt::<Float64Type>()) {
        (Some(left), Some(right)) => {
            let same =
                |(left, right): (&f64, &f64)| left.to_bits() == right.to_bits() || left.is_nan() && right.is_nan();
            left.len() == right.len() && left.values().iter().zip(right.values()).all(same)
        }
        _ => left == right,
    }
}

/// The records of each row.
fn rows(ends: &[u32]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    ends.iter().map(move |end| {
        let row = start..(*end as usize).max(start);
        start = row.end;
        row
    })
}
