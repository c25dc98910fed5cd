//! Floats that are exact decimals: conversion to scaled integers and back, and sums.

/// The greatest number of decimals that is tried, enough for readings and prices.
pub(super) const MAX_DECIMALS: usize = 9;
/// 10^0 to 10^[`MAX_DECIMALS`]: all are exact, so dividing an integer by one gives the float nearest to the decimal.
pub(super) const POWERS: [f64; MAX_DECIMALS + 1] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
/// 1.5 * 2^52: adding it moves a float's integer part into the low mantissa bits; subtracting it again rounds the float.
const MAGIC: f64 = 6_755_399_441_055_744.0;
/// Up to this magnitude, 2^51, adding [`MAGIC`] rounds correctly; greater values are not scaled.
pub(super) const LIMIT: f64 = 2_251_799_813_685_248.0;
/// Each exponent is tried on this many values first, since most are refuted by one of them.
const SAMPLE: usize = 32;

/// Finds the smallest number of decimals at which each of `values` becomes an integer and is restored bit for bit. Returns it with
/// the integers, or `None`.
pub(crate) fn float_decimals(values: &[f64]) -> Option<(u8, Vec<i64>)> {
    let sample = values.get(..SAMPLE).unwrap_or(values);
    let mut integers = Vec::new();

    for (exponent, power) in POWERS.iter().enumerate() {
        if shift(sample, *power, &mut integers) && shift(values, *power, &mut integers) {
            return Some((exponent as u8, integers));
        }
    }
    None
}

/// Scales `values` by `power` to integers; false unless dividing restores every value bit by bit, which excludes -0.0.
fn shift(values: &[f64], power: f64, integers: &mut Vec<i64>) -> bool {
    let mut wrong = 0;
    integers.clear();
    integers.extend(values.iter().map(|value| {
        let shifted = value * power + MAGIC;
        let whole = shifted - MAGIC;
        wrong |= (whole / power).to_bits() ^ value.to_bits();
        wrong |= u64::from((whole.abs() >= LIMIT) | whole.is_nan());
        shifted.to_bits().wrapping_sub(MAGIC.to_bits()).cast_signed()
    }));
    wrong == 0
}

/// Restores the float of a scaled integer of [`float_decimals`].
pub(crate) fn quotient(integer: i64, power: f64) -> f64 {
    (f64::from_bits(MAGIC.to_bits().wrapping_add(integer.cast_unsigned())) - MAGIC) / power
}

/// Partial sums that are kept side by side, so that additions run in vector instructions.
const LANES: usize = 8;

/// The sum of `values`, by partial sums. If they have that many decimals, the exact decimal sum, rounded once.
pub(crate) fn sum(values: &[f64], decimals: Option<u8>) -> f64 {
    match decimals.and_then(|decimals| POWERS.get(usize::from(decimals))) {
        // Integers, which floats add exactly up to 2^53.
        Some(power) => lanes(values, |value| value * power + MAGIC - MAGIC) / power,
        None => lanes(values, |value| value),
    }
}

/// Whether [`sum`] adds up to `most` values exactly, none of which exceeds `magnitude` and all of which have that many decimals: then
/// no sum on the way exceeds the integers that floats hold.
pub(crate) fn adds_exactly(magnitude: f64, decimals: u8, most: usize) -> bool {
    POWERS.get(usize::from(decimals)).is_some_and(|power| magnitude * power * (most as f64) < LIMIT)
}

/// The sum of `of(value)` over `values`, always in the same order of additions, so that sums are reproducible.
fn lanes(values: &[f64], of: impl Fn(f64) -> f64) -> f64 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane += of(*value));
    }
    lanes.iter().sum::<f64>() + rest.iter().map(|value| of(*value)).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_add_exactly_as_long_as_their_integers_are_floats() {
        assert!(adds_exactly(99.99, 2, 96));
        assert!(!adds_exactly(1e13, 2, 96));
        // 128 integers of 2^44 may pass 2^51; 128 of less do not.
        let greatest = f64::from(1_u32 << 31) * 8192.0;
        assert!(!adds_exactly(greatest, 0, 128) && adds_exactly(greatest / 2.0, 0, 128));
        assert!(!adds_exactly(1.0, 10, 1), "ten decimals are never tried");

        let cents = [0.1, 0.2, 0.7, 1e6, 12.34];
        assert_eq!(sum(&cents, Some(2)), 1_000_013.34);
    }
}
