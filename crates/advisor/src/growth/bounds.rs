//! What a query fixes.

use std::collections::BTreeSet;
use std::ops::Bound;

use tidetable_layout::pushdown::{FieldBound, Scalar, ValueSet};
use tidetable_layout::time::{DAY, SECOND};

/// The columns that a query fixes, and its range of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryBounds {
    /// Columns of which it names the values.
    pub fixed: BTreeSet<String>,
    /// Its range of time, microseconds, from inclusive to exclusive; `None` if that has no end.
    pub time: Option<(i64, i64)>,
    /// Whether it wants nothing from some time on.
    pub is_ended: bool,
}

impl QueryBounds {
    /// The bounds of a predicate. `time` is the event time; a range of it with a beginning only ends `age` microseconds later.
    pub fn of(bounds: &[FieldBound], time: &str, age: Option<i64>) -> Self {
        let named = bounds.iter().filter(|bound| bound.field != time && matches!(bound.set, ValueSet::In(_)));
        let fixed = named.map(|bound| bound.field.clone()).collect();

        let (mut first, mut end) = (None, None);
        for bound in bounds.iter().filter(|bound| bound.field == time) {
            let (low, high) = match &bound.set {
                ValueSet::In(values) => {
                    let times: BTreeSet<i64> = values.iter().filter_map(micros).collect();
                    (times.first().copied(), times.last().map(|last| last + 1))
                }
                ValueSet::Range { low, high } => (start(low), behind(high)),
            };
            first = first.max(low);
            end = match (end, high) {
                (Some(end), Some(high)) => Some(high.min(end)),
                (end, high) => end.or(high),
            };
        }
        let time = match (first, end) {
            (Some(first), Some(end)) => Some((first, end.max(first))),
            (Some(first), None) => age.map(|age| (first, first.saturating_add(age))),
            _ => None,
        };
        Self { fixed, time, is_ended: end.is_some() }
    }

    /// Seconds of its range of time.
    pub fn seconds(&self) -> Option<f64> {
        self.time.map(|(first, end)| (end - first) as f64 / SECOND as f64)
    }

    /// Seconds of the buckets of `step` microseconds that its range of time touches.
    pub fn covered(&self, step: i64) -> Option<f64> {
        let (first, end) = self.time?;
        let last = end.max(first + 1) - 1;
        // Weeks begin on Monday, and 1970-01-01 was a Thursday. Other buckets of several days differ in length.
        let shift = if step == 7 * DAY { 3 * DAY } else { 0 };
        let [first, last] = [first, last].map(|time| (time + shift).div_euclid(step));
        let buckets = last - first + 1;
        Some(buckets as f64 * step as f64 / SECOND as f64)
    }
}

fn start(bound: &Bound<Scalar>) -> Option<i64> {
    match bound {
        Bound::Included(value) => micros(value),
        Bound::Excluded(value) => Some(micros(value)? + 1),
        Bound::Unbounded => None,
    }
}

fn behind(bound: &Bound<Scalar>) -> Option<i64> {
    match bound {
        Bound::Included(value) => Some(micros(value)? + 1),
        Bound::Excluded(value) => micros(value),
        Bound::Unbounded => None,
    }
}

fn micros(value: &Scalar) -> Option<i64> {
    if let Scalar::Timestamp(time) = value { Some(*time) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_predicates() {
        let time = |second: i64| Bound::Included(Scalar::Timestamp(second * SECOND));
        let bound = |field: &str, set| FieldBound { field: field.to_owned(), set };
        let range = |low, high| bound("ts", ValueSet::Range { low, high });
        let host = bound("host", ValueSet::In(vec![Scalar::Text("a".to_owned())]));
        let before = Bound::Excluded(Scalar::Timestamp(70 * SECOND));
        let both = [host, range(time(10), Bound::Unbounded), range(Bound::Unbounded, before)];
        let found = QueryBounds::of(&both, "ts", None);
        assert_eq!(found.fixed.iter().collect::<Vec<_>>(), ["host"]);
        assert_eq!((found.time, found.seconds()), (Some((10 * SECOND, 70 * SECOND)), Some(60.0)));
        // From 0:10 to 1:10 are parts of two minutes, six tens of seconds, and sixty seconds.
        assert_eq!([60, 10, 1].map(|step| found.covered(step * SECOND)), [Some(120.0), Some(60.0), Some(60.0)]);
        assert_eq!(QueryBounds::of(&both[..2], "ts", None).time, None);
        assert_eq!(QueryBounds::of(&both[..2], "ts", Some(7 * SECOND)).seconds(), Some(7.0));
        assert_eq!(QueryBounds::of(&both[..1], "ts", Some(7 * SECOND)).time, None);
    }

    #[test]
    fn a_week_from_monday_is_one_bucket() {
        // 2026-03-02, a Monday.
        let monday = 1_772_409_600 * SECOND;
        let week = QueryBounds { time: Some((monday, monday + 7 * DAY)), ..QueryBounds::default() };
        assert_eq!(week.covered(7 * DAY), Some(7.0 * 86_400.0));
        let later = QueryBounds { time: Some((monday + 1, monday + 7 * DAY + 1)), ..QueryBounds::default() };
        assert_eq!(later.covered(7 * DAY), Some(14.0 * 86_400.0));
    }
}
