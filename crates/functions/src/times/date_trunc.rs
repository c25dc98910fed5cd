//! `date_trunc` in integer microseconds. DataFusion 55.2 uses nanoseconds, which end in 2262, so that one later time
//! fails a query.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::functions::datetime;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF};
use tidetable_layout::time::{DAY, HOUR, MINUTE, SECOND, civil_from_days, days_from_civil};

use crate::overridden::{Coercion, Override, overridden};
use crate::times::micros::{Cut, cut};
use crate::times::zones::is_utc;

/// DataFusion's `date_trunc`, computed in microseconds, which end later than its nanoseconds.
pub(crate) fn function() -> Arc<ScalarUDF> {
    overridden(datetime::date_trunc(), DateTrunc)
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DateTrunc;

impl Override for DateTrunc {
    fn coerced(&self) -> Option<Coercion> {
        None
    }

    fn result(&self, args: &ScalarFunctionArgs) -> Result<Option<ColumnarValue>> {
        let [ColumnarValue::Scalar(unit), times] = args.args.as_slice() else { return Ok(None) };
        match unit.try_as_str().flatten().and_then(TruncUnit::named) {
            Some(step) => cut(times, true, &step),
            None => Ok(None),
        }
    }

    /// The times of the unit that starts at `of`, so that `date_trunc('month', ts) = ..` prunes as a range of times does.
    fn preimage(&self, args: &[Expr], of: &ScalarValue) -> Result<Option<PreimageResult>> {
        let ScalarValue::TimestampMicrosecond(Some(start), zone) = of else { return Ok(None) };
        let [unit, times] = args else { return Ok(None) };
        let unit = unit.as_literal().and_then(|unit| TruncUnit::named(unit.try_as_str().flatten()?));
        let of_utc = zone.as_deref().is_none_or(is_utc);
        let Some(unit) = unit.filter(|unit| of_utc && unit.start(*start) == Some(*start)) else { return Ok(None) };
        let Some(end) = unit.next(*start) else { return Ok(None) };
        let interval = Interval::try_new(of.clone(), ScalarValue::TimestampMicrosecond(Some(end), zone.clone()))?;
        Ok(Some(PreimageResult::Range { expr: times.clone(), interval: Box::new(interval) }))
    }
}

/// The unit that times are truncated to.
#[derive(Debug, Clone, Copy)]
enum TruncUnit {
    /// Multiples of these microseconds since the epoch: of seconds, minutes, hours and days.
    Micros(i64),
    Week,
    /// Multiples of these months since the first of January.
    Months(u32),
}

impl TruncUnit {
    fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "microsecond" => Self::Micros(1),
            "millisecond" => Self::Micros(1_000),
            "second" => Self::Micros(SECOND),
            "minute" => Self::Micros(MINUTE),
            "hour" => Self::Micros(HOUR),
            "day" => Self::Micros(DAY),
            "week" => Self::Week,
            "month" => Self::Months(1),
            "quarter" => Self::Months(3),
            "year" => Self::Months(12),
            _ => return None,
        })
    }
}

impl Cut for TruncUnit {
    fn even(&self) -> Option<(i64, i64)> {
        match self {
            Self::Micros(step) => Some((*step, 0)),
            Self::Week | Self::Months(_) => None,
        }
    }

    fn start(&self, time: i64) -> Option<i64> {
        match *self {
            Self::Micros(step) => time.checked_sub(time.rem_euclid(step)),
            Self::Week => {
                // The epoch was a Thursday.
                let day = time.div_euclid(DAY);
                (day - (day + 3).rem_euclid(7)).checked_mul(DAY)
            }
            Self::Months(step) => {
                let (year, month, _) = civil_from_days(time.div_euclid(DAY));
                days_from_civil(year, (month - 1) / step * step + 1, 1).checked_mul(DAY)
            }
        }
    }

    fn next(&self, start: i64) -> Option<i64> {
        match *self {
            Self::Micros(step) => start.checked_add(step),
            Self::Week => start.checked_add(7 * DAY),
            Self::Months(step) => {
                let (year, month, _) = civil_from_days(start.div_euclid(DAY));
                let month = month - 1 + step;
                days_from_civil(year + i64::from(month / 12), month % 12 + 1, 1).checked_mul(DAY)
            }
        }
    }
}
