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

/// The values between two bounds in the order of SQL, without nulls. Of floats this is the total order, with equal zeros: a NaN is
/// the greatest, one with a sign the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueRange {
    /// Whether the values are floats; otherwise they are integers, times, dates, or decimals in units of their scale.
    floats: bool,
    /// Least and greatest, both included. A float stands for the integer of [`ordinal`].
    least: i128,
    greatest: i128,
}

impl ValueRange {
    /// Integers, times, dates, or decimals in units of their column's scale; both ends are included.
    pub fn integers(least: i128, greatest: i128) -> Self {
        Self { floats: false, least, greatest }
    }

    /// Floats.
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

    /// The values in both; `None` if one has floats and the other has not.
    #[must_use]
    pub fn intersection(self, other: Self) -> Option<Self> {
        (self.floats == other.floats).then(|| Self {
            floats: self.floats,
            least: self.least.max(other.least),
            greatest: self.greatest.min(other.greatest),
        })
    }

    /// Whether it may have a value between these, both included.
    pub fn overlaps(self, (low, high): (Scalar, Scalar)) -> bool {
        let place = |end: Scalar| match end {
            Scalar::Float64(value) => i128::from(ordinal(value)),
            Scalar::UInt64(value) => value.into(),
            Scalar::Int64(value) | Scalar::Timestamp(value) => value.into(),
            Scalar::Decimal(value) => value,
            Scalar::Date(value) => value.into(),
        };
        self.least <= place(high) && place(low) <= self.greatest
    }

    /// Whether it has floats.
    pub(crate) fn has_floats(self) -> bool {
        self.floats
    }

    /// Least and greatest of its integers, or of the [`ordinal`]s of its floats.
    pub(crate) fn ends(self) -> (i128, i128) {
        (self.least, self.greatest)
    }

    /// Which of `values` it has; `None` for values of another type.
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

    /// As [`Self::mask`], for values that `place` maps to integers between `limits`.
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
