//! Ids of entities, and how often each sends.

use crate::seeded::Seeded;

/// Ids have at most six digits, while there are enough of them.
const SIX_DIGITS: u32 = 999_999;

/// `count` different ids from 1, drawn at random: of six digits at most, or of as few more as `count` needs.
pub(crate) fn ids(count: u32, seed: u64) -> Vec<u32> {
    let mut most = SIX_DIGITS;
    while most < count {
        most = most.saturating_mul(10).saturating_add(9);
    }
    let mut random = Seeded::part(seed, u64::from(SIX_DIGITS));
    let mut ids: Vec<u32> = (1..=most).collect();
    for at in 0..count as usize {
        let other = at + random.index(ids.len() - at);
        ids.swap(at, other);
    }
    ids.truncate(count as usize);
    ids.shrink_to_fit();
    ids
}

/// The Zipf distribution with exponent 1: entity 0 sends twice as often as entity 1, three times as often as entity 2.
#[derive(Debug, Clone)]
pub(crate) struct Zipf {
    cumulative: Vec<f64>,
}

impl Zipf {
    pub(crate) fn new(count: u32) -> Self {
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = (1..=count)
            .map(|rank| {
                sum += 1.0 / f64::from(rank);
                sum
            })
            .collect();
        cumulative.iter_mut().for_each(|part| *part /= sum);
        Self { cumulative }
    }

    /// The share of an entity.
    pub(crate) fn share(&self, entity: usize) -> f64 {
        self.cumulative[0] / (entity + 1) as f64
    }

    /// Draws an entity by its share.
    pub(crate) fn draw(&self, random: &mut Seeded) -> usize {
        let drawn = random.unit();
        self.cumulative.partition_point(|&part| part <= drawn).min(self.cumulative.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_different_and_of_six_digits_while_that_is_enough() {
        let drawn = ids(20_000, 1);
        let sorted: BTreeSet<u32> = drawn.iter().copied().collect();
        assert_eq!(sorted.len(), drawn.len());
        assert!(sorted.iter().all(|&id| (1..=999_999).contains(&id)));
        assert!(!drawn.is_sorted() && sorted.last().is_some_and(|&last| last > 900_000));
        assert_eq!((&drawn[..100], drawn == ids(20_000, 2)), (&ids(100, 1)[..], false));
        let many: BTreeSet<u32> = ids(1_000_001, 1).into_iter().collect();
        assert_eq!((many.len(), many.last().is_some_and(|&last| last < 10_000_000)), (1_000_001, true));
    }

    #[test]
    fn shares_fall_with_the_rank() {
        let (zipf, mut random, draws) = (Zipf::new(100), Seeded::new(1), 100_000);
        let mut counts = [0; 100];
        (0..draws).for_each(|_| counts[zipf.draw(&mut random)] += 1);
        assert!(((0..100).map(|entity| zipf.share(entity)).sum::<f64>() - 1.0).abs() < 1e-12);
        for entity in [0, 1, 9, 99] {
            let found = f64::from(counts[entity]) / f64::from(draws) / zipf.share(entity);
            assert!((found - 1.0).abs() < 0.2, "{entity} {found}");
        }
    }
}
