//! `date_trunc` of microseconds in UTC or without a zone, by integers. The engine's (DataFusion 55.2) goes by nanoseconds, which end
//! in 2262, so that one later time would stop a query.

use std::sync::Arc;

use arrow::array::{Array, AsArray, PrimitiveArray};
use arrow::datatypes::{DataType, FieldRef, TimeUnit, TimestampMicrosecondType};
use chrono::{Datelike, NaiveDate};
use datafusion::common::{ScalarValue, exec_datafusion_err};
use datafusion::error::Result;
use datafusion::functions::datetime;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use super::times::is_utc;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// Takes the place of the engine's function.
pub(super) fn function() -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(DateTrunc { engine: datetime::date_trunc() }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DateTrunc {
    engine: Arc<ScalarUDF>,
}

/// What times are cut to.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// So many microseconds from the epoch.
    Micros(i64),
    Week,
    /// So many months from the first of January.
    Months(u32),
}

impl Step {
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

    /// `None` beyond the calendar.
    fn start(self, time: i64) -> Option<i64> {
        match self {
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

    fn of(self, time: i64) -> Result<i64> {
        self.start(time)
            .ok_or_else(|| exec_datafusion_err!("the time {time} (microseconds since 1970) is beyond the calendar"))
    }
}

impl ScalarUDFImpl for DateTrunc {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn aliases(&self) -> &[String] {
        self.engine.aliases()
    }

    fn signature(&self) -> &Signature {
        self.engine.signature()
    }

    fn return_type(&self, kinds: &[DataType]) -> Result<DataType> {
        self.engine.return_type(kinds)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.engine.return_field_from_args(args)
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        self.engine.output_ordering(input)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.engine.documentation()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let step = match args.args.first() {
            Some(ColumnarValue::Scalar(unit)) => unit.try_as_str().flatten().and_then(Step::named),
            _ => None,
        };
        let plain = |kind: &DataType| match kind {
            DataType::Timestamp(TimeUnit::Microsecond, zone) => zone.as_deref().is_none_or(is_utc),
            _ => false,
        };
        match (step, args.args.get(1)) {
            (Some(step), Some(ColumnarValue::Array(times))) if plain(times.data_type()) => {
                let times = times.as_primitive::<TimestampMicrosecondType>();
                let cut: PrimitiveArray<TimestampMicrosecondType> = match step {
                    Step::Micros(step) => times.unary(|time| time.wrapping_sub(time.rem_euclid(step))),
                    step => times.try_unary(|time| step.of(time))?,
                };
                Ok(ColumnarValue::Array(Arc::new(cut.with_timezone_opt(times.timezone()))))
            }
            (Some(step), Some(ColumnarValue::Scalar(ScalarValue::TimestampMicrosecond(time, zone))))
                if zone.as_deref().is_none_or(is_utc) =>
            {
                let cut = time.map(|time| step.of(time)).transpose()?;
                Ok(ColumnarValue::Scalar(ScalarValue::TimestampMicrosecond(cut, zone.clone())))
            }
            _ => self.engine.invoke_with_args(args),
        }
    }
}
