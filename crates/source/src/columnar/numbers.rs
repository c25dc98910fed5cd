//! Numbers of a file into declared floats and decimals, and numbers that stand for null.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::nullif;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type, Int64Type, UInt64Type};
use arrow::error::ArrowError;
use tidetable_layout::FieldType;

use crate::columnar::coerced::{Coerced, Fault, cast, faulty, formatter};
use crate::number::Exact;
use crate::reject::RejectReason;
use crate::value::{ColumnBuilder, ColumnPlan};

/// Floats as doubles. Infinite ones are faults; NaN is null, or a fault where the source says so.
pub(super) fn floats(array: &ArrayRef, column: &ColumnPlan) -> Result<Coerced, ArrowError> {
    let result = cast(array, &DataType::Float64)?;
    let values = result.as_primitive::<Float64Type>();
    if values.values().iter().all(|value| value.is_finite()) {
        return Ok(Coerced::new(result, Vec::new()));
    }

    let faults = faulty(values.len(), |row| {
        let value = values.value(row);
        let is_wrong = values.is_valid(row) && (value.is_infinite() || value.is_nan() && column.rejects_nan);
        is_wrong.then(|| RejectReason::NotFinite { text: value.to_string() })
    });
    if column.rejects_nan {
        return Ok(Coerced::new(result, faults));
    }

    let is_nan = nans_of(&result);
    let nans = (0u32..).zip(is_nan.values()).filter(|(_, is_nan)| *is_nan).map(|(row, _)| row).collect();
    Ok(Coerced { nans, ..Coerced::new(nullif(&result, &is_nan)?, faults) })
}

/// Which values of an array of doubles are NaN; a null is not.
pub(super) fn nans_of(doubles: &ArrayRef) -> BooleanArray {
    let values = doubles.as_primitive::<Float64Type>();
    (0..values.len()).map(|row| Some(values.is_valid(row) && values.value(row).is_nan())).collect()
}

/// Integers as doubles. One that a double does not hold exactly is a fault: it is found by casting back.
pub(super) fn integers_as_floats(array: &ArrayRef, column: &ColumnPlan) -> Result<Coerced, ArrowError> {
    let result = cast(array, &DataType::Float64)?;
    let is_unsigned = matches!(array.data_type(), DataType::UInt64);
    let integer = if is_unsigned { DataType::UInt64 } else { DataType::Int64 };
    let original = cast(array, &integer)?;
    let back = cast(&result, &integer)?;

    let text = formatter(array)?;
    let faults = faulty(array.len(), |row| {
        let is_same = if is_unsigned {
            original.as_primitive::<UInt64Type>().value(row) == back.as_primitive::<UInt64Type>().value(row)
        } else {
            original.as_primitive::<Int64Type>().value(row) == back.as_primitive::<Int64Type>().value(row)
        };
        (original.is_valid(row) && (back.is_null(row) || !is_same))
            .then(|| RejectReason::OutOfRange { kind: column.kind, text: text.value(row).to_string() })
    });
    Ok(Coerced::new(result, faults))
}

/// Floats as decimals, by the shortest digits that mean them.
pub(super) fn floats_as_decimals(array: &ArrayRef, column: &ColumnPlan) -> Result<Coerced, ArrowError> {
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
        let pushed = if value.is_finite() { result.push_written(&text) } else { Err(RejectReason::NotFinite { text }) };
        if let Err(reason) = pushed {
            result.push_null();
            faults.push(Fault { row, reason });
        }
    }
    Ok(Coerced { nans, ..Coerced::of(result, faults)? })
}

/// Nulls the numbers that equal a null marker, also those that do not fit the declared type.
pub(super) fn without_markers(coerced: Coerced, array: &ArrayRef, column: &ColumnPlan) -> Result<Coerced, ArrowError> {
    let Some(mut nulls) = marked_rows(&coerced, array, column) else { return Ok(coerced) };

    let text = formatter(array)?;
    let mut faults = Vec::new();
    for fault in coerced.faults {
        let written = text.value(fault.row as usize).to_string();
        let number = Exact::parse(written.as_bytes(), b'.');
        match nulls.get_mut(fault.row as usize) {
            Some(slot) if number.is_some_and(|number| column.null_numbers.contains(&number)) => *slot = true,
            _ => faults.push(fault),
        }
    }

    let array = nullif(&coerced.array, &BooleanArray::from(nulls))?;
    Ok(Coerced { array, faults, ..coerced })
}

/// For each row whether its typed value equals a null marker; `None` for a type without numbers.
fn marked_rows(coerced: &Coerced, array: &ArrayRef, column: &ColumnPlan) -> Option<Vec<bool>> {
    let typed = coerced.array.as_ref();
    let is_marker = |unscaled: i128, scale: u8| column.null_numbers.contains(&Exact::of_scaled(unscaled, scale));

    Some(match column.kind {
        FieldType::Int64 => {
            typed.as_primitive::<Int64Type>().values().iter().map(|value| is_marker(i128::from(*value), 0)).collect()
        }
        FieldType::UInt64 => {
            typed.as_primitive::<UInt64Type>().values().iter().map(|value| is_marker(i128::from(*value), 0)).collect()
        }
        FieldType::Decimal { scale, .. } => {
            typed.as_primitive::<Decimal128Type>().values().iter().map(|value| is_marker(*value, scale)).collect()
        }
        FieldType::Float64 => {
            // In the width of the file: a marker of -9999.9 is another double than the float -9999.9.
            let markers = column.null_doubles(matches!(array.data_type(), DataType::Float32));
            typed.as_primitive::<Float64Type>().values().iter().map(|value| markers.contains(value)).collect()
        }
        _ => return None,
    })
}
