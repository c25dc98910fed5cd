//! `time_bucket_gapfill`, `locf` and `interpolate`: functions that a query plan replaces, and the grid of times that gaps are
//! filled with.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{ScalarValue, exec_err, internal_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};

use crate::times::time_bucket::{Buckets, coerced};

/// Name of the function that groups by buckets of time, all of which are in the result.
pub const GAPFILL: &str = "time_bucket_gapfill";
/// Name of the function that repeats the last value in a gap.
pub const LOCF: &str = "locf";
/// Name of the function that draws a line through a gap.
pub const INTERPOLATE: &str = "interpolate";

const MINUTE: i64 = 60_000_000;
const DAY: i64 = 1_440 * MINUTE;

/// The functions that the plan replaces.
pub(crate) fn functions() -> [Arc<ScalarUDF>; 3] {
    [GAPFILL, LOCF, INTERPOLATE].map(|name| {
        Arc::new(ScalarUDF::new_from_impl(Replaced { name, signature: Signature::user_defined(Volatility::Immutable) }))
    })
}

/// A function that only a query that groups by `time_bucket_gapfill` can evaluate.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Replaced {
    name: &'static str,
    signature: Signature,
}

impl ScalarUDFImpl for Replaced {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, kinds: &[DataType]) -> Result<Vec<DataType>> {
        match (self.name, kinds) {
            (GAPFILL, [_, _, options @ ..]) if options.iter().any(|kind| matches!(kind, DataType::Interval(_))) => {
                plan_err!("{GAPFILL} takes a zone, a start and an end after the times, and no offset")
            }
            (GAPFILL, kinds) => match coerced(GAPFILL, kinds)?.as_slice() {
                [_, DataType::Date32, ..] => plan_err!("{GAPFILL} takes times, not dates: CAST(.. AS TIMESTAMP)"),
                kinds => Ok(kinds.to_vec()),
            },
            (LOCF, [kind]) => Ok(vec![kind.clone()]),
            (INTERPOLATE, [kind]) if kind.is_numeric() || *kind == DataType::Null => Ok(vec![DataType::Float64]),
            (INTERPOLATE, [kind]) => plan_err!("{INTERPOLATE} takes numbers, not {kind}"),
            (name, _) => plan_err!("{name} takes one value of a group, as in {name}(avg(kwh))"),
        }
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        match (self.name, kinds) {
            (GAPFILL, [_, times, ..]) => Ok(times.clone()),
            (_, [kind]) => Ok(kind.clone()),
            (name, _) => internal_err!("{name} has other arguments"),
        }
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match self.name {
            GAPFILL => exec_err!("{GAPFILL} is a key of GROUP BY; time_bucket is for other places"),
            name => exec_err!("{name} fills gaps of values in a query that groups by {GAPFILL}"),
        }
    }
}

/// The starts of buckets of time, one after the other.
#[derive(Debug, Clone)]
pub struct TimeGrid {
    buckets: Arc<Buckets>,
    /// Microseconds that the next start is later at least, or a little less.
    least: i64,
}

impl TimeGrid {
    /// The grid of `time_bucket(width, .., zone)`; `None` if the width is NULL.
    ///
    /// # Errors
    /// If these are no width and zone.
    pub fn new(width: &ScalarValue, zone: Option<&str>) -> Result<Option<Self>> {
        let zone: Vec<ScalarValue> = zone.map(|zone| ScalarValue::Utf8(Some(zone.to_owned()))).into_iter().collect();
        let Some(buckets) = Buckets::new(GAPFILL, width, &zone)? else { return Ok(None) };
        let least = match width {
            ScalarValue::IntervalMonthDayNano(Some(width)) if width.months != 0 => {
                (i64::from(width.months) * 30 - 2).saturating_mul(DAY)
            }
            ScalarValue::IntervalMonthDayNano(Some(width)) => {
                i64::from(width.days).saturating_mul(DAY).saturating_add(width.nanoseconds / 1_000)
            }
            other => return internal_err!("a width of {other}"),
        };
        Ok(Some(Self { buckets: Arc::new(buckets), least }))
    }

    /// Start of the bucket of a time, both in microseconds.
    ///
    /// # Errors
    /// If it is beyond the calendar.
    pub fn start(&self, time: i64) -> Result<i64> {
        let time = ColumnarValue::Scalar(ScalarValue::TimestampMicrosecond(Some(time), None));
        match self.buckets.starts(&time)? {
            ColumnarValue::Scalar(ScalarValue::TimestampMicrosecond(Some(start), _)) => Ok(start),
            _ => internal_err!("a time without a bucket"),
        }
    }

    /// The start after `start`.
    ///
    /// # Errors
    /// If it is beyond the calendar.
    pub fn next(&self, start: i64) -> Result<i64> {
        let mut time = start.saturating_add(self.least);
        let pace = if self.least < DAY { self.least.min(60 * MINUTE) } else { 60 * MINUTE };
        // Days of a clock change and months are longer than the least.
        loop {
            let next = self.start(time)?;
            if next > start || time == i64::MAX {
                return Ok(next);
            }
            time = time.saturating_add(pace);
        }
    }
}
