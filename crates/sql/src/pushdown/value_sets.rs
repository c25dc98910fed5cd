//! Value sets of columns: constants, intersection, union.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::{Bound, Range};

use datafusion::scalar::ScalarValue;
use tidetable_layout::pushdown::{FieldBound, Scalar, ValueSet};

/// For each filtered column, by name, the values of it that may pass.
pub(crate) type Bounds = BTreeMap<String, ValueSet>;

/// A constant as a layout scalar; `None` for null and for unsupported types. Floats are unsupported: their text does
/// not sort as they do, so they give no key range.
pub(crate) fn scalar(value: &ScalarValue) -> Option<Scalar> {
    Some(match value {
        ScalarValue::UInt64(Some(value)) => Scalar::UInt64(*value),
        ScalarValue::Int64(Some(value)) => Scalar::Int64(*value),
        ScalarValue::Decimal128(Some(value), ..) => Scalar::Decimal(*value),
        ScalarValue::Utf8(Some(value)) => Scalar::Text(value.clone()),
        ScalarValue::Boolean(Some(value)) => Scalar::Bool(*value),
        ScalarValue::TimestampMicrosecond(Some(value), _) => Scalar::Timestamp(*value),
        ScalarValue::Date32(Some(value)) => Scalar::Date(*value),
        _ => return None,
    })
}

/// Order of two constants; `None` if their types differ.
fn compare(a: &Scalar, b: &Scalar) -> Option<Ordering> {
    Some(match (a, b) {
        (Scalar::UInt64(a), Scalar::UInt64(b)) => a.cmp(b),
        (Scalar::Int64(a), Scalar::Int64(b)) => a.cmp(b),
        (Scalar::Decimal(a), Scalar::Decimal(b)) => a.cmp(b),
        (Scalar::Text(a), Scalar::Text(b)) => a.cmp(b),
        (Scalar::Bool(a), Scalar::Bool(b)) => a.cmp(b),
        (Scalar::Timestamp(a), Scalar::Timestamp(b)) => a.cmp(b),
        (Scalar::Date(a), Scalar::Date(b)) => a.cmp(b),
        _ => return None,
    })
}

/// Whether a set has certainly no value.
pub(crate) fn is_empty(set: &ValueSet) -> bool {
    match set {
        ValueSet::In(values) => values.is_empty(),
        ValueSet::Range { low: Bound::Included(low), high: Bound::Included(high) } => {
            compare(low, high) == Some(Ordering::Greater)
        }
        ValueSet::Range { low: Bound::Included(low) | Bound::Excluded(low), high: Bound::Excluded(high) }
        | ValueSet::Range { low: Bound::Excluded(low), high: Bound::Included(high) } => {
            compare(low, high).is_some_and(Ordering::is_ge)
        }
        ValueSet::Range { .. } => false,
    }
}

/// Whether a set may have the value; also true where it cannot be compared with the bounds.
fn contains(set: &ValueSet, value: &Scalar) -> bool {
    let order = |other: &Scalar| compare(value, other);

    match set {
        ValueSet::In(values) => values.iter().any(|other| order(other) == Some(Ordering::Equal)),
        ValueSet::Range { low, high } => {
            let above = match low {
                Bound::Included(low) => order(low).is_none_or(Ordering::is_ge),
                Bound::Excluded(low) => order(low).is_none_or(Ordering::is_gt),
                Bound::Unbounded => true,
            };
            let below = match high {
                Bound::Included(high) => order(high).is_none_or(Ordering::is_le),
                Bound::Excluded(high) => order(high).is_none_or(Ordering::is_lt),
                Bound::Unbounded => true,
            };
            above && below
        }
    }
}

/// The tighter of two bounds: `tighter` is how its value compares with the other's.
fn tighter(a: Bound<Scalar>, b: Bound<Scalar>, tighter: Ordering) -> Bound<Scalar> {
    let (left, right) = match (&a, &b) {
        (Bound::Unbounded, _) => return b,
        (_, Bound::Unbounded) => return a,
        (Bound::Included(left) | Bound::Excluded(left), Bound::Included(right) | Bound::Excluded(right)) => {
            (left, right)
        }
    };
    match compare(left, right) {
        Some(Ordering::Equal) if matches!(a, Bound::Included(_)) => b,
        Some(order) if order == tighter || order == Ordering::Equal => a,
        Some(_) => b,
        None => a,
    }
}

/// The values that are in both sets.
fn intersect(a: ValueSet, b: ValueSet) -> ValueSet {
    match (a, b) {
        (ValueSet::In(values), other) | (other, ValueSet::In(values)) => {
            ValueSet::In(values.into_iter().filter(|value| contains(&other, value)).collect())
        }
        (ValueSet::Range { low, high }, ValueSet::Range { low: other_low, high: other_high }) => ValueSet::Range {
            low: tighter(low, other_low, Ordering::Greater),
            high: tighter(high, other_high, Ordering::Less),
        },
    }
}

/// Narrows `bounds` by those of one more filter, which must hold too.
pub(crate) fn intersect_bounds(bounds: &mut Bounds, more: Bounds) {
    for (column, set) in more {
        let narrowed = match bounds.remove(&column) {
            Some(known) => intersect(known, set),
            None => set,
        };
        bounds.insert(column, narrowed);
    }
}

/// Bounds of a disjunction: unions of value lists, for columns in both; `None` if there are none.
pub(crate) fn union_bounds(a: Bounds, mut b: Bounds) -> Option<Bounds> {
    let joined = a.into_iter().filter_map(|(column, set)| match (set, b.remove(&column)?) {
        (ValueSet::In(mut values), ValueSet::In(more)) => {
            values.extend(more);
            Some((column, ValueSet::In(values)))
        }
        _ => None,
    });
    let joined: Bounds = joined.collect();
    (!joined.is_empty()).then_some(joined)
}

/// The bounds in the form that a layout makes key ranges of.
pub(crate) fn field_bounds(bounds: &Bounds) -> Vec<FieldBound> {
    bounds.iter().map(|(field, set)| FieldBound { field: field.clone(), set: set.clone() }).collect()
}

/// The span of a set of times, in microseconds, half-open.
pub(crate) fn time_range(set: &ValueSet) -> Range<i64> {
    match set {
        ValueSet::In(values) => {
            let times: Vec<i64> = values.iter().filter_map(instant).collect();
            let start = times.iter().min().copied().unwrap_or(i64::MAX);
            let last = times.iter().max();
            start..last.map_or(i64::MIN, |last| last.saturating_add(1))
        }
        ValueSet::Range { low, high } => {
            let start = match low {
                Bound::Included(low) => instant(low),
                Bound::Excluded(low) => instant(low).map(|low| low.saturating_add(1)),
                Bound::Unbounded => None,
            };
            let end = match high {
                Bound::Included(high) => instant(high).map(|high| high.saturating_add(1)),
                Bound::Excluded(high) => instant(high),
                Bound::Unbounded => None,
            };
            start.unwrap_or(i64::MIN)..end.unwrap_or(i64::MAX)
        }
    }
}

/// The time, in microseconds, that a value is; `None` for values of other types.
fn instant(value: &Scalar) -> Option<i64> {
    if let Scalar::Timestamp(time) = value { Some(*time) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(low: Bound<u64>, high: Bound<u64>) -> ValueSet {
        ValueSet::Range { low: low.map(Scalar::UInt64), high: high.map(Scalar::UInt64) }
    }

    fn list(values: &[u64]) -> ValueSet {
        ValueSet::In(values.iter().copied().map(Scalar::UInt64).collect())
    }

    #[test]
    fn two_filters_of_a_column_intersect() {
        let a = range(Bound::Included(3), Bound::Unbounded);
        let b = range(Bound::Excluded(3), Bound::Included(9));
        let c = range(Bound::Included(1), Bound::Excluded(9));
        let left = intersect(intersect(a, b), c);
        assert_eq!(left, range(Bound::Excluded(3), Bound::Excluded(9)));
        assert_eq!(intersect(list(&[3, 4, 9]), left.clone()), list(&[4]));
        assert!(is_empty(&intersect(list(&[9]), left)));
        assert!(is_empty(&range(Bound::Included(4), Bound::Excluded(4))));
        assert!(!is_empty(&range(Bound::Included(4), Bound::Included(4))));
    }

    #[test]
    fn times_become_half_open_ranges() {
        let set =
            ValueSet::Range { low: Bound::Excluded(Scalar::Timestamp(5)), high: Bound::Included(Scalar::Timestamp(9)) };
        assert_eq!(time_range(&set), 6..10);
        assert_eq!(time_range(&ValueSet::In(vec![Scalar::Timestamp(7), Scalar::Timestamp(3)])), 3..8);
    }

    #[test]
    fn disjunctions_unite_lists_of_columns_in_both_sides() {
        let bounds = |column: &str, set: ValueSet| Bounds::from([(column.to_owned(), set)]);
        let joined = union_bounds(bounds("a", list(&[1])), bounds("a", list(&[2])));
        assert_eq!(joined, Some(bounds("a", list(&[1, 2]))));
        assert_eq!(union_bounds(bounds("a", list(&[1])), bounds("b", list(&[2]))), None);
        assert_eq!(union_bounds(bounds("a", list(&[1])), Bounds::new()), None);
        let mut both = bounds("a", list(&[1]));
        both.insert("b".to_owned(), list(&[1]));
        assert_eq!(union_bounds(bounds("a", list(&[2])), both), Some(bounds("a", list(&[2, 1]))));
        let range = range(Bound::Included(1), Bound::Unbounded);
        assert_eq!(union_bounds(bounds("a", list(&[1])), bounds("a", range)), None);
    }
}
