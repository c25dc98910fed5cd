//! Patterns of writes, named by rule.

use crate::measure::Distribution;
use crate::spread::{Shares, Spread};

/// Share of the fullest of 10 ranges, and distance travelled, of keys that grow with time.
const SEQUENTIAL: f64 = 0.5;
/// Share of the source rows of a slice that a hot row takes at least.
const HOT_ROW_SHARE: f64 = 0.1;
/// How many times the mean of the rows of its slice a hot row takes at least.
const HOT_ROW_TIMES: f64 = 20.0;
/// How many times the best cut's top share that of a hot range is.
const HOT_RANGE: f64 = 3.0;
/// How many times the median the slice at rank 95 of 100 holds.
const BURST: u64 = 5;
/// Source rows that a slice needs, so that chance does not fill one of 10 ranges.
const ENOUGH: u64 = 100;

/// A pattern of writes over keys and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Keys grow, or shrink, with time: the writes go to one end of the table.
    Sequential,
    /// One row takes a great share of the writes. No split helps.
    HotRow,
    /// A range takes far more than it would if the keys were cut for the writes.
    HotRange,
    /// Some slices hold many times what most hold.
    Burst {
        /// Slices from one burst to the next, where they are regular.
        period: Option<usize>,
    },
    /// No other pattern holds.
    Even,
}

impl Pattern {
    /// Its name in reports and JSON, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::HotRow => "hot row",
            Self::HotRange => "hot range",
            Self::Burst { .. } => "burst",
            Self::Even => "even",
        }
    }
}

/// The patterns of a spread: [`Pattern::Even`] if it has no other.
///
/// - Sequential: the median top share of 10 ranges and the travel, either way, are at least 0.5.
/// - Hot row: in half of the slices one row takes 10 % of the source rows, and 20 times the mean of the rows written.
/// - Hot range, unless sequential: in half of the slices the top share is 3 times that of the best cut.
/// - Burst: the 95th of 100 slices holds 5 times the median.
///
/// Slices without writes do not count. Rows and ranges are judged by slices of at least 100 source rows.
pub fn patterns(spread: &Spread) -> Vec<Pattern> {
    let mut found = Vec::new();
    let is_sequential = spread.few.quantile(500) >= SEQUENTIAL && spread.travel.abs() >= SEQUENTIAL;
    if is_sequential {
        found.push(Pattern::Sequential);
    }
    if has_hot_row(spread) {
        found.push(Pattern::HotRow);
    }
    if !is_sequential && has_hot_range(spread) {
        found.push(Pattern::HotRange);
    }
    if is_bursty(&spread.totals) {
        found.push(Pattern::Burst { period: period(&spread.totals) });
    }
    if found.is_empty() {
        found.push(Pattern::Even);
    }
    found
}

fn has_hot_row(spread: &Spread) -> bool {
    let (mut all, mut hot) = (0, 0);
    for (slice, share) in judged(spread, &spread.rows) {
        let written = spread.written.get(slice).copied().unwrap_or(0);
        all += 1;
        hot += u32::from(share >= HOT_ROW_SHARE && share * f64::from(written) >= HOT_ROW_TIMES);
    }
    all > 0 && hot * 2 >= all
}

fn has_hot_range(spread: &Spread) -> bool {
    let best = &spread.hindsight.by_slice;
    let (mut all, mut hot) = (0, 0);
    for (slice, share) in judged(spread, &spread.few) {
        let at = best.binary_search_by_key(&slice, |(slice, _)| *slice).ok();
        let best = at.and_then(|at| best.get(at)).map_or(1.0, |(_, share)| *share);
        all += 1;
        hot += u32::from(share >= HOT_RANGE * best);
    }
    all > 0 && hot * 2 >= all
}

/// The slices with source rows enough to be judged, and their shares.
fn judged<'s>(spread: &'s Spread, shares: &'s Shares) -> impl Iterator<Item = (usize, f64)> {
    let slices = shares.by_slice.iter().copied();
    slices.filter(|(slice, _)| spread.totals.get(*slice).is_some_and(|total| *total >= ENOUGH))
}

fn is_bursty(totals: &[u64]) -> bool {
    let mut written = Distribution::default();
    totals.iter().filter(|total| **total > 0).for_each(|total| written.add(*total));
    let median = written.quantile(500);
    median > 0 && written.quantile(950) >= BURST * median
}

/// The shift, in slices, by which the totals agree best with themselves, if that explains half of their variance: the peak of
/// their autocorrelation.
fn period(totals: &[u64]) -> Option<usize> {
    let mean = totals.iter().sum::<u64>() as f64 / totals.len().max(1) as f64;
    let apart: Vec<f64> = totals.iter().map(|total| *total as f64 - mean).collect();
    let variance: f64 = apart.iter().map(|it| it * it).sum();

    let (mut period, mut best) = (0, 0.0);
    for shift in 2..=totals.len() / 2 {
        let products: f64 = apart.iter().zip(apart.iter().skip(shift)).map(|(one, other)| one * other).sum();
        // The mean over fewer pairs, as a share of the variance.
        let agreement = products * apart.len() as f64 / ((apart.len() - shift) as f64 * variance);
        // Multiples of the period agree as well: the first stays.
        if agreement > best + 1e-9 {
            (period, best) = (shift, agreement);
        }
    }
    (best >= 0.5).then_some(period)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spread::{Axis, WriteLog, spread};
    use crate::trial::Write;

    /// Numbers that look random.
    struct Random(u64);

    impl Random {
        fn below(&mut self, most: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % most
        }
    }

    const SLICES: usize = 60;
    const KEYS: usize = 400;

    /// The patterns of `rows` source rows a slice, whose keys `key` gives by slice and a random number generator.
    fn of(seed: u64, rows: impl Fn(usize) -> u64, key: impl Fn(usize, &mut Random) -> usize) -> Vec<Pattern> {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
        let mut counts = vec![[0_u64; SLICES]; KEYS];
        for slice in 0..SLICES {
            for _ in 0..rows(slice) {
                counts[key(slice, &mut random)][slice] += 1;
            }
        }
        let mut log = WriteLog::new(Axis { start: 0, width: 1, slices: SLICES });
        for of_key in counts.iter().filter(|of_key| of_key.iter().any(|rows| *rows > 0)) {
            let writes = of_key.iter().enumerate().filter(|(_, rows)| **rows > 0);
            log.add_key(writes.map(|(slice, rows)| Write { second: slice as i64, rows: *rows }).collect::<Vec<_>>());
        }
        patterns(&spread(&log))
    }

    fn any(random: &mut Random) -> usize {
        random.below(KEYS as u64) as usize
    }

    #[test]
    fn even_writes_raise_no_alarm() {
        for seed in 0..100 {
            let rows = 50 + seed * 20;
            assert_eq!(of(seed, |_| rows, |_, random| any(random)), [Pattern::Even], "{seed}");
        }
    }

    #[test]
    fn planted_patterns_are_named() {
        for seed in 0..20 {
            for strength in 0..5_u64 {
                let what = format!("seed {seed}, strength {strength}");
                // From 50 to 90 % of the writes go where the pattern says.
                let part = 5 + strength;
                let band = |slice: usize| slice * KEYS / SLICES;
                let mostly =
                    |random: &mut Random, here: usize| if random.below(10) < part { here } else { any(random) };
                let hot = of(seed, |_| 1000, |_, random| mostly(random, 123));
                assert_eq!(hot, [Pattern::HotRow], "{what}");
                let range = of(
                    seed,
                    |_| 1000,
                    |_, random| {
                        let here = 200 + random.below(20) as usize;
                        mostly(random, here)
                    },
                );
                assert!(range.contains(&Pattern::HotRange), "{what}: {range:?}");
                // The front moves through the keys; what is not there is behind it.
                let step = KEYS / SLICES;
                let ahead = |slice: usize, random: &mut Random| {
                    let front = band(slice) + random.below(step as u64) as usize;
                    if random.below(10) < part { front } else { random.below(front as u64 + 1) as usize }
                };
                let grows = of(seed, |_| 1000, ahead);
                assert!(grows.contains(&Pattern::Sequential), "{what}: {grows:?}");
                let shrinks = of(seed, |_| 1000, |slice, random| KEYS - 1 - ahead(slice, random));
                assert!(shrinks.contains(&Pattern::Sequential), "{what}: {shrinks:?}");
                let burst =
                    of(seed, |slice| if slice % 10 == 3 { 200 * (strength + 6) } else { 200 }, |_, random| any(random));
                assert_eq!(burst, [Pattern::Burst { period: Some(10) }], "{what}");
            }
        }
    }
}
