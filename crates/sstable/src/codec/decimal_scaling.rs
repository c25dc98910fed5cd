//! Decimal scaling: stores floats that are decimals, and integers with a common factor, as small integers.
//!
//! Meters report thousandths and processors count pages. On scaled meter readings pco produces 6 % fewer bytes than on the
//! floats, in less than half the time (13 against 27 ns per value, pco 1.1 at level 4 on one core), because it neither
//! searches for decimals nor stores residuals.
//!
//! ```text
//! scale   exponent u8 | base i64 | multiple u64         value = (base + integer * multiple) / 10^exponent
//! ```

use crate::codec::float_decimals::{LIMIT, MAX_DECIMALS, POWERS, quotient};
use crate::codec::integer_range::IntegerRange;
use crate::codec::lane::{Lane, ordinal};
use crate::codec::value_range::ValueRange;
use crate::coding::Input;
use crate::error::ReadError;

/// The scale that maps integers to values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scale {
    exponent: u8,
    base: i64,
    multiple: u64,
}

impl Scale {
    /// Integers that are the values.
    pub(crate) const PLAIN: Self = Self { exponent: 0, base: 0, multiple: 1 };

    /// The integers of the values of type `T` in `wanted`, which is of that type; `None` if there are none.
    pub(crate) fn integers<T: Lane>(self, wanted: ValueRange) -> Option<IntegerRange> {
        let (least, greatest) = wanted.ends();
        let (least, greatest) = (least.max(T::ENDS.0), greatest.min(T::ENDS.1));
        let (base, multiple) = (i128::from(self.base), i128::from(self.multiple));
        if least > greatest {
            return None;
        }
        if T::FLOATS {
            // Values ascend with their integers, so the first one that is not less and the last that is not greater are found by
            // halving.
            let limit = i128::from(LIMIT as i64);
            let power = POWERS.get(usize::from(self.exponent)).copied().unwrap_or(1.0);
            let value = |integer: i128| i128::from(ordinal(quotient((base + integer * multiple) as i64, power)));
            let (first, end) = ((-limit - base).div_euclid(multiple) + 1, (limit - base - 1).div_euclid(multiple) + 1);
            let from = partition_point(first, end, |integer| value(integer) < least);
            let to = partition_point(first, end, |integer| value(integer) <= greatest);
            return IntegerRange::between(from, to - 1);
        }
        // Integers are stored by their bits, those of 64 bits without a sign as negative ones.
        let signed = |value: i128| i128::from(value as i64);
        let first = |value: i128| (signed(value) - base + multiple - 1).div_euclid(multiple);
        let last = |value: i128| (signed(value) - base).div_euclid(multiple);
        match signed(least) <= signed(greatest) {
            true => IntegerRange::between(first(least), last(greatest)),
            false => IntegerRange::except(last(greatest) + 1, first(least) - 1),
        }
    }

    /// Finds a scale for `values`, with the scaled integers; `None` if there is none.
    pub(crate) fn find<T: Lane>(values: &[T]) -> Option<(Self, Vec<i64>)> {
        let (exponent, mut integers) = T::decimals(values)?;
        let (base, multiple) = common_multiple(&integers).unwrap_or((0, 1));
        if multiple != 1 {
            integers.iter_mut().for_each(|integer| *integer = (*integer - base) / multiple.cast_signed());
        }
        Some((Self { exponent, base, multiple }, integers))
    }

    /// The number of decimals.
    pub(crate) fn decimals(self) -> u8 {
        self.exponent
    }

    /// Whether the scaled integers are the values themselves.
    pub(crate) fn is_plain<T: Lane>(self) -> bool {
        !T::FLOATS && self.multiple == 1
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.push(self.exponent);
        out.extend_from_slice(&self.base.to_le_bytes());
        out.extend_from_slice(&self.multiple.to_le_bytes());
    }

    /// Reads the scale of values of type `T`.
    pub(crate) fn read<T: Lane>(input: &mut Input) -> Result<Self, ReadError> {
        let (exponent, base, multiple) = (input.u8()?, input.u64()?.cast_signed(), input.u64()?);
        let most = if T::FLOATS { MAX_DECIMALS } else { 0 };
        if usize::from(exponent) > most || multiple == 0 {
            return Err(input.corrupt());
        }
        Ok(Self { exponent, base, multiple })
    }

    /// Maps `integers` to values.
    pub(crate) fn apply<T: Lane>(self, integers: &[i64], out: &mut [T]) {
        let power = POWERS.get(usize::from(self.exponent)).copied().unwrap_or(1.0);
        let multiple = self.multiple.cast_signed();
        // Avoids the 64-bit multiplication, which AVX2 lacks, if the scale is only a power of ten.
        if (self.base, multiple) == (0, 1) {
            out.iter_mut().zip(integers).for_each(|(slot, integer)| *slot = T::of_decimal(*integer, power));
            return;
        }
        for (slot, integer) in out.iter_mut().zip(integers) {
            *slot = T::of_decimal(self.base.wrapping_add(integer.wrapping_mul(multiple)), power);
        }
    }
}

/// The first of the integers from `first` to before `end` that `is_before` rejects, as it does all after it; or else `end`.
fn partition_point(mut first: i128, mut end: i128, is_before: impl Fn(i128) -> bool) -> i128 {
    while first < end {
        let middle = first + (end - first) / 2;
        if is_before(middle) { first = middle + 1 } else { end = middle }
    }
    first
}

/// The first integer and the greatest common divisor of the distances to it, if that is more than 1.
fn common_multiple(integers: &[i64]) -> Option<(i64, u64)> {
    let base = *integers.first()?;
    let mut common = 0u64;
    for integer in integers {
        let differs = integer.checked_sub(base)?.unsigned_abs();
        if common == 0 || differs % common != 0 {
            common = gcd(common, differs);
            if common == 1 {
                return None;
            }
        }
    }
    // The divisor can be 2^63, which is out of range for i64.
    (common > 0 && i64::try_from(common).is_ok()).then_some((base, common))
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::codec::float_decimals::sum;

    fn back<T: Lane>(values: &[T]) -> Option<Scale> {
        let (scale, integers) = Scale::find(values)?;
        let mut out = vec![T::default(); values.len()];
        scale.apply(&integers, &mut out);
        assert!(values.iter().zip(&out).all(|(a, b)| a.bits() == b.bits()), "{scale:?}");
        let mut bytes = Vec::new();
        scale.write(&mut bytes);
        assert_eq!(Scale::read::<T>(&mut Input::new(bytes.into(), 0, "test")).unwrap(), scale);
        Some(scale)
    }

    #[test]
    fn decimals_and_multiples_are_found() {
        let scale = |exponent, base, multiple| Some(Scale { exponent, base, multiple });
        assert_eq!(back(&[0.325, -1.5, 7.001]), scale(3, 0, 1));
        assert_eq!(back(&[2.0, 3.0]), scale(0, 0, 1));
        assert_eq!(back(&[0.25, 0.5, 1.75]), scale(2, 25, 25));
        assert_eq!(back(&[4096u64, 12288, 8192]), scale(0, 4096, 4096));
        assert_eq!(back(&[7i64, 8]), scale(0, 0, 1));
        assert_eq!(back(&[i64::MIN, i64::MAX]), scale(0, 0, 1));
        assert_eq!(back(&[u64::MAX, 3]), scale(0, -1, 4));
    }

    #[test]
    fn decimals_add_up_to_decimals() {
        let tenths = [0.1; 96];
        assert_eq!((sum(&tenths, Some(1)), sum(&tenths, Some(9))), (9.6, 9.6));
        assert!((sum(&tenths, None) - 9.6).abs() < 1e-12);
        assert_eq!(sum(&[-1.5, 0.25, 7.0], Some(2)), 5.75);
        assert_eq!((sum(&[], None), sum(&[], Some(3))), (0.0, 0.0));
        assert!(sum(&[1.0, f64::NAN], None).is_nan());
    }

    #[test]
    fn what_is_no_decimal_is_left_alone() {
        for odd in [-0.0, f64::NAN, -f64::NAN, f64::INFINITY, 1.0 / 3.0, 1e300, 5e-324, 2f64.powi(51), 2f64.powi(60)] {
            assert_eq!(back(&[1.0, odd]), None, "{odd}");
        }
    }

    proptest! {
        #[test]
        fn any_numbers_come_back(
            floats in prop::collection::vec(prop_oneof![any::<f64>(), (-1_000_000i64..1_000_000).prop_map(|v| v as f64 / 1e4)], 1..80),
            integers in prop::collection::vec(any::<i64>(), 1..10),
            step in 1i64..1000, small in prop::collection::vec(-1000i64..1000, 1..80),
        ) {
            back(&floats);
            back(&integers);
            back(&integers.iter().map(|v| v.cast_unsigned()).collect::<Vec<_>>());
            back(&small.iter().map(|v| 17 + v * step).collect::<Vec<_>>());
            back(&small.iter().map(|v| (v * step) as f64 / 1e3).collect::<Vec<_>>());
        }
    }
}
