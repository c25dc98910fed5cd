//! Random numbers from a seed.

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// A random number generator (SplitMix64), the same on every machine.
#[derive(Debug, Clone)]
pub struct Seeded(u64);

impl Seeded {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// An independent generator for part `part` of the output of `seed`.
    pub fn part(seed: u64, part: u64) -> Self {
        // Scrambled, since SplitMix64 generators with close seeds overlap.
        Self(Self(seed ^ Self(part).bits()).bits())
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in 0..1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number in 0..`most`, which must not be 0.
    pub fn below(&mut self, most: u64) -> u64 {
        self.bits() % most
    }

    /// An index below `len`, which must not be 0.
    pub fn index(&mut self, len: usize) -> usize {
        // Without a division.
        ((u128::from(self.bits()) * len as u128) >> 64) as usize
    }

    /// Brings `items` into random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.index(at + 1));
        }
    }

    /// An approximately standard normal number (the sum of twelve uniform ones).
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_is_a_permutation_and_another_each_time() {
        let (mut random, sorted) = (Seeded::new(1), (0..1000).collect::<Vec<u32>>());
        let mut once = sorted.clone();
        random.shuffle(&mut once);
        let mut twice = sorted.clone();
        random.shuffle(&mut twice);
        assert!(once != sorted && once != twice);
        for mut shuffled in [once, twice] {
            // About one item stays at its place.
            assert!(shuffled.iter().zip(&sorted).filter(|(one, other)| one == other).count() < 10);
            shuffled.sort_unstable();
            assert_eq!(shuffled, sorted);
        }
        random.shuffle(&mut [0u32; 0]);
    }
}
