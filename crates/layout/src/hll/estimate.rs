//! Estimators of the number of distinct values.
//!
//! As in the paper: sparse values and few full registers are counted linearly, many by the harmonic mean. Between the
//! two the harmonic mean is too great; the paper takes its bias from tables of simulations, here it follows from the
//! distribution of registers: the estimate is the number for which their mean is expected to be what it is. The two
//! agree but for the noise of the tables (under 0.3 %).

use crate::hll::parameters::{MAX_REGISTER, REGISTERS, SPARSE_PRECISION};

/// The number of sparse indexes.
const BUCKETS: f64 = (1u64 << SPARSE_PRECISION) as f64;
/// The number of registers, as the paper names it.
const M: f64 = REGISTERS as f64;
/// Linear counting is more accurate up to here (the paper's threshold for precision 15).
const LINEAR_UP_TO: f64 = 20_000.0;

/// The estimate of a sparse sketch with `used` distinct indexes, by linear counting.
pub(super) fn of_sparse(used: usize) -> u64 {
    (BUCKETS * (BUCKETS / (BUCKETS - used as f64)).ln()).round() as u64
}

/// The estimate of a dense sketch from its registers.
pub(super) fn of_registers(registers: &[u8]) -> u64 {
    let mut counts = [0u64; 1 + MAX_REGISTER as usize];
    for register in registers {
        if let Some(count) = counts.get_mut(usize::from(*register)) {
            *count += 1;
        }
    }

    let [zeros, ..] = counts;
    if zeros > 0 {
        let linear = M * (M / zeros as f64).ln();
        if linear <= LINEAR_UP_TO {
            return linear.round() as u64;
        }
    }

    let sum: f64 = counts.iter().zip(powers()).map(|(count, power)| *count as f64 * power).sum();
    let raw = 0.7213 / (1.0 + 1.079 / M) * M * M / sum;
    if raw > 5.0 * M { raw.round() as u64 } else { (expected(sum / M) * M).round() as u64 }
}

/// 2^-k for each value k that a register can have, from 0 on.
fn powers() -> impl Iterator<Item = f64> {
    std::iter::successors(Some(1.0), |power| Some(power / 2.0)).take(1 + usize::from(MAX_REGISTER))
}

/// The values a register for which the mean of 2^-register is expected to be `mean`, by halving.
fn expected(mean: f64) -> f64 {
    let (mut low, mut high) = (0.0, 8.0);
    for _ in 0..48 {
        let middle = (low + high) / 2.0;
        if mean_of(middle) > mean { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// The mean of 2^-register if a register has `load` values on average: it is at most k with probability
/// exp(-load / 2^k).
fn mean_of(load: f64) -> f64 {
    let mut before = 0.0;
    let mut mean = 0.0;
    for power in powers() {
        let at_most = (-load * power).exp();
        mean += power * (at_most - before);
        before = at_most;
    }
    mean
}
