//! Chooses the order of delta encoding: values, differences, or differences of differences.
//!
//! Pco would try all orders, which takes a third of its time. For telemetry a cheaper estimate agrees: the average bit
//! width of the distance between values that are far apart. It is small for a noisy level and large for a counter, whose
//! differences are similar instead.

use crate::codec::lane::Lane;

/// The greatest delta order: differences of differences.
pub(crate) const ORDERS: usize = 2;
/// Pairs of values that are sampled to estimate the bit width of one order.
const PAIRS: usize = 256;
/// In 1/8 bit per value: a higher order is chosen only if it saves this much, since each order amplifies noise.
const MIN_SAVING: u32 = 1;

/// Estimates the delta order of `values` that takes the fewest bits. With `near`, for codecs that encode blocks of about that many
/// values separately (PFOR); without, for codecs that see all values at once (pco). 0 for fewer than four values.
pub(crate) fn differences<T: Lane>(values: &[T], near: Option<usize>) -> usize {
    let Some(mut best) = spread(values, near, 0) else { return 0 };
    let mut order = 0;

    for next in 1..=ORDERS {
        match spread(values, near, next) {
            Some(found) if found + MIN_SAVING * PAIRS as u32 <= best => (order, best) = (next, found),
            _ => break,
        }
    }
    order
}

/// The bit widths of the distances between [`PAIRS`] pairs of differences of the given order, added up, in 1/8 bit.
fn spread<T: Lane>(values: &[T], near: Option<usize>, order: usize) -> Option<u32> {
    let last = values.len().checked_sub(ORDERS + 2)?;
    let mut bits = 0;

    for pair in 0..PAIRS {
        let one = pair * last / PAIRS;
        let other = match near {
            Some(near) => (one + near) % (last + 1),
            // A second walk over the values with another stride.
            None => (pair * 97 + PAIRS / 2) % PAIRS * last / PAIRS,
        };
        let distance = difference(values, one, order).wrapping_sub(difference(values, other, order));
        bits += eighths(distance.cast_signed().unsigned_abs());
    }
    Some(bits)
}

/// The difference of the given order that starts at index `at`, modulo 2^64; order 0 is the value itself.
fn difference<T: Lane>(values: &[T], at: usize, order: usize) -> u64 {
    match order {
        0 => bits_at(values, at),
        1 => bits_at(values, at + 1).wrapping_sub(bits_at(values, at)),
        _ => difference(values, at + 1, 1).wrapping_sub(difference(values, at, 1)),
    }
}

/// The bits of the value at index `at`.
#[inline]
fn bits_at<T: Lane>(values: &[T], at: usize) -> u64 {
    values.get(at).map_or(0, |value| value.bits())
}

/// The bit width of a distance in 1/8 bit, with a linear fraction between powers of two.
fn eighths(distance: u64) -> u32 {
    let bits = u64::BITS - distance.leading_zeros();
    // The three bits below the highest are the fraction.
    let below = if bits > 3 { (distance >> (bits - 4)) & 7 } else { (distance << (4 - bits)) & 7 };

    bits * 8 + below as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(values: &[i64]) -> usize {
        let order = differences(values, None);
        assert_eq!(differences(values, Some(64)), order);
        order
    }

    #[test]
    fn noise_is_left_and_what_climbs_is_not() {
        let mixed = |bits: u64| (bits ^ bits >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let noise = |at: i64| (mixed(mixed(at.cast_unsigned())) >> 40) as i64 % 1009;
        assert_eq!(order(&(0..5000).map(noise).collect::<Vec<_>>()), 0);
        assert_eq!(order(&(0..5000).map(|at| at * 300 + noise(at)).collect::<Vec<_>>()), 1);
        assert_eq!(order(&(0..5000).map(|at| at * at * 50 + noise(at)).collect::<Vec<_>>()), 2);
        assert_eq!(order(&[1, 2]), 0);
        assert_eq!(order(&[]), 0);
    }
}
