//! Whether numbers or the differences of neighbours are the smaller ones.
//!
//! Pco would try; that takes a third of its time, and what it finds for telemetry is told by much less: how many bits two
//! of the numbers differ in that lie far apart, on average. Of a level with noise that is few, of a counter many, while
//! its differences are alike.

use crate::numbers::Lane;

/// Most differences of differences.
pub(crate) const ORDERS: usize = 2;
/// Pairs that are looked at.
const PAIRS: usize = 256;
/// What a further difference must save, in 1/8 of a bit a number: each makes noise larger.
const WORTH: u32 = 1;

/// The order of differences to take of `values` so that they take the fewest bits: of those so `near` to each other, or of
/// all together.
pub(crate) fn differences<T: Lane>(values: &[T], near: Option<usize>) -> usize {
    let spread = |order: usize| -> Option<u32> {
        let last = values.len().checked_sub(ORDERS + 2)?;
        let at = |pair: usize| {
            let one = pair * last / PAIRS;
            let other = match near {
                Some(near) => (one + near) % (last + 1),
                // Two walks over the values, of which one goes by another stride and is elsewhere.
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

/// Difference number `at` of the given order.
fn difference<T: Lane>(values: &[T], at: usize, order: usize) -> u64 {
    let value = |at: usize| values.get(at).map_or(0, |value| value.bits());
    match order {
        0 => value(at),
        1 => value(at + 1).wrapping_sub(value(at)),
        _ => value(at + 2).wrapping_sub(value(at + 1)).wrapping_sub(value(at + 1).wrapping_sub(value(at))),
    }
}

/// The bits that a distance takes, in eighths.
fn eighths(distance: u64) -> u32 {
    let bits = u64::BITS - distance.leading_zeros();
    // The three bits below the highest.
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
