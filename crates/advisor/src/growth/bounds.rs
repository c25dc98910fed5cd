//! What a query fixes.

use std::collections::BTreeSet;
use std::ops::Bound;

use tidetable_layout::pushdown::{FieldBound, Scalar, ValueSet};
use tidetable_layout::time::SECOND;

/// The columns that a query fixes, and how long its range of time is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct QueryBounds {
    /// Columns of which it names the values.
    pub fixed: BTreeSet<String>,
    /// Seconds of its range of time; `None` if that has no end.
    pub seconds: Option<f64>,
}

impl QueryBounds {
    /// The bounds of a predicate. `time` is the event time; a range of it with a beginning only ends `age` microseconds later.
    pub fn of(bounds: &[FieldBound], time: &str, age: Option<i64>) -> Self {
        let is_fixed = |bound: &&FieldBound| bound.field != time && matches!(bound.set, ValueSet::In(_));
        let fixed = bounds.iter().filter(is_fixed).map(|bound| bound.field.clone()).collect();

        let (mut first, mut last) = (None, None);
        for bound in bounds.iter().filter(|bound| bound.field == time) {
            let (low, high) = match &bound.set {
                ValueSet::In(values) => {
                    let times = || values.iter().filter_map(micros);
                    (times().min(), times().max())
                }
                ValueSet::Range { low, high } => (end(low), end(high)),
            };
            first = first.max(low);
            last = match (last, high) {
                (Some(last), Some(high)) => Some(high.min(last)),
                (last, high) => last.or(high),
            };
        }
        let length = match (first, last) {
            (Some(first), Some(last)) => Some((last - first).max(0)),
            (Some(_), None) => age,
            _ => None,
        };
        Self { fixed, seconds: length.map(|length| length as f64 / SECOND as f64) }
    }
}

fn end(bound: &Bound<Scalar>) -> Option<i64> {
    match bound {
        Bound::Included(value) | Bound::Excluded(value) => micros(value),
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
        let both = [host.clone(), range(time(10), Bound::Unbounded), range(Bound::Unbounded, time(70))];
        let found = QueryBounds::of(&both, "ts", None);
        assert_eq!((found.fixed.into_iter().collect::<Vec<_>>(), found.seconds), (vec!["host".to_owned()], Some(60.0)));
        assert_eq!(QueryBounds::of(&both[..2], "ts", None).seconds, None);
        assert_eq!(QueryBounds::of(&both[..2], "ts", Some(7 * SECOND)).seconds, Some(7.0));
        assert_eq!(QueryBounds::of(&both[..1], "ts", Some(7 * SECOND)).seconds, None);
    }
}
