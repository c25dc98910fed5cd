//! Times, days and counts of a file into declared timestamps: microseconds since the epoch, in UTC.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use arrow::compute::nullif;
use arrow::datatypes::{DataType, Date32Type, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType};
use arrow::error::ArrowError;
use parquet::data_type::Int96;
use tidetable_layout::time::DAY;

use crate::columnar::coerced::{Coerced, Fault, cast, formatter};
use crate::columnar::int96;
use crate::columnar::numbers::nans_of;
use crate::time::{Clock, Remarks, Stamp, TimeFault, Unit};
use crate::value::ColumnPlan;

/// Timestamps of a file, counted in `unit`. Those that are `local` are times of the column's own zone, others of UTC.
pub(super) fn timestamps(
    array: &ArrayRef,
    column: &ColumnPlan,
    unit: TimeUnit,
    local: bool,
) -> Result<Coerced, ArrowError> {
    let counts = match array.data_type() {
        DataType::Timestamp(..) => cast(array, &DataType::Int64)?,
        // A dictionary of times: its values first.
        _ => cast(&cast(array, &DataType::Timestamp(unit, None))?, &DataType::Int64)?,
    };
    let counts = counts.as_primitive::<Int64Type>();
    let unit = match unit {
        TimeUnit::Second => Unit::Seconds,
        TimeUnit::Millisecond => Unit::Millis,
        TimeUnit::Microsecond => Unit::Micros,
        TimeUnit::Nanosecond => Unit::Nanos,
    };

    settle(array, column, |row, clock| {
        let stamp = unit.stamp(counts.value(row)).ok_or(TimeFault::Range)?;
        in_zone(stamp, column, local, clock)
    })
}

/// Timestamps of INT96: `values` are those of the file, and `array` shows them in messages.
pub(super) fn int96_timestamps(
    array: &ArrayRef,
    values: &[Option<Int96>],
    column: &ColumnPlan,
    local: bool,
) -> Result<Coerced, ArrowError> {
    settle(array, column, |row, clock| {
        let value = values.get(row).and_then(Option::as_ref).ok_or(TimeFault::Range)?;
        in_zone(int96::stamp(value)?, column, local, clock)
    })
}

/// A stored time as one of UTC, if it is in range.
fn in_zone(stamp: Stamp, column: &ColumnPlan, local: bool, clock: &mut Clock) -> Result<Stamp, TimeFault> {
    match &column.time {
        Some(rule) if local => Ok(Stamp { cut: stamp.cut, ..rule.local(stamp.micros, clock)? }),
        _ => stamp.within(),
    }
}

/// Days as the midnights of the column's own zone.
pub(super) fn days(array: &ArrayRef, column: &ColumnPlan) -> Result<Coerced, ArrowError> {
    let days = cast(array, &DataType::Date32)?;
    let days = days.as_primitive::<Date32Type>();
    settle(array, column, |row, clock| {
        let midnight = i64::from(days.value(row)) * DAY;
        column.time.as_ref().map_or(Stamp::at(midnight).within(), |rule| rule.local(midnight, clock))
    })
}

/// Integers in the unit that the column's format names.
pub(super) fn epochs(array: &ArrayRef, column: &ColumnPlan) -> Result<Coerced, ArrowError> {
    let counts = cast(array, &DataType::Int64)?;
    let counts = counts.as_primitive::<Int64Type>();
    settle(array, column, |row, clock| {
        let rule = column.time.as_ref().filter(|_| counts.is_valid(row));
        rule.and_then(|rule| rule.epoch(counts.value(row), clock)).unwrap_or(Err(TimeFault::Form))
    })
}

/// Floats in the unit that the column's format names. NaN is null, or a fault where the source says so.
pub(super) fn float_epochs(array: &ArrayRef, column: &ColumnPlan) -> Result<Coerced, ArrowError> {
    let counts = cast(array, &DataType::Float64)?;
    let array = if column.rejects_nan { Arc::clone(array) } else { nullif(array, &nans_of(&counts))? };
    let counts = counts.as_primitive::<Float64Type>();
    settle(&array, column, |row, clock| {
        let rule = column.time.as_ref();
        rule.and_then(|rule| rule.epoch_float(counts.value(row), clock)).unwrap_or(Err(TimeFault::Form))
    })
}

/// A column of microseconds, by one call of `stamp` for each row that is not null.
fn settle(
    array: &ArrayRef,
    column: &ColumnPlan,
    stamp: impl Fn(usize, &mut Clock) -> Result<Stamp, TimeFault>,
) -> Result<Coerced, ArrowError> {
    let nulls = array.logical_nulls();
    let mut clock = Clock::default();
    let (mut faults, mut remarks) = (Vec::new(), Remarks::default());
    let mut micros = vec![0; array.len()];

    for (row, slot) in micros.iter_mut().enumerate() {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            continue;
        }
        match stamp(row, &mut clock) {
            Ok(stamp) => {
                remarks.add(row, stamp);
                *slot = stamp.micros;
            }
            Err(fault) => {
                let text = formatter(array)?.value(row).to_string();
                faults.push(Fault { row: row as u32, reason: column.time_reason(fault, text.as_bytes()) });
            }
        }
    }

    let array = PrimitiveArray::<TimestampMicrosecondType>::try_new(micros.into(), nulls)?;
    Ok(Coerced { remarks, ..Coerced::new(Arc::new(array.with_timezone("UTC")), faults) })
}
