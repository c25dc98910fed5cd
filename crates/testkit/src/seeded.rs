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

    /// An approximately standard normal number (the sum of twelve uniform ones).
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}
