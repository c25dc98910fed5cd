//! Cutting keys into ranges.

use crate::spread::fenwick::KnownKeys;

/// The greatest number of source rows in one of the `ranges` that the known keys are cut into at ranks `floor(i * n / ranges)`.
/// A key at a cut belongs to the range above it. `rows` are (rank of the key, source rows), ascending.
pub(super) fn fullest(known: &KnownKeys, ranges: u32, rows: &[(u32, u32)]) -> u64 {
    let ranks = (1..u64::from(ranges)).map(|number| number * u64::from(known.len()) / u64::from(ranges));
    let mut cuts = ranks.map(|rank| known.nth(rank as u32)).peekable();
    let (mut fullest, mut here) = (0, 0);
    for (rank, count) in rows {
        while cuts.next_if(|cut| cut <= rank).is_some() {
            here = 0;
        }
        here += u64::from(*count);
        fullest = fullest.max(here);
    }
    fullest
}

/// The least that [`fullest`] can be with cuts chosen for these rows: a binary search for the smallest limit under which
/// `ranges` ranges suffice.
pub(super) fn fullest_in_hindsight(ranges: u32, rows: &[(u32, u32)]) -> u64 {
    let total: u64 = rows.iter().map(|(_, count)| u64::from(*count)).sum();
    let most = rows.iter().map(|(_, count)| u64::from(*count)).max().unwrap_or(0);
    let mean = total.div_ceil(u64::from(ranges));
    let mut low = most.max(mean);
    // A range that the next key would fill beyond this has a mean share at least: so many ranges suffice.
    let mut high = total.min(mean + most);

    while low < high {
        let middle = low + (high - low) / 2;
        if ranges_within(middle, rows) <= ranges { high = middle } else { low = middle + 1 }
    }
    low
}

/// The fewest ranges with at most `limit` source rows each; no single row has more.
fn ranges_within(limit: u64, rows: &[(u32, u32)]) -> u32 {
    let (mut ranges, mut here) = (1, 0);
    for (_, count) in rows {
        if here + u64::from(*count) > limit {
            ranges += 1;
            here = 0;
        }
        here += u64::from(*count);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(ranks: &[u32], keys: u32) -> KnownKeys {
        let mut known = KnownKeys::new(keys);
        ranks.iter().for_each(|rank| known.insert(*rank));
        known
    }

    #[test]
    fn a_key_at_a_cut_goes_up() {
        let all: Vec<u32> = (0..10).collect();
        let rows: Vec<(u32, u32)> = all.iter().map(|rank| (*rank, 1)).collect();
        assert_eq!(fullest(&known(&all, 10), 10, &rows), 1);
        assert_eq!(fullest(&known(&all, 10), 2, &rows), 5);
        // Keys above all known ones are in the last range.
        assert_eq!(fullest(&known(&[0, 1, 2, 3], 10), 2, &rows), 8);
        // Fewer keys than ranges: empty ranges.
        assert_eq!(fullest(&known(&[5], 10), 10, &rows), 5);
        assert_eq!(fullest(&known(&[], 10), 10, &rows), 10);
    }

    #[test]
    fn hindsight_is_the_best_of_all_cuts() {
        let weights = [3_u32, 1, 4, 1, 5, 9, 2, 6];
        let rows: Vec<(u32, u32)> = (0..).zip(weights).collect();
        for ranges in 1..=4_u32 {
            // All ways to place the cuts.
            let mut best = u64::MAX;
            for mask in 0_u32..1 << (weights.len() - 1) {
                if mask.count_ones() + 1 > ranges {
                    continue;
                }
                let (mut most, mut here) = (0, 0);
                for (at, weight) in weights.iter().enumerate() {
                    here += u64::from(*weight);
                    most = most.max(here);
                    if mask >> at & 1 == 1 {
                        here = 0;
                    }
                }
                best = best.min(most);
            }
            assert_eq!(fullest_in_hindsight(ranges, &rows), best, "{ranges}");
        }
        assert_eq!(fullest_in_hindsight(10, &[]), 0);
    }
}
