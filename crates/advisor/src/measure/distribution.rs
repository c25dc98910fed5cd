//! Distributions of counts, exact.

use std::collections::BTreeMap;

/// Values below this have a counter each.
const SMALL: usize = 1 << 12;

/// How often each value occurred.
#[derive(Debug, Clone, Default)]
pub struct Distribution {
    small: Vec<u64>,
    large: BTreeMap<u64, u64>,
    count: u64,
}

/// Quantiles by nearest rank: the value at rank `ceil(q * n)` of `n` ascending values. All 0 without values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quantiles {
    /// Rank 50 of 100: the median.
    pub p50: u64,
    /// Rank 99 of 100.
    pub p99: u64,
    /// The greatest of all values.
    pub max: u64,
}

impl Distribution {
    /// Counts one more occurrence of a value.
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        match usize::try_from(value) {
            Ok(at) if at < SMALL => {
                if self.small.len() <= at {
                    self.small.resize(at + 1, 0);
                }
                if let Some(count) = self.small.get_mut(at) {
                    *count += 1;
                }
            }
            _ => *self.large.entry(value).or_default() += 1,
        }
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The value at rank `ceil(per_mille / 1000 * n)`, at least the first; 0 without values.
    pub fn quantile(&self, per_mille: u64) -> u64 {
        let rank = (u128::from(self.count) * u128::from(per_mille)).div_ceil(1000).max(1);
        let small = self.small.iter().enumerate().map(|(value, count)| (value as u64, *count));
        let mut seen = 0;
        for (value, count) in small.chain(self.large.iter().map(|(value, count)| (*value, *count))) {
            seen += u128::from(count);
            if seen >= rank {
                return value;
            }
        }
        0
    }

    /// p50, p99 and the greatest value.
    pub fn quantiles(&self) -> Quantiles {
        Quantiles { p50: self.quantile(500), p99: self.quantile(990), max: self.quantile(1000) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_by_nearest_rank() {
        for count in [1_u64, 2, 3, 99, 100, 101, 1000] {
            // Descending, and both sides of the limit of small values.
            let values: Vec<u64> = (0..count).rev().map(|at| at * 97).collect();
            let mut distribution = Distribution::default();
            values.iter().for_each(|value| distribution.add(*value));
            let at = |rank: u64| (rank - 1) * 97;
            let expected =
                Quantiles { p50: at(count.div_ceil(2)), p99: at((count * 99).div_ceil(100)), max: at(count) };
            assert_eq!(distribution.quantiles(), expected, "{count}");
        }
        assert_eq!(Distribution::default().quantiles(), Quantiles::default());
    }
}
