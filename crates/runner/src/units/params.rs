//! Parameters of queries, bound as values.

use std::ops::Range;

use tidetable_sql::ScalarValue;

use tidetable_job::{Export, Per, Period};

/// The parameters of a query for a period: `$day` (of a month, the first), the bounds `$from` and `$to`
/// (exclusive; `bounds`, microseconds since the epoch), and `$now`, the logical time of the run.
/// The period of all times has only `$now`.
pub(crate) fn period_params(period: &Period, bounds: &Range<i64>, now: i64) -> Vec<(&'static str, ScalarValue)> {
    let time = |micros| ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into()));
    let mut params = vec![("now", time(now))];
    if period.per != Per::Query {
        let day = period.start.date().signed_duration_since(chrono::NaiveDate::default()).num_days();
        params.push(("day", ScalarValue::Date32(i32::try_from(day).ok())));
        params.extend([("from", time(bounds.start)), ("to", time(bounds.end))]);
    }
    params
}

/// Parameters of the right types with arbitrary values, for queries that are only planned.
pub fn probe_params(export: &Export) -> Vec<(&'static str, ScalarValue)> {
    period_params(&Period { per: export.per, ..Period::all() }, &(0..0), 0)
}
