//! Chooses the order of delta encoding: values, differences, or differences of differences.
//!
//! Pco would try all orders, which takes a third of its time. For telemetry a cheaper estimate agrees: the average bit
//! width of the distance between values that are far apart. It is small for a noisy level and large for a counter, whose
//! differences are similar instead.

use crate::codec::lane::Lane;

/// The greatest order.
pub(crate) const ORDERS: usize = 2;
/// Sampled pairs.
const PAIRS: usize = 256;
/// The least saving of a higher order, in 1/8 bit per value: each order amplifies noise.
const WORTH: u32 = 1;

/// The delta order of `values` with the fewest bits: for blocks of `near` values, or for all values together.
pub(crate) fn differences<T: Lane>(values: &[T], near: Option<usize>) -> usize {
    let spread = |order: usize| -> Option<u32> {
        let last = values.len().checked_sub(ORDERS + 2)?;
        let at = |pair: usize| {
            let one = pair * last / PAIRS;
            let other = match near {
                Some(near) => (one + near) % (last + 1),
                // A second walk over the values with another stride.
                None => (pair * 97 + PAIRS / 2) % PAIRS * last / PAIRS,
            };
            difference(values, one, order).wrapping_sub(difference(values, other, order))
        };
        Some((0..PAIRS).map(|pair| eighths(at(pair).cast_signed().unsigned_abs())).sum())
    };
    let Some(mut best) = spread(0) else { return 0 };
    let mut order = 0;
    for next in 1..=ORDERS {
        match spread(next) {
            Some(found) if found + WORTH * PAIRS as u32 <= best => (order, best) = (next, found),
            _ => break,
        }
    }
    order
}

/// The difference of the given order at `at`.
fn difference<T: Lane>(values: &[T], at: usize, order: usize) -> u64 {
    let value = |at: usize| values.get(at).map_or(0, |value| value.bits());
    match order {
        0 => value(at),
        1 => value(at + 1).wrapping_sub(value(at)),
        _ => value(at + 2).wrapping_sub(value(at + 1)).wrapping_sub(value(at + 1).wrapping_sub(value(at))),
    }
}

/// The bit width of a distance, in 1/8 bit.
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
