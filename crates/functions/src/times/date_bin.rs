//! `date_bin` in integer microseconds. DataFusion 55.2 uses nanoseconds, which end in 2262, and gives null for later
//! times.

use std::sync::Arc;

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use chrono::{DateTime, Datelike, Months, Utc};
use datafusion::common::{ScalarValue, plan_err};
use datafusion::error::Result;
use datafusion::functions::datetime;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};

use crate::argument_types::is_text;
use crate::overridden::{Coercion, Override, overridden};
use crate::times::micros::{Cut, cut};

const MILLI: i64 = 1_000;
const DAY: i64 = 86_400_000_000;

/// DataFusion's `date_bin`, computed in microseconds, which end later than its nanoseconds.
pub(crate) fn function() -> Arc<ScalarUDF> {
    overridden(datetime::date_bin(), DateBin)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DateBin;

impl Override for DateBin {
    fn coerced(&self) -> Option<Coercion> {
        Some(coerced)
    }

    fn result(&self, args: &ScalarFunctionArgs) -> Result<Option<ColumnarValue>> {
        let (ColumnarValue::Scalar(stride), times, origin) = (match args.args.as_slice() {
            [stride, times] => (stride, times, 0),
            [stride, times, ColumnarValue::Scalar(ScalarValue::TimestampMicrosecond(Some(origin), _))] => {
                (stride, times, *origin)
            }
            _ => return Ok(None),
        }) else {
            return Ok(None);
        };
        match Bins::new(stride, origin) {
            Some(bins) => cut(times, false, &bins),
            None => Ok(None),
        }
    }

    /// DataFusion takes origins in nanoseconds only: converts them.
    fn inner_args(&self, mut args: ScalarFunctionArgs) -> Result<ScalarFunctionArgs> {
        if let [_, _, origin] = args.args.as_mut_slice()
            && let DataType::Timestamp(_, zone) = origin.data_type()
        {
            *origin = origin.cast_to(&DataType::Timestamp(TimeUnit::Nanosecond, zone), None)?;
        }
        Ok(args)
    }
}

/// Coerces times and origin to the unit and zone of the times, or to microseconds.
fn coerced(kinds: &[DataType]) -> Result<Vec<DataType>> {
    let (stride, times, origin) = match kinds {
        [stride, times] => (stride, times, None),
        [stride, times, origin] => (stride, times, Some(origin)),
        _ => {
            return plan_err!(
                "date_bin takes an interval, times and optionally an origin, as in date_bin(INTERVAL '1 hour', ts)"
            );
        }
    };

    let stride = match stride {
        DataType::Interval(IntervalUnit::DayTime | IntervalUnit::MonthDayNano) => stride.clone(),
        DataType::Interval(_) | DataType::Null => DataType::Interval(IntervalUnit::MonthDayNano),
        text if is_text(text) => DataType::Interval(IntervalUnit::MonthDayNano),
        other => return plan_err!("date_bin takes an interval first, as in INTERVAL '15 minutes', not {other}"),
    };

    let times = match times {
        DataType::Timestamp(TimeUnit::Nanosecond, _) | DataType::Time32(_) | DataType::Time64(_) => times.clone(),
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        DataType::Date32 | DataType::Null => DataType::Timestamp(TimeUnit::Microsecond, None),
        text if is_text(text) => DataType::Timestamp(TimeUnit::Microsecond, None),
        other => return plan_err!("date_bin takes times, not {other}"),
    };

    Ok([Some(stride), Some(times.clone()), origin.map(|_| times)].into_iter().flatten().collect())
}

/// Months since the start of the year 0.
fn months(time: &DateTime<Utc>) -> i64 {
    i64::from(time.year()) * 12 + i64::from(time.month0())
}

/// The start of the bin with this number, of bins of `stride` months; `None` beyond the calendar.
fn start_of_months(origin: &DateTime<Utc>, stride: i64, bin: i64) -> Option<DateTime<Utc>> {
    let months = bin.checked_mul(stride)?;
    let by = Months::new(u32::try_from(months.unsigned_abs()).ok()?);
    if months < 0 { origin.checked_sub_months(by) } else { origin.checked_add_months(by) }
}

/// The grid of a `date_bin` or `time_bucket`: bins of equal width, one of which starts at the origin.
#[derive(Debug)]
pub(super) enum Bins {
    /// Width and origin, both in microseconds; the origin since the epoch.
    Even(i64, i64),
    /// Width in months of the calendar, and origin.
    Months(i64, DateTime<Utc>),
}

impl Bins {
    /// `None` for widths that DataFusion refuses or that are not whole microseconds.
    pub(super) fn new(stride: &ScalarValue, origin: i64) -> Option<Self> {
        let (months, micros) = match stride {
            ScalarValue::IntervalDayTime(Some(stride)) => {
                let millis = i64::from(stride.milliseconds).checked_mul(MILLI)?;
                (0, i64::from(stride.days).checked_mul(DAY)?.checked_add(millis)?)
            }
            ScalarValue::IntervalMonthDayNano(Some(stride)) if stride.nanoseconds % 1_000 == 0 => {
                let micros = i64::from(stride.days).checked_mul(DAY)?.checked_add(stride.nanoseconds / 1_000)?;
                (i64::from(stride.months), micros)
            }
            _ => return None,
        };
        match (months, micros) {
            (0, 1..) => Some(Self::Even(micros, origin)),
            (1.., 0) => Some(Self::Months(months, DateTime::from_timestamp_micros(origin)?)),
            _ => None,
        }
    }
}

impl Cut for Bins {
    fn even(&self) -> Option<(i64, i64)> {
        match self {
            Self::Even(stride, origin) => Some((*stride, *origin)),
            Self::Months(..) => None,
        }
    }

    fn start(&self, time: i64) -> Option<i64> {
        match self {
            Self::Even(stride, origin) => time.checked_sub(time.checked_sub(*origin)?.rem_euclid(*stride)),
            Self::Months(stride, origin) => {
                let at = DateTime::from_timestamp_micros(time)?;
                let bin = (months(&at) - months(origin)).div_euclid(*stride);

                // The origin may be later in its month than the time is in its own.
                let start = start_of_months(origin, *stride, bin)?;
                let start = if start > at { start_of_months(origin, *stride, bin - 1)? } else { start };
                Some(start.timestamp_micros())
            }
        }
    }

    fn next(&self, _start: i64) -> Option<i64> {
        None
    }
}
