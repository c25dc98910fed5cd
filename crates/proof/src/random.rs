//! Random numbers from a seed, the same on every machine and in every build.

use std::sync::atomic::{AtomicU64, Ordering};

use tidetable_store::Ids;

/// SplitMix64, implemented here so that a reported seed gives the same run in every later build.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// A generator whose numbers follow from this seed alone.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number of 64 bits, each of them as likely as any other.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `most`, which must not be 0.
    pub fn below(&mut self, most: u64) -> u64 {
        self.number() % most.max(1)
    }

    /// A random index below `len`; 0 for an empty list, where no index is right.
    pub fn place(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }

    /// True once in `most` times on average, and always for 1.
    pub fn one_in(&mut self, most: u64) -> bool {
        self.below(most) == 0
    }

    /// A random item of `of`; `None` if there is none.
    pub fn pick<T: Copy>(&mut self, of: &[T]) -> Option<T> {
        of.get(self.place(of.len())).copied()
    }
}

/// Ids of files and commits, ascending from a number unique to the run.
#[derive(Debug)]
pub struct Names {
    run: u64,
    next: AtomicU64,
}

impl Names {
    /// The ids of run `run`: no other run gives the same.
    pub fn new(run: u64) -> Self {
        Self { run, next: AtomicU64::new(1) }
    }
}

impl Ids for Names {
    fn next(&self) -> u128 {
        u128::from(self.run) << 64 | u128::from(self.next.fetch_add(1, Ordering::Relaxed))
    }
}
