//! `date_part` of UTC times in integer arithmetic. DataFusion 55.2 asks a zone table for the offset of each value.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array};
use arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};
use datafusion::error::Result;
use datafusion::functions::datetime;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult};
use datafusion::logical_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF};
use tidetable_layout::time::{DAY, HOUR, MINUTE, SECOND, civil_from_days, days_from_civil, iso_week};

use crate::overridden::{Coercion, Override, overridden};
use crate::times::micros::by_unit;
use crate::times::zones::is_utc;

/// DataFusion's `date_part`, computed in integers for times in UTC.
pub(crate) fn function() -> Arc<ScalarUDF> {
    overridden(datetime::date_part(), DatePart)
}

/// Plans `extract(part from time)` as this function; DataFusion plans its own without looking it up by name.
#[derive(Debug)]
pub(crate) struct Extract;

impl ExprPlanner for Extract {
    fn plan_extract(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(Expr::ScalarFunction(ScalarFunction::new_udf(function(), args))))
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DatePart;

impl Override for DatePart {
    fn coerced(&self) -> Option<Coercion> {
        None
    }

    fn result(&self, args: &ScalarFunctionArgs) -> Result<Option<ColumnarValue>> {
        let [ColumnarValue::Scalar(name), ColumnarValue::Array(times)] = args.args.as_slice() else { return Ok(None) };
        Ok(name
            .try_as_str()
            .flatten()
            .and_then(|name| parts(&name.to_ascii_lowercase(), times))
            .map(ColumnarValue::Array))
    }
}

/// The part `name` of each time; `None` for parts and types that DataFusion computes.
fn parts(name: &str, times: &ArrayRef) -> Option<ArrayRef> {
    let DataType::Timestamp(TimeUnit::Microsecond, zone) = times.data_type() else { return None };
    if zone.as_deref().is_some_and(|zone| !is_utc(zone)) {
        return None;
    }

    let times = times.as_primitive::<TimestampMicrosecondType>();
    let parts: Int32Array = match name {
        "hour" => by_unit::<_, HOUR>(times, |hour| hour.rem_euclid(24) as i32),
        "minute" => by_unit::<_, MINUTE>(times, |minute| minute.rem_euclid(60) as i32),
        "second" => by_unit::<_, SECOND>(times, |second| second.rem_euclid(60) as i32),
        "isodow" => by_unit::<_, DAY>(times, |day| weekday(day) as i32 + 1),
        "dow" => by_unit::<_, DAY>(times, |day| ((weekday(day) + 1) % 7) as i32),
        "day" => by_unit::<_, DAY>(times, |day| civil_from_days(day).2 as i32),
        "month" => by_unit::<_, DAY>(times, |day| civil_from_days(day).1 as i32),
        "quarter" => by_unit::<_, DAY>(times, |day| ((civil_from_days(day).1 - 1) / 3 + 1) as i32),
        "year" => by_unit::<_, DAY>(times, |day| civil_from_days(day).0 as i32),
        "doy" => by_unit::<_, DAY>(times, |day| (day - days_from_civil(civil_from_days(day).0, 1, 1) + 1) as i32),
        "isoyear" => by_unit::<_, DAY>(times, |day| iso_week(day).0 as i32),
        "week" => by_unit::<_, DAY>(times, |day| iso_week(day).1 as i32),
        _ => return None,
    };
    Some(Arc::new(parts))
}

/// The day of the week of a day since the epoch, 0 for Monday. The epoch was a Thursday.
#[inline]
fn weekday(day: i64) -> i64 {
    (day + 3).rem_euclid(7)
}

#[cfg(test)]
mod tests {
    use arrow::array::TimestampMicrosecondArray;
    use arrow::compute::{DatePart as ArrowPart, date_part};

    use super::*;

    const PARTS: [(&str, ArrowPart); 12] = [
        ("year", ArrowPart::Year),
        ("isoyear", ArrowPart::YearISO),
        ("quarter", ArrowPart::Quarter),
        ("month", ArrowPart::Month),
        ("week", ArrowPart::Week),
        ("day", ArrowPart::Day),
        ("doy", ArrowPart::DayOfYear),
        ("dow", ArrowPart::DayOfWeekSunday0),
        ("isodow", ArrowPart::DayOfWeekMonday1),
        ("hour", ArrowPart::Hour),
        ("minute", ArrowPart::Minute),
        ("second", ArrowPart::Second),
    ];

    fn same_as_arrow(micros: Vec<Option<i64>>) {
        let times: ArrayRef = Arc::new(TimestampMicrosecondArray::from(micros).with_timezone("UTC"));
        for (name, part) in PARTS {
            let theirs = date_part(times.as_ref(), part).unwrap();
            assert_eq!(&parts(name, &times).unwrap(), &theirs, "{name} of {times:?}");
        }
    }

    #[test]
    fn parts_of_every_day_of_eight_hundred_years_equal_those_of_arrow() {
        let days = -400 * 366..400 * 366;
        same_as_arrow(days.map(|day| Some(day * DAY + day.rem_euclid(86_400) * SECOND)).chain([None]).collect());
    }

    #[test]
    fn times_at_both_ends_are_no_neighbours() {
        let times = [-i64::MAX, i64::MAX, -i64::MAX, i64::MIN, i64::MAX];
        for (name, _) in PARTS {
            let of = |times: &[i64]| {
                parts(name, &(Arc::new(TimestampMicrosecondArray::from(times.to_vec())) as ArrayRef)).unwrap()
            };
            let alone: Vec<i32> =
                times.iter().map(|time| of(&[*time]).as_primitive::<arrow::datatypes::Int32Type>().value(0)).collect();
            assert_eq!(of(&times).as_primitive::<arrow::datatypes::Int32Type>().values(), alone.as_slice(), "{name}");
        }
    }

    #[test]
    fn parts_of_random_times_equal_those_of_arrow() {
        let mut state = 42u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Years 1 to 9999.
            Some(-62_135_596_800_000_000 + ((u128::from(state) * 315_537_897_600_000_000) >> 64) as i64)
        };
        same_as_arrow((0..100_000).map(|_| random()).collect());
    }
}
