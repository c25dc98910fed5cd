//! Time zones: conversion between instants and local times.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{ArrayRef, AsArray, Int64Array, PrimitiveArray};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type, TimeUnit, TimestampMicrosecondType};
use chrono::{DateTime, Offset, TimeZone, Utc};
use datafusion::common::{
    DFSchema, DataFusionError, ScalarValue, exec_datafusion_err, internal_err, plan_datafusion_err, plan_err,
};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use tidetable_layout::time::LocalOffset;
use tidetable_source::TimeCounts;

use crate::argument_types::is_text;
use crate::conversion::{Conversion, converted};
use crate::times::time_counts::count_times;

const MICROS: i64 = 1_000_000;

/// Parses the name of a zone, such as `Europe/Paris` or `UTC`, or an offset, such as `+02:00`.
pub(crate) fn zone(name: &str) -> Option<Tz> {
    name.trim().parse().ok()
}

/// Whether `zone` is one of the common names of UTC, so that a time needs no conversion.
pub fn is_utc(zone: &str) -> bool {
    matches!(zone, "UTC" | "utc" | "Etc/UTC" | "Z" | "+00:00" | "+00" | "GMT")
}

/// The offsets of a zone from UTC, with the last one cached: neighbouring times mostly share it.
pub(crate) struct Clock {
    zone: Tz,
    name: String,
    /// Cached hour since the epoch with a constant offset, and that offset in seconds.
    known: Option<(i64, i64)>,
}

impl Clock {
    pub(crate) fn new(zone: Tz, name: &str) -> Self {
        Self { zone, name: name.to_owned(), known: None }
    }

    /// Local time of an instant, microseconds; `None` beyond the calendar.
    pub(crate) fn local(&mut self, instant: i64) -> Option<i64> {
        let hour = instant.div_euclid(3_600 * MICROS);
        let offset = match self.known {
            Some((known, offset)) if known == hour => offset,
            _ => {
                let offset = self.offset(instant.div_euclid(MICROS))?;
                let ends = [self.offset(hour * 3_600)?, self.offset(hour * 3_600 + 3_599)?];
                self.known = (ends == [offset, offset]).then_some((hour, offset));
                offset
            }
        };
        instant.checked_add(offset * MICROS)
    }

    /// The instant of the local time `local`, the earlier of two (see [`LocalOffset`]); `None` if it is skipped or beyond
    /// the calendar.
    pub(crate) fn instant(&self, local: i64) -> Option<i64> {
        local.checked_sub(self.meant(local.div_euclid(MICROS))? * MICROS)
    }

    /// The offset of a local time, both in seconds.
    fn meant(&self, local: i64) -> Option<i64> {
        let meant = LocalOffset::resolve(&self.zone, &DateTime::from_timestamp(local, 0)?.naive_utc());
        let repeated = u64::from(matches!(meant, LocalOffset::Ambiguous { .. }));
        count_times(TimeCounts { repeated, ..TimeCounts::default() });
        meant.offset().map(i64::from)
    }

    /// Truncates an instant in local time. Of two instants the result is the one with the offset of `instant`; if the
    /// local time is skipped, it is the transition.
    pub(crate) fn cut(&mut self, instant: i64, cut: impl Fn(i64) -> Option<i64>) -> Option<i64> {
        let local = self.local(instant)?;
        let (offset, cut) = (local - instant, cut(local)?);
        let near = cut.checked_sub(offset)?;
        if self.local(near)? == cut {
            return Some(near);
        }
        if let Some(found) = self.instant(cut) {
            return Some(found);
        }
        // With the offset before the transition.
        let before = self.offset(cut.div_euclid(MICROS).checked_sub(86_400)?)?;
        cut.checked_sub(before * MICROS)
    }

    fn skipped(&self, local: Option<DateTime<Utc>>) -> Option<DataFusionError> {
        let (local, name) = (local?.naive_utc(), &self.name);
        Some(exec_datafusion_err!("{local} does not exist in {name}: the clocks go forward over it"))
    }

    fn offset(&self, seconds: i64) -> Option<i64> {
        let instant = DateTime::from_timestamp(seconds, 0)?.naive_utc();
        Some(i64::from(self.zone.offset_from_utc_datetime(&instant).fix().local_minus_utc()))
    }
}

/// `timezone(zone, time)`, or `time AT TIME ZONE zone`: converts an instant to local time without a zone, and local
/// time to an instant. As in PostgreSQL and DuckDB.
pub(crate) fn at_time_zone() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(AtTimeZone { signature: Signature::user_defined(Volatility::Immutable) }))
}

/// Name of the function that `AT TIME ZONE` calls.
pub const TIMEZONE: &str = "timezone";

#[derive(Debug, PartialEq, Eq, Hash)]
struct AtTimeZone {
    signature: Signature,
}

impl ScalarUDFImpl for AtTimeZone {
    fn name(&self) -> &str {
        TIMEZONE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        let [zone, time] = kinds else {
            return plan_err!("timezone takes a zone and a time, as in timezone('Europe/Paris', ts)");
        };
        if !is_text(zone) {
            return plan_err!("AT TIME ZONE takes the name of a zone, such as 'Europe/Paris', not {zone}");
        }

        let micros = |zone: Option<Arc<str>>| DataType::Timestamp(TimeUnit::Microsecond, zone);
        match time {
            DataType::Timestamp(_, zone) => Ok(vec![DataType::Utf8, micros(zone.clone())]),
            DataType::Date32 | DataType::Null => Ok(vec![DataType::Utf8, micros(Some("UTC".into()))]),
            text if is_text(text) => Ok(vec![DataType::Utf8, micros(Some("UTC".into()))]),
            other => plan_err!("AT TIME ZONE takes a time, not {other}"),
        }
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        match kinds {
            [_, DataType::Timestamp(_, Some(_))] => Ok(DataType::Timestamp(TimeUnit::Microsecond, None)),
            [_, _] => Ok(DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
            _ => internal_err!("timezone takes two arguments"),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        if let Some(Some(ScalarValue::Utf8(Some(name)))) = args.scalar_arguments.first() {
            known_zone(name)?;
        }
        let kinds: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(TIMEZONE, self.return_type(&kinds)?, nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let [zones, times] = args.args.as_slice() else { return internal_err!("timezone takes two arguments") };
        let times = times.to_array(if scalar { 1 } else { args.number_rows })?;
        let times = times.as_primitive::<TimestampMicrosecondType>();
        let is_instant = times.timezone().is_some();

        let done: PrimitiveArray<TimestampMicrosecondType> = match zones {
            ColumnarValue::Scalar(ScalarValue::Utf8(Some(name))) => {
                let mut clock = Clock::new(known_zone(name)?, name);
                times
                    .iter()
                    .map(|time| time.map(|time| shown(&mut clock, time, is_instant)).transpose())
                    .collect::<Result<_>>()?
            }
            ColumnarValue::Scalar(_) => PrimitiveArray::new_null(times.len()),
            ColumnarValue::Array(zones) => {
                let mut shown_times = Vec::with_capacity(times.len());
                for (zone, time) in zones.as_string::<i32>().iter().zip(times) {
                    shown_times.push(match (zone, time) {
                        (Some(zone), Some(time)) => {
                            Some(shown(&mut Clock::new(known_zone(zone)?, zone), time, is_instant)?)
                        }
                        _ => None,
                    });
                }
                shown_times.into()
            }
        };

        let done = if is_instant { done } else { done.with_timezone("UTC") };
        if scalar {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&done, 0)?));
        }
        Ok(ColumnarValue::Array(Arc::new(done)))
    }
}

fn shown(clock: &mut Clock, time: i64, is_instant: bool) -> Result<i64> {
    if is_instant {
        return clock.local(time).ok_or_else(|| beyond_calendar(time));
    }
    clock
        .instant(time)
        .ok_or_else(|| clock.skipped(DateTime::from_timestamp_micros(time)).unwrap_or_else(|| beyond_calendar(time)))
}

pub(crate) fn beyond_calendar(time: i64) -> DataFusionError {
    exec_datafusion_err!("the time {time} (microseconds since 1970) is beyond the calendar")
}

fn known_zone(name: &str) -> Result<Tz> {
    zone(name).ok_or_else(|| {
        plan_datafusion_err!(
            "there is no time zone '{name}': write a name such as Europe/Paris, or an offset such as +02:00"
        )
    })
}

/// Replaces `expr` by the function, if it casts local time to a time with a zone other than UTC.
pub fn local_to_instant(expr: Expr, schema: &DFSchema) -> Expr {
    converted::<LocalToInstant>(expr, schema)
}

/// Casts local times, which have no zone, to instants of the zone that the type names.
#[derive(Debug, PartialEq, Eq, Hash)]
struct LocalToInstant;

impl Conversion for LocalToInstant {
    const NAME: &str = "by_clocks";

    fn is_for(from: &DataType, to: &DataType) -> bool {
        match (from, to) {
            (DataType::Timestamp(_, None), DataType::Timestamp(_, Some(name))) => !is_utc(name) && zone(name).is_some(),
            _ => false,
        }
    }

    fn convert(times: &ArrayRef, to: &DataType, or_null: bool) -> Result<ArrayRef> {
        let DataType::Timestamp(unit, Some(name)) = to else { return internal_err!("{to} has no zone") };
        let options = CastOptions { safe: or_null, ..CastOptions::default() };
        let local = cast_with_options(times, &DataType::Timestamp(*unit, None), &options)?;
        let local = cast(&local, &DataType::Int64)?;
        let (clock, per_second) = (Clock::new(known_zone(name)?, name), ticks_per_second(*unit));

        let mut instants = Vec::with_capacity(local.len());
        for local in local.as_primitive::<Int64Type>() {
            let Some(local) = local else {
                instants.push(None);
                continue;
            };
            let seconds = local.div_euclid(per_second);
            let instant = clock.meant(seconds).and_then(|offset| local.checked_sub(offset * per_second));
            if instant.is_none() && !or_null {
                let skipped = clock.skipped(DateTime::from_timestamp(seconds, 0));
                return Err(skipped.unwrap_or_else(|| beyond_calendar(seconds.saturating_mul(MICROS))));
            }
            instants.push(instant);
        }

        Ok(cast(&Int64Array::from(instants), to)?)
    }
}

/// Ticks of a second in this unit: 1 to 1,000,000,000.
pub fn ticks_per_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1,
        TimeUnit::Millisecond => 1_000,
        TimeUnit::Microsecond => MICROS,
        TimeUnit::Nanosecond => 1_000_000_000,
    }
}
