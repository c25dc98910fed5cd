//! `time_bucket(width, ts [, origin | offset] [, zone])`: the start of the bucket that a time lies in, as in TimescaleDB and DuckDB.

use std::sync::Arc;

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use chrono::{DateTime, Months};
use datafusion::common::{ScalarValue, exec_datafusion_err, exec_err, internal_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::argument_types::is_text;
use crate::times::date_bin::Bins;
use crate::times::micros::{Cut, cut_by};
use crate::times::zones::{Clock, zone};

const DAY: i64 = 86_400_000_000;
/// Monday, 3 January 2000: weeks start on Mondays.
const ORIGIN: i64 = 10_959 * DAY;
/// 1 January 2000, of buckets of months.
const ORIGIN_OF_MONTHS: i64 = 10_957 * DAY;

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// `time_bucket`.
pub(crate) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(TimeBucket { signature: Signature::user_defined(Volatility::Immutable) }))
}

/// Coerces the arguments: a width, times, and an origin, an offset or a zone in any order. With a zone, times without one are UTC.
///
/// # Errors
/// If an argument has no such type.
pub(crate) fn coerced(name: &str, kinds: &[DataType]) -> Result<Vec<DataType>> {
    let [width, times, options @ ..] = kinds else {
        return plan_err!("{name} takes an interval and times, as in {name}(INTERVAL '1 hour', ts)");
    };
    match width {
        DataType::Interval(_) | DataType::Null => {}
        text if is_text(text) => {}
        other => return plan_err!("{name} takes an interval first, as in INTERVAL '15 minutes', not {other}"),
    }

    let has_zone = options.iter().any(is_text);
    let utc: Option<Arc<str>> = has_zone.then(|| "UTC".into());
    let times = match times {
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone().or(utc)),
        DataType::Date32 => DataType::Date32,
        DataType::Null => DataType::Timestamp(TimeUnit::Microsecond, utc),
        text if is_text(text) => DataType::Timestamp(TimeUnit::Microsecond, utc),
        other => return plan_err!("{name} takes times second, not {other}"),
    };

    let mut coerced = vec![INTERVAL, times];
    for option in options {
        coerced.push(match option {
            DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
            DataType::Date32 => DataType::Timestamp(TimeUnit::Microsecond, None),
            DataType::Interval(_) => INTERVAL,
            text if is_text(text) => DataType::Utf8,
            other => {
                return plan_err!(
                    "{name} takes an origin (TIMESTAMP '2018-01-01'), an offset (INTERVAL '6 hours') or a zone \
                     ('Europe/Paris') after the times, not {other}"
                );
            }
        });
    }
    Ok(coerced)
}

/// Buckets: of equal width or of months, shifted by an offset, in local time where there is a zone.
#[derive(Debug)]
pub(crate) struct Buckets {
    bins: Bins,
    offset: Offset,
    zone: Option<String>,
}

/// A shift of buckets.
#[derive(Debug, Clone, Copy, Default)]
struct Offset {
    months: i32,
    micros: i64,
}

impl Offset {
    /// Shifts a time in microseconds, to later times with a positive sign; `None` beyond the calendar.
    fn shift(self, time: i64, sign: i64) -> Option<i64> {
        let shifted = time.checked_add(self.micros.checked_mul(sign)?)?;
        if self.months == 0 {
            return Some(shifted);
        }
        let (time, by) = (DateTime::from_timestamp_micros(shifted)?, Months::new(self.months.unsigned_abs()));
        let is_later = i64::from(self.months) * sign > 0;
        let time = if is_later { time.checked_add_months(by) } else { time.checked_sub_months(by) };
        Some(time?.timestamp_micros())
    }
}

impl Buckets {
    /// The buckets that the constants after and before the times describe; `None` if one is NULL.
    ///
    /// # Errors
    /// If the width is no positive interval, or an option is none.
    pub(crate) fn new(name: &str, width: &ScalarValue, options: &[ScalarValue]) -> Result<Option<Self>> {
        if width.is_null() || options.iter().any(ScalarValue::is_null) {
            return Ok(None);
        }
        let has_months = matches!(width, ScalarValue::IntervalMonthDayNano(Some(width)) if width.months != 0);
        let mut origin = if has_months { ORIGIN_OF_MONTHS } else { ORIGIN };
        let (mut offset, mut zone_name, mut instant) = (Offset::default(), None, None);
        for option in options {
            match option {
                ScalarValue::TimestampMicrosecond(Some(time), None) => origin = *time,
                ScalarValue::TimestampMicrosecond(Some(time), Some(_)) => instant = Some(*time),
                ScalarValue::IntervalMonthDayNano(Some(by)) => {
                    let micros =
                        i64::from(by.days).checked_mul(DAY).and_then(|days| days.checked_add(by.nanoseconds / 1_000));
                    let micros = micros.ok_or_else(|| exec_datafusion_err!("{name}: the offset is too long"))?;
                    offset = Offset { months: by.months, micros };
                }
                ScalarValue::Utf8(Some(text)) => match zone(text) {
                    Some(_) => zone_name = Some(text.clone()),
                    None => {
                        return exec_err!(
                            "{name}: '{text}' is no time zone, such as 'Europe/Paris'; an origin is written \
                             TIMESTAMP '2018-01-01', an offset INTERVAL '6 hours'"
                        );
                    }
                },
                other => return internal_err!("{name} with {other}"),
            }
        }

        // An origin with a zone is an instant: its local time counts.
        if let Some(instant) = instant {
            origin = match clock(zone_name.as_deref()) {
                Some(mut clock) => clock.local(instant).unwrap_or(instant),
                None => instant,
            };
        }
        let Some(bins) = Bins::new(width, origin) else {
            return exec_err!(
                "{name}: a width is a positive interval of days and less, or of months, in whole microseconds, not {width}"
            );
        };
        Ok(Some(Self { bins, offset, zone: zone_name }))
    }

    /// The start of the bucket of each time.
    ///
    /// # Errors
    /// If a time is beyond the calendar.
    pub(crate) fn starts(&self, times: &ColumnarValue) -> Result<ColumnarValue> {
        match cut_by(times, clock(self.zone.as_deref()), self)? {
            Some(starts) => Ok(starts),
            None => internal_err!("buckets of {}", times.data_type()),
        }
    }
}

fn clock(name: Option<&str>) -> Option<Clock> {
    let name = name?;
    Some(Clock::new(zone(name)?, name))
}

impl Cut for Buckets {
    fn even(&self) -> Option<(i64, i64)> {
        let (step, origin) = self.bins.even()?;
        (self.offset.months == 0).then(|| (step, origin.wrapping_add(self.offset.micros)))
    }

    fn start(&self, time: i64) -> Option<i64> {
        self.offset.shift(self.bins.start(self.offset.shift(time, -1)?)?, 1)
    }

    fn next(&self, _: i64) -> Option<i64> {
        None
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TimeBucket {
    signature: Signature,
}

impl ScalarUDFImpl for TimeBucket {
    fn name(&self) -> &str {
        "time_bucket"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        coerced(self.name(), kinds)
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        match kinds {
            [_, times, ..] => Ok(times.clone()),
            _ => internal_err!("time_bucket takes times"),
        }
    }

    /// Buckets are in the order of their times, but for those of a zone whose clocks go back.
    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        Ok(match input {
            [width, times, options @ ..]
                if std::iter::once(width).chain(options).all(|option| {
                    option.sort_properties == SortProperties::Singleton && !is_text(&option.range.data_type())
                }) =>
            {
                times.sort_properties
            }
            _ => SortProperties::Unordered,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [ColumnarValue::Scalar(width), times, options @ ..] = args.args.as_slice() else {
            return exec_err!("time_bucket takes a constant width, as in INTERVAL '1 hour'");
        };
        let mut constants = Vec::with_capacity(options.len());
        for option in options {
            let ColumnarValue::Scalar(option) = option else {
                return exec_err!("time_bucket takes a constant origin, offset and zone");
            };
            constants.push(option.clone());
        }

        let Some(buckets) = Buckets::new(self.name(), width, &constants)? else {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from(args.return_type())?));
        };
        match times.data_type() {
            DataType::Date32 => {
                let times = times.cast_to(&DataType::Timestamp(TimeUnit::Microsecond, None), None)?;
                buckets.starts(&times)?.cast_to(&DataType::Date32, None)
            }
            _ => buckets.starts(times),
        }
    }
}
