//! Predicates on record fields, and their intersection per field.

use std::cmp::Ordering;
use std::ops::Bound;

use crate::scalar::Scalar;
use crate::schema::FieldType;

/// The values that a predicate allows.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueSet {
    /// One of these.
    In(Vec<Scalar>),
    /// A range.
    Range {
        /// Lower end.
        low: Bound<Scalar>,
        /// Upper end.
        high: Bound<Scalar>,
    },
}

/// A predicate on a record field. Several predicates are conjuncts.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldBound {
    /// Name of the record field.
    pub field: String,
    /// The allowed values; null never matches.
    pub set: ValueSet,
}

/// The intersection of all predicates on one field.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum KnownValues {
    Nothing,
    /// One of these, sorted if they are integers.
    In(Vec<Scalar>),
    /// From, to, both inclusive.
    Integers(i128, i128),
    /// From, to, both inclusive; either end may be open. Excluded ends are included: a range may be wider than the predicate.
    Texts(Option<String>, Option<String>),
}

/// Intersects the predicates on one field.
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

fn range(low: &Bound<Scalar>, high: &Bound<Scalar>, kind: FieldType) -> KnownValues {
    match kind {
        FieldType::UInt64 | FieldType::Int64 | FieldType::Timestamp | FieldType::Date => {
            let end = |bound: &Bound<Scalar>, open: i128, step: i128| match bound {
                Bound::Unbounded => Some(open),
                Bound::Included(value) => value.integer(),
                Bound::Excluded(value) => value.integer().map(|value| value + step),
            };
            let ends = end(low, i128::MIN, 1).zip(end(high, i128::MAX, -1));
            ends.map_or(KnownValues::Nothing, |(low, high)| KnownValues::Integers(low, high))
        }
        FieldType::Text => {
            let end = |bound: &Bound<Scalar>| match bound {
                Bound::Included(Scalar::Text(text)) | Bound::Excluded(Scalar::Text(text)) => Some(text.clone()),
                _ => None,
            };
            KnownValues::Texts(end(low), end(high))
        }
        _ => KnownValues::Nothing,
    }
}

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

/// Whether `value` is allowed; true if unknown.
fn holds(known: &KnownValues, value: &Scalar) -> bool {
    match known {
        KnownValues::Nothing => true,
        KnownValues::In(values) => values.iter().any(|own| match (own.integer(), value.integer()) {
            (Some(own), Some(value)) => own.cmp(&value) == Ordering::Equal,
            _ => own == value,
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
