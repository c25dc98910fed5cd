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
use tidetable_layout::{FieldType, Group, ValueType};

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
/// The precision of decimal sums, in digits: the most that 128 bits hold.
const DIGITS: u8 = 38;

/// Computes the row sums of each column that has them. `columns` has the values and, of floats that are decimals, the number of
/// decimals.
pub(crate) fn of_group<'a>(
    group: &Group,
    records: &Records<'_>,
    columns: impl Iterator<Item = (&'a ArrayRef, Option<u8>)>,
) -> Vec<Option<ArrayRef>> {
    let are_worth_it = records.len() >= MIN_VALUES * records.ends.len();
    let mut sums = Vec::with_capacity(group.columns.len());
    for ((array, decimals), column) in columns.zip(&group.columns) {
        let is_summed = are_worth_it && array.null_count() == 0 && column.merge.is_newest();
        sums.push(if is_summed { of_rows(array, column.value, &records.ends, decimals) } else { None });
    }
    sums
}

/// Appends the section of sums: for each column whether it has any, and a stream of them.
///
/// # Errors
/// If an encoder fails.
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

/// Reads the entries that [`put`] appended for each column of group `index`; empty if the section is absent.
///
/// # Errors
/// If the bytes are damaged.
pub(crate) fn read_entries(
    input: &mut Input,
    index: usize,
    group: &Group,
    rows: usize,
    next: &mut u64,
) -> Result<Vec<Option<Stream>>, ReadError> {
    if input.left() == 0 {
        return Ok(Vec::new());
    }

    let mut streams = Vec::with_capacity(group.columns.len());
    for (column_index, column) in group.columns.iter().enumerate() {
        streams.push(match input.u8()? {
            0 => None,
            1 if is_summed(column.value) => {
                let part = FilePart::Sums { group: index, column: column_index };
                Some(Stream::read(input, part, rows, next)?)
            }
            _ => return Err(input.corrupt()),
        });
    }
    Ok(streams)
}

/// Reads the sums of the rows `rows` of a column of type `kind`. Decimal sums have the column's scale and the greatest precision.
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

/// Whether each sum of up to `most` integers of a range fits in 64 bits. Files of old builds can have wrapped sums; then the values are
/// read instead.
pub(crate) fn fit(range: (Scalar, Scalar), most: usize) -> bool {
    let most = most as i128;
    match range {
        (Scalar::Int64(least), Scalar::Int64(greatest)) => {
            [least, greatest].iter().all(|end| i64::try_from(i128::from(*end) * most).is_ok())
        }
        (_, Scalar::UInt64(greatest)) => u64::try_from(i128::from(greatest) * most).is_ok(),
        _ => false,
    }
}

/// The sum of each row of a column of type `kind` without nulls, whose rows end at `ends`. Floats with a known number of `decimals` are
/// summed exactly. `None` if the type has no sums or a sum exceeds 64 bits.
pub(crate) fn of_rows(values: &ArrayRef, kind: ValueType, ends: &[u32], decimals: Option<u8>) -> Option<ArrayRef> {
    match kind {
        ValueType::Field(FieldType::Float64) => {
            let values = values.as_primitive_opt::<Float64Type>()?.values();
            let sums = rows(ends).map(|row| float_decimals::sum(values.get(row).unwrap_or_default(), decimals));
            Some(Arc::new(Float64Array::from_iter_values(sums)))
        }

        ValueType::Field(FieldType::UInt64) => {
            let values = values.as_primitive_opt::<UInt64Type>()?.values();
            let sums = rows(ends).map(|row| {
                let mut row = values.get(row).unwrap_or_default().iter();
                row.try_fold(0u64, |sum, value| sum.checked_add(*value))
            });
            let sums: UInt64Array = sums.collect::<Option<Vec<_>>>()?.into();
            Some(Arc::new(sums))
        }

        ValueType::Field(FieldType::Int64) => {
            let values = values.as_primitive_opt::<Int64Type>()?.values();
            let sums = rows(ends).map(|row| {
                let row = values.get(row).unwrap_or_default().iter();
                i64::try_from(row.map(|value| i128::from(*value)).sum::<i128>()).ok()
            });
            let sums: Int64Array = sums.collect::<Option<Vec<_>>>()?.into();
            Some(Arc::new(sums))
        }

        ValueType::Field(FieldType::Decimal { scale, .. }) => {
            let values = values.as_primitive_opt::<Decimal128Type>()?.values();
            let sums = rows(ends).map(|row| {
                let mut row = values.get(row).unwrap_or_default().iter();
                let sum = row.try_fold(0i128, |sum, value| sum.checked_add(*value))?;
                i64::try_from(sum).ok().map(i128::from)
            });
            let sums: Decimal128Array = sums.collect::<Option<Vec<_>>>()?.into();
            Some(Arc::new(sums.with_precision_and_scale(DIGITS, scale.cast_signed()).ok()?))
        }
        _ => None,
    }
}

/// Whether two arrays of sums are equal bit for bit. All NaNs are equal: their bits depend on the machine.
pub(crate) fn are_equal(left: &ArrayRef, right: &ArrayRef) -> bool {
    match (left.as_primitive_opt::<Float64Type>(), right.as_primitive_opt::<Float64Type>()) {
        (Some(left), Some(right)) => {
            let mut pairs = left.values().iter().zip(right.values());
            left.len() == right.len()
                && pairs.all(|(left, right)| left.to_bits() == right.to_bits() || left.is_nan() && right.is_nan())
        }
        _ => left == right,
    }
}

/// The records of each row, as ranges. Ends that descend, in damaged files, give empty rows.
fn rows(ends: &[u32]) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    ends.iter().map(move |end| {
        let row = start..(*end as usize).max(start);
        start = row.end;
        row
    })
}
