//! `date_trunc` in integer microseconds. DataFusion 55.2 uses nanoseconds, which end in 2262, so that one later time
//! fails a query.

use std::sync::Arc;

use chrono::{Datelike, NaiveDate};
use datafusion::error::Result;
use datafusion::functions::datetime;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF};

use crate::functions::overridden::{Coercion, Override, overridden};
use crate::functions::times::micros::{Cut, cut};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Wraps DataFusion's function.
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
}

/// The unit to truncate to.
#[derive(Debug, Clone, Copy)]
enum TruncUnit {
    /// Multiples of these microseconds since the epoch.
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
            "minute" => Self::Micros(60 * SECOND),
            "hour" => Self::Micros(3_600 * SECOND),
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
                let date = NaiveDate::from_epoch_days(i32::try_from(time.div_euclid(DAY)).ok()?)?;
                let first = NaiveDate::from_ymd_opt(date.year(), date.month0() / step * step + 1, 1)?;
                i64::from(first.to_epoch_days()).checked_mul(DAY)
            }
        }
    }
}
