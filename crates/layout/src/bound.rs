//! What a query knows of record fields.

use std::cmp::Ordering;
use std::ops::Bound;

use crate::datum::Datum;
use crate::value::FieldType;

/// One value of a record field.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// Of a `uint64` field.
    UInt64(u64),
    /// Of an `int64` field.
    Int64(i64),
    /// Of a `float64` field.
    Float64(f64),
    /// Unscaled digits, in the scale of the field.
    Decimal(i128),
    /// Of a text field.
    Text(String),
    /// Of a bool field.
    Bool(bool),
    /// Microseconds since the epoch.
    Timestamp(i64),
    /// Days since the epoch.
    Date(i32),
}

/// Values that a field may have.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueSet {
    /// One of these.
    In(Vec<Scalar>),
    /// Between these.
    Range {
        /// Lower end.
        low: Bound<Scalar>,
        /// Upper end.
        high: Bound<Scalar>,
    },
}

/// A condition on a record field; several hold together.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldBound {
    /// Name of the record field.
    pub field: String,
    /// Its values; null is none of them.
    pub set: ValueSet,
}

/// Row keys from `start` to before `end`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// First key, inclusive.
    pub start: Vec<u8>,
    /// First key after the range; `None` if it has no end.
    pub end: Option<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    pub fn all() -> Self {
        Self { start: Vec::new(), end: None }
    }

    /// Every key that starts with `prefix`.
    pub fn prefix(prefix: &[u8]) -> Self {
        Self { start: prefix.to_vec(), end: successor(prefix) }
    }

    /// The one key `key`.
    pub fn of_key(key: &[u8]) -> Self {
        let mut end = key.to_vec();
        end.push(0);
        Self { start: key.to_vec(), end: Some(end) }
    }

    /// The key, if there is only one.
    pub fn only_key(&self) -> Option<&[u8]> {
        let rest = self.end.as_deref()?.strip_prefix(self.start.as_slice())?;
        (rest == [0]).then_some(&self.start)
    }

    /// Whether all keys from `first` to `last`, both inclusive, lie in it.
    pub fn covers(&self, first: &[u8], last: &[u8]) -> bool {
        self.contains(first) && self.contains(last)
    }

    /// Whether `key` lies in it.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start.as_slice() <= key && self.end.as_deref().is_none_or(|end| key < end)
    }
}

/// The least bytes greater than all that start with `prefix`.
pub(crate) fn successor(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut out = prefix.get(..=last)?.to_vec();
    if let Some(byte) = out.last_mut() {
        *byte += 1;
    }
    Some(out)
}

impl Scalar {
    /// The scalar as a value of `kind`; `None` if it is of another type.
    pub(crate) fn datum(&self, kind: FieldType) -> Option<Datum<'_>> {
        Some(match (self, kind) {
            (Self::UInt64(value), FieldType::UInt64) => Datum::UInt(*value),
            (Self::UInt64(value), FieldType::Int64) => Datum::Int(i64::try_from(*value).ok()?),
            (Self::Int64(value), FieldType::Int64) => Datum::Int(*value),
            (Self::Int64(value), FieldType::UInt64) => Datum::UInt(u64::try_from(*value).ok()?),
            (Self::Float64(value), FieldType::Float64) => Datum::Float(*value),
            (Self::Decimal(digits), FieldType::Decimal { scale, .. }) => Datum::Decimal(*digits, scale),
            (Self::Text(text), FieldType::Text) => Datum::Text(text),
            (Self::Bool(value), FieldType::Bool) => Datum::Bool(*value),
            (Self::Timestamp(time), FieldType::Timestamp) => Datum::Time(*time),
            (Self::Date(days), FieldType::Date) => Datum::Date(*days),
            _ => return None,
        })
    }

    /// The scalar as an integer whose order is the values' order.
    fn integer(&self) -> Option<i128> {
        Some(match self {
            Self::UInt64(value) => (*value).into(),
            Self::Int64(value) | Self::Timestamp(value) => (*value).into(),
            Self::Date(days) => (*days).into(),
            _ => return None,
        })
    }
}

/// All that is known of one field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Known {
    Nothing,
    /// One of these, sorted if they are integers.
    In(Vec<Scalar>),
    /// From, to, both inclusive.
    Integers(i128, i128),
    /// From, to; either end may be open. Excluded ends are taken in: ranges may hold more than asked for.
    Texts(Option<String>, Option<String>),
}

/// Brings the bounds of one field together.
pub(crate) fn known(bounds: &[FieldBound], field: &str, kind: FieldType) -> Known {
    let mut out = Known::Nothing;
    for bound in bounds.iter().filter(|bound| bound.field == field) {
        let next = match &bound.set {
            ValueSet::In(values) => Known::In(values.clone()),
            ValueSet::Range { low, high } => range(low, high, kind),
        };
        out = both(out, next);
    }
    out
}

fn range(low: &Bound<Scalar>, high: &Bound<Scalar>, kind: FieldType) -> Known {
    match kind {
        FieldType::UInt64 | FieldType::Int64 | FieldType::Timestamp | FieldType::Date => {
            let end = |bound: &Bound<Scalar>, open: i128, step: i128| match bound {
                Bound::Unbounded => Some(open),
                Bound::Included(value) => value.integer(),
                Bound::Excluded(value) => value.integer().map(|value| value + step),
            };
            let ends = end(low, i128::MIN, 1).zip(end(high, i128::MAX, -1));
            ends.map_or(Known::Nothing, |(low, high)| Known::Integers(low, high))
        }
        FieldType::Text => {
            let end = |bound: &Bound<Scalar>| match bound {
                Bound::Included(Scalar::Text(text)) | Bound::Excluded(Scalar::Text(text)) => Some(text.clone()),
                _ => None,
            };
            Known::Texts(end(low), end(high))
        }
        _ => Known::Nothing,
    }
}

fn both(left: Known, right: Known) -> Known {
    match (left, right) {
        (Known::Nothing, known) | (known, Known::Nothing) => known,
        (Known::In(values), other) | (other, Known::In(values)) => {
            Known::In(values.into_iter().filter(|value| holds(&other, value)).collect())
        }
        (Known::Integers(a, b), Known::Integers(c, d)) => Known::Integers(a.max(c), b.min(d)),
        (Known::Texts(a, b), Known::Texts(c, d)) => {
            let high = match (b, d) {
                (Some(b), Some(d)) => Some(b.min(d)),
                (b, d) => b.or(d),
            };
            // `None` is less than every text, as an open lower end should be.
            Known::Texts(a.max(c), high)
        }
        (known, _) => known,
    }
}

/// Whether `value` may be; true if it cannot be told.
fn holds(known: &Known, value: &Scalar) -> bool {
    match known {
        Known::Nothing => true,
        Known::In(values) => values.iter().any(|own| match (own.integer(), value.integer()) {
            (Some(own), Some(value)) => own.cmp(&value) == Ordering::Equal,
            _ => own == value,
        }),
        Known::Integers(low, high) => value.integer().is_none_or(|value| (*low..=*high).contains(&value)),
        Known::Texts(low, high) => match value {
            Scalar::Text(text) => {
                low.as_ref().is_none_or(|low| low <= text) && high.as_ref().is_none_or(|high| text <= high)
            }
            _ => true,
        },
    }
}
