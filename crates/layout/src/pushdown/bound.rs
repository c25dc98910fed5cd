//! Predicates on record fields, and their intersection per field.

use std::cmp::Ordering;
use std::ops::Bound;

use crate::scalar::Scalar;
use crate::schema::FieldType;

/// The values that a predicate allows for one field.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueSet {
    /// One of these values.
    In(Vec<Scalar>),
    /// A value between two bounds.
    Range {
        /// The lower end of the range.
        low: Bound<Scalar>,
        /// The upper end of the range.
        high: Bound<Scalar>,
    },
}

/// A predicate on a record field. Several predicates are conjuncts.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldBound {
    /// The name of the record field.
    pub field: String,
    /// The values that it allows; null never matches.
    pub set: ValueSet,
}

/// What all predicates on one field together allow.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum KnownValues {
    /// No predicate that can be used: any value.
    Nothing,
    /// One of these, sorted if they are integers.
    In(Vec<Scalar>),
    /// From, to, both inclusive.
    Integers(i128, i128),
    /// From, to, both inclusive; either end may be open. Excluded ends are included: a range may be wider than the predicate.
    Texts(Option<String>, Option<String>),
}

/// What the predicates on one field, of type `kind`, together allow.
pub(super) fn known_values(bounds: &[FieldBound], field: &str, kind: FieldType) -> KnownValues {
    let mut out = KnownValues::Nothing;
    for bound in bounds.iter().filter(|bound| bound.field == field) {
        let next = match &bound.set {
            ValueSet::In(values) => KnownValues::In(values.clone()),
            ValueSet::Range { low, high } => range(low, high, kind),
        };
        out = both(out, next);
    }
    out
}

/// What a range of values of type `kind` allows.
fn range(low: &Bound<Scalar>, high: &Bound<Scalar>, kind: FieldType) -> KnownValues {
    match kind {
        FieldType::UInt64 | FieldType::Int64 | FieldType::Timestamp | FieldType::Date => {
            let ends = integer_end(low, i128::MIN, 1).zip(integer_end(high, i128::MAX, -1));
            ends.map_or(KnownValues::Nothing, |(low, high)| KnownValues::Integers(low, high))
        }
        FieldType::Text => KnownValues::Texts(text_end(low), text_end(high)),
        _ => KnownValues::Nothing,
    }
}

/// The end of a range of integers, included: `open` if there is none, one `step` inside an excluded bound.
fn integer_end(bound: &Bound<Scalar>, open: i128, step: i128) -> Option<i128> {
    match bound {
        Bound::Unbounded => Some(open),
        Bound::Included(value) => value.integer(),
        Bound::Excluded(value) => value.integer().map(|value| value + step),
    }
}

/// The end of a range of texts; `None` if it is open.
fn text_end(bound: &Bound<Scalar>) -> Option<String> {
    match bound {
        Bound::Included(Scalar::Text(text)) | Bound::Excluded(Scalar::Text(text)) => Some(text.clone()),
        _ => None,
    }
}

/// What both allow; may be wider if their kinds differ.
fn both(left: KnownValues, right: KnownValues) -> KnownValues {
    match (left, right) {
        (KnownValues::Nothing, known) | (known, KnownValues::Nothing) => known,
        (KnownValues::In(values), other) | (other, KnownValues::In(values)) => {
            KnownValues::In(values.into_iter().filter(|value| holds(&other, value)).collect())
        }
        (KnownValues::Integers(a, b), KnownValues::Integers(c, d)) => KnownValues::Integers(a.max(c), b.min(d)),
        (KnownValues::Texts(a, b), KnownValues::Texts(c, d)) => {
            let high = match (b, d) {
                (Some(b), Some(d)) => Some(b.min(d)),
                (b, d) => b.or(d),
            };
            // `None` is less than every text, as an open lower end should be.
            KnownValues::Texts(a.max(c), high)
        }
        (known, _) => known,
    }
}

/// Whether `value` is allowed; true if that is unknown.
fn holds(known: &KnownValues, value: &Scalar) -> bool {
    match known {
        KnownValues::Nothing => true,
        KnownValues::In(values) => values.iter().any(|allowed| match (allowed.integer(), value.integer()) {
            (Some(allowed), Some(value)) => allowed.cmp(&value) == Ordering::Equal,
            _ => allowed == value,
        }),
        KnownValues::Integers(low, high) => value.integer().is_none_or(|value| (*low..=*high).contains(&value)),
        KnownValues::Texts(low, high) => match value {
            Scalar::Text(text) => {
                low.as_ref().is_none_or(|low| low <= text) && high.as_ref().is_none_or(|high| text <= high)
            }
            _ => true,
        },
    }
}
