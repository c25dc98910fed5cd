//! Parameters of queries for a day: bound as values, never pasted into the text.

use std::ops::Range;

use chrono::NaiveDate;
use tidetable_sql::ScalarValue;

/// What a query for a day may ask for beside its tables: `$day`, the moments `$from` and `$to` (exclusive) between which
/// it lies (`bounds`, microseconds since the epoch), and `$now`, the logical time of the run.
pub fn day_params(day: NaiveDate, bounds: &Range<i64>, now: i64) -> [(&'static str, ScalarValue); 4] {
    let time = |micros| ScalarValue::TimestampMicrosecond(Some(micros), Some("UTC".into()));
    let days = day.signed_duration_since(NaiveDate::default()).num_days();
    let day = ScalarValue::Date32(i32::try_from(days).ok());
    [("day", day), ("from", time(bounds.start)), ("to", time(bounds.end)), ("now", time(now))]
}
