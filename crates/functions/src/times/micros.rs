//! Units of microseconds: the unit or bin that a time lies in. Neighbours often lie in one.

use std::sync::Arc;

use arrow::array::{Array, AsArray, PrimitiveArray, TimestampMicrosecondArray};
use arrow::datatypes::{ArrowPrimitiveType, DataType, TimeUnit, TimestampMicrosecondType};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;

use crate::times::zones::{Clock, beyond_calendar, is_utc, zone};

/// `part` of each time: of the number of its unit of `UNIT` microseconds since the epoch. Division by a constant compiles to a
/// multiplication.
pub(crate) fn by_unit<T: ArrowPrimitiveType, const UNIT: i64>(
    times: &TimestampMicrosecondArray,
    part: impl Fn(i64) -> T::Native,
) -> PrimitiveArray<T> {
    let (mut first, mut last, mut value) = (0, UNIT - 1, part(0));
    let parts = times.values().iter().map(|time| {
        if *time < first || *time > last {
            (first, last) = around(*time, time.rem_euclid(UNIT), UNIT);
            value = part(time.div_euclid(UNIT));
        }
        value
    });
    PrimitiveArray::new(parts.collect(), times.nulls().cloned())
}

/// The first and last time of the unit of `length` in which `time` is `into`.
fn around(time: i64, into: i64, length: i64) -> (i64, i64) {
    (time.saturating_sub(into), time.saturating_add(length - 1 - into))
}

/// A truncation of times to the start of a unit, such as a bin of `date_bin` or a month.
pub(crate) trait Cut {
    /// For units of equal length: length and origin, in microseconds. `None` for units of the calendar.
    fn even(&self) -> Option<(i64, i64)>;

    /// Start of the unit that contains `time`; `None` beyond the calendar.
    fn start(&self, time: i64) -> Option<i64>;

    /// Start of the unit after the one that starts at `start`, if it is cheap to tell.
    fn next(&self, start: i64) -> Option<i64>;
}

/// Truncates `times`; `None` if they are not in microseconds. With `by_clocks`, times with a zone are truncated in
/// local time.
///
/// # Errors
/// If a time is beyond the calendar.
pub(crate) fn cut(times: &ColumnarValue, by_clocks: bool, to: &impl Cut) -> Result<Option<ColumnarValue>> {
    let DataType::Timestamp(TimeUnit::Microsecond, name) = times.data_type() else { return Ok(None) };
    let clock = match name.as_deref().filter(|name| by_clocks && !is_utc(name)) {
        None => None,
        Some(name) => match zone(name) {
            Some(zone) => Some(Clock::new(zone, name)),
            None => return Ok(None),
        },
    };
    cut_by(times, clock, to)
}

/// Truncates `times`, in the local time of `clock` if there is one; `None` if they are not in microseconds.
///
/// # Errors
/// If a time is beyond the calendar.
pub(crate) fn cut_by(times: &ColumnarValue, mut clock: Option<Clock>, to: &impl Cut) -> Result<Option<ColumnarValue>> {
    let DataType::Timestamp(TimeUnit::Microsecond, name) = times.data_type() else { return Ok(None) };
    let is_local = clock.is_some();
    let even = to.even().filter(|_| !is_local);

    let mut one = |time: i64| {
        let start = match &mut clock {
            Some(clock) => clock.cut(time, |local| to.start(local)),
            None => to.start(time),
        };
        start.ok_or_else(|| beyond_calendar(time))
    };

    Ok(Some(match times {
        ColumnarValue::Scalar(ScalarValue::TimestampMicrosecond(time, _)) => {
            let time = time.map(one).transpose()?;
            ColumnarValue::Scalar(ScalarValue::TimestampMicrosecond(time, name))
        }
        ColumnarValue::Scalar(_) => return Ok(None),
        ColumnarValue::Array(times) => {
            let times = times.as_primitive::<TimestampMicrosecondType>();
            let done: PrimitiveArray<TimestampMicrosecondType> = match even {
                Some((step, origin)) => {
                    let (mut first, mut last, mut start) = (1, 0, 0);
                    let starts = times.values().iter().map(|time| {
                        if *time < first || *time > last {
                            let into = time.wrapping_sub(origin).rem_euclid(step);
                            (first, last) = around(*time, into, step);
                            start = time.wrapping_sub(into);
                        }
                        start
                    });
                    PrimitiveArray::new(starts.collect(), times.nulls().cloned())
                }
                None => {
                    let mut unit = 0..0;
                    let mut cut = |time: i64| -> Result<i64> {
                        if unit.contains(&time) {
                            return Ok(unit.start);
                        }
                        let start = one(time)?;
                        if let Some(end) = to.next(start).filter(|_| !is_local) {
                            unit = start..end;
                        }
                        Ok(start)
                    };
                    times.iter().map(|time| time.map(&mut cut).transpose()).collect::<Result<_>>()?
                }
            };
            ColumnarValue::Array(Arc::new(done.with_timezone_opt(times.timezone())))
        }
    }))
}
