//! Sums and averages from exact parts: one division, and one rounding to the nearest float, ties to even.

use num_bigint::{BigInt, BigUint, Sign};

use crate::totals::floats::superaccumulator::Superaccumulator;

/// Units of a sum of decimals in 1.
const UNITS: u128 = 1_000_000_000;
/// Integers up to this one, 2^53, are floats.
const EXACT: u128 = 1 << f64::MANTISSA_DIGITS;
/// Divisors that leave enough bits of a quotient of 127 bits to round it.
const NARROW: u128 = 1 << 70;
/// Bits of a quotient that is rounded: more than a mantissa's, and one that tells a tie.
const QUOTIENT: i64 = 66;
/// The exponents of the lowest mantissa bit of the least and of the greatest floats.
const LEAST: i64 = -1074;
const GREATEST: i64 = 971;

/// The sum of `decimals`, in units of 10^-9, and `rest`, divided by `count`, and rounded once.
pub(crate) fn quotient(decimals: i128, rest: Option<&Superaccumulator>, count: u64) -> f64 {
    let divisor = UNITS * u128::from(count.max(1));
    let Some(rest) = rest else { return narrow(decimals, divisor) };
    if let Some(value) = rest.not_finite() {
        return value;
    }

    // Both parts in one unit: 10^-9 * 2^-bits.
    let bits = rest.fraction_bits();
    let (decimals, rest) = (BigInt::from(decimals), rest.integer() * BigInt::from(UNITS));
    let (sum, divisor) = match u32::try_from(bits) {
        Ok(bits) => ((decimals << bits) + rest, BigUint::from(divisor) << bits),
        Err(_) => (decimals + (rest << bits.unsigned_abs()), BigUint::from(divisor)),
    };

    let (sign, sum) = sum.into_parts();
    let rounded = wide(&sum, &divisor);
    if sign == Sign::Minus { -rounded } else { rounded }
}

/// `dividend / divisor`, rounded once.
fn narrow(dividend: i128, divisor: u128) -> f64 {
    let magnitude = dividend.unsigned_abs();
    let rounded = if magnitude <= EXACT && divisor <= EXACT {
        magnitude as f64 / divisor as f64
    } else if divisor < NARROW && magnitude > 0 {
        let shift = magnitude.leading_zeros();
        let shifted = magnitude << shift;
        // The last bit stands for all that follow, which only tell whether it is a tie.
        let quotient = (shifted / divisor) | u128::from(!shifted.is_multiple_of(divisor));
        quotient as f64 * power_of_two(-i64::from(shift))
    } else {
        wide(&BigUint::from(magnitude), &BigUint::from(divisor))
    };
    if dividend < 0 { -rounded } else { rounded }
}

/// `dividend / divisor`, rounded once, for numbers of any size; `divisor` is not 0.
fn wide(dividend: &BigUint, divisor: &BigUint) -> f64 {
    if *dividend == BigUint::ZERO {
        return 0.0;
    }

    let shift = QUOTIENT - (dividend.bits() as i64 - divisor.bits() as i64);
    let (dividend, divisor) = match u64::try_from(shift) {
        Ok(shift) => (dividend << shift, divisor.clone()),
        Err(_) => (dividend.clone(), divisor << shift.unsigned_abs()),
    };
    let (quotient, remainder) = (&dividend / &divisor, &dividend % &divisor);
    let quotient = u128::try_from(quotient).unwrap_or(u128::MAX) | u128::from(remainder != BigUint::ZERO);

    // The exponent of the lowest mantissa bit; subnormal floats have fewer bits.
    let bits = i64::from(u128::BITS - quotient.leading_zeros());
    let exponent = (bits - i64::from(f64::MANTISSA_DIGITS) - shift).max(LEAST);
    let dropped = exponent + shift;
    if dropped >= i64::from(u128::BITS) {
        return 0.0;
    }
    let (kept, half) = (quotient >> dropped, 1_u128 << (dropped - 1));
    let below = quotient & ((1 << dropped) - 1);
    let mantissa = kept + u128::from(below > half || below == half && kept & 1 == 1);
    if exponent > GREATEST || exponent == GREATEST && mantissa == EXACT {
        return f64::INFINITY;
    }
    mantissa as f64 * power_of_two(exponent)
}

/// 2^`exponent`, for the exponents of floats.
fn power_of_two(exponent: i64) -> f64 {
    let biased = exponent + 1023;
    match biased > 0 {
        true => f64::from_bits((biased as u64) << (f64::MANTISSA_DIGITS - 1)),
        false => f64::from_bits(1 << (exponent - LEAST)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(decimals: i128, rest: &[f64], count: u64) -> f64 {
        let mut accumulator = Superaccumulator::default();
        rest.iter().for_each(|value| accumulator.add(*value));
        quotient(decimals, (!rest.is_empty()).then_some(&accumulator), count)
    }

    #[test]
    fn decimals_are_divided_as_their_text_is_parsed() {
        let sums = [0, 1, 5, -15, 2_029_695_390_000_000, 123_456_789_012_345_678_901, 1 << 120, i128::MAX, 1 << 53];
        for sum in sums.into_iter().flat_map(|sum: i128| [sum, -sum, sum ^ 1]) {
            let (whole, rest) = (sum.unsigned_abs() / UNITS, sum.unsigned_abs() % UNITS);
            let sign = if sum < 0 { "-" } else { "" };
            let expected: f64 = format!("{sign}{whole}.{rest:09}").parse().unwrap();
            assert_eq!(of(sum, &[], 1), expected, "{sum}");
            assert_eq!(of(sum, &[0.0], 1), expected, "{sum} in big integers");
        }
    }

    #[test]
    fn narrow_and_wide_divisions_agree() {
        let mut state = 7_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let dividend = i128::from(state.cast_signed()) << (state % 61);
            let divisor = u128::from((state >> 7) % 1_000_000 + 1) * UNITS;
            let big = wide(&BigUint::from(dividend.unsigned_abs()), &BigUint::from(divisor));
            assert_eq!(narrow(dividend, divisor).abs(), big, "{dividend} / {divisor}");
        }
    }

    #[test]
    fn binary_parts_are_rounded_to_even_once() {
        let (one, ulp) = (1.0, f64::EPSILON);
        assert_eq!(of(0, &[one, ulp / 2.0], 1), 1.0);
        assert_eq!(of(0, &[one, ulp / 2.0, 1e-300], 1), 1.0 + ulp);
        assert_eq!(of(0, &[one + ulp, ulp / 2.0], 1), 1.0 + 2.0 * ulp);
        assert_eq!(of(0, &[1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0], 1), 1.0);
        assert_eq!(of(-1_000_000_000, &[1.0, 5e-324], 1), 5e-324);
        // As floats, 0.1 is rounded before it is added: 0.43333333333333335.
        assert_eq!(of(100_000_000, &[1.0 / 3.0], 1), 0.433_333_333_333_333_3);
    }

    #[test]
    fn extremes_are_floats_or_infinite() {
        assert_eq!(of(0, &[f64::MAX, f64::MAX, -f64::MAX], 1), f64::MAX);
        assert_eq!(of(0, &[f64::MAX, f64::MAX], 1), f64::INFINITY);
        assert_eq!(of(0, &[-f64::MAX, -f64::MAX], 2), -f64::MAX);
        assert_eq!(of(0, &[5e-324, 5e-324, 5e-324], 1), 15e-324);
        assert_eq!(of(0, &[5e-324], 2), 0.0);
        assert_eq!(of(0, &[15e-324], 2), 10e-324);
        assert_eq!(of(0, &[f64::MIN_POSITIVE, -5e-324], 1), f64::MIN_POSITIVE - 5e-324);
        assert_eq!(of(0, &[f64::INFINITY, 1.0], 7), f64::INFINITY);
    }
}
