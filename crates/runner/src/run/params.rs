//! Parameters of queries: bound as values, never pasted into the text.

use std::ops::Range;

use tidetable_sql::ScalarValue;

use crate::job::{Export, Per};
use crate::period::Period;

/// What the query of a period may ask for beside its tables: `$day` (the first of a month), the moments `$from` and `$to`
/// (exclusive) between which it lies (`bounds`, microseconds since the epoch), and `$now`, the logical time of the run.
/// One of everything has only `$now`.
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

/// The parameters of an export with values that only have the right types: for queries that are planned and not run.
pub fn probe_params(export: &Export) -> Vec<(&'static str, ScalarValue)> {
    period_params(&Period { per: export.per, ..Period::all() }, &(0..0), 0)
}
