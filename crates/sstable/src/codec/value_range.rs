//! Ranges of the values of a column.

use std::ops::Bound;

use arrow::array::{Array, ArrowPrimitiveType, AsArray};
use arrow::buffer::{BooleanBuffer, Buffer};
use arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Float64Type, Int64Type, TimeUnit, TimestampMicrosecondType, UInt64Type,
};

use crate::codec::bit_mask::bits;
use crate::codec::lane::ordinal;
use crate::stats::Scalar;

/// A range of values of a column, which filters push down to streams and stripe statistics. Values are in the order of SQL; nulls are
/// never in a range. Floats are in their total order with equal zeros: NaN is the greatest, a negative NaN the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueRange {
    /// Whether it is a range of floats; otherwise of integers, times, dates, or decimals in units of their scale.
    floats: bool,
    /// The least value, included. A float stands for its [`ordinal`].
    least: i128,
    /// The greatest value, included; below `least` if the range is empty.
    greatest: i128,
}

impl ValueRange {
    /// The range `least..=greatest` of integers, of times in microseconds, of dates in days, or of decimals in units of their scale.
    pub fn integers(least: i128, greatest: i128) -> Self {
        Self { floats: false, least, greatest }
    }

    /// The floats between two bounds, each of which may be included, excluded or missing.
    pub fn floats(low: Bound<f64>, high: Bound<f64>) -> Self {
        let least = match low {
            Bound::Included(low) => ordinal(low).into(),
            Bound::Excluded(low) => i128::from(ordinal(low)) + 1,
            Bound::Unbounded => i64::MIN.into(),
        };
        let greatest = match high {
            Bound::Included(high) => ordinal(high).into(),
            Bound::Excluded(high) => i128::from(ordinal(high)) - 1,
            Bound::Unbounded => i64::MAX.into(),
        };
        Self { floats: true, least, greatest }
    }

    /// The values that are in both; `None` if one is a range of floats and the other is not.
    #[must_use]
    pub fn intersection(self, other: Self) -> Option<Self> {
        (self.floats == other.floats).then(|| Self {
            floats: self.floats,
            least: self.least.max(other.least),
            greatest: self.greatest.min(other.greatest),
        })
    }

    /// Whether a column with these least and greatest values may have a value in the range.
    pub fn overlaps(self, range: (Scalar, Scalar)) -> bool {
        let (low, high) = range;
        self.least <= position(high) && position(low) <= self.greatest
    }

    /// Whether it is a range of floats, so that it applies to float columns only.
    pub(crate) fn has_floats(self) -> bool {
        self.floats
    }

    /// The least and the greatest of its integers, or of the [`ordinal`]s of its floats.
    pub(crate) fn ends(self) -> (i128, i128) {
        (self.least, self.greatest)
    }

    /// Evaluates the range for each of `values`: true where the value is in it, false for nulls. `None` for values of another type.
    pub fn mask(self, values: &dyn Array) -> Option<BooleanBuffer> {
        const I64: (i128, i128) = (i64::MIN as i128, i64::MAX as i128);

        match values.data_type() {
            DataType::Float64 if self.floats => self.of::<Float64Type, i64>(values, I64, |end| end as i64, ordinal),
            _ if self.floats => None,
            DataType::Int64 => self.of::<Int64Type, i64>(values, I64, |end| end as i64, |value| value),
            DataType::UInt64 => {
                self.of::<UInt64Type, u64>(values, (0, u64::MAX.into()), |end| end as u64, |value| value)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                self.of::<TimestampMicrosecondType, i64>(values, I64, |end| end as i64, |value| value)
            }
            DataType::Date32 => self.of::<Date32Type, i64>(values, I64, |end| end as i64, i64::from),
            DataType::Decimal128(..) => {
                self.of::<Decimal128Type, i128>(values, (i128::MIN, i128::MAX), |end| end, |value| value)
            }
            _ => None,
        }
    }

    /// As [`Self::mask`], for values that `place` maps to integers between `limits`; `end` converts a bound to the type in which
    /// they are compared.
    fn of<T: ArrowPrimitiveType, P: PartialOrd + Copy>(
        self,
        values: &dyn Array,
        limits: (i128, i128),
        end: impl Fn(i128) -> P,
        place: impl Fn(T::Native) -> P,
    ) -> Option<BooleanBuffer> {
        let array = values.as_primitive_opt::<T>()?;
        let (least, greatest) = (self.least.max(limits.0), self.greatest.min(limits.1));
        if least > greatest {
            return Some(BooleanBuffer::new_unset(array.len()));
        }

        let (least, greatest) = (end(least), end(greatest));
        let words = bits(array.values(), |value| {
            let value = place(value);
            (value >= least) & (value <= greatest)
        });

        let mask = BooleanBuffer::new(Buffer::from_vec(words), 0, array.len());
        Some(match array.nulls() {
            Some(nulls) => &mask & nulls.inner(),
            None => mask,
        })
    }
}

/// Where a value lies in a [`ValueRange`].
fn position(value: Scalar) -> i128 {
    match value {
        Scalar::Float64(value) => i128::from(ordinal(value)),
        Scalar::UInt64(value) => value.into(),
        Scalar::Int64(value) | Scalar::Timestamp(value) => value.into(),
        Scalar::Decimal(value) => value,
        Scalar::Date(value) => value.into(),
    }
}
