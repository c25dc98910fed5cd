//! Counters of what readers read.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one reader and its clones; thread-safe.
#[derive(Debug, Default)]
pub struct ReadCounts {
    stripes: AtomicU64,
    pages: AtomicU64,
    bytes: AtomicU64,
}

impl ReadCounts {
    /// Stripe heads read.
    pub fn stripes(&self) -> u64 {
        self.stripes.load(Ordering::Relaxed)
    }

    /// Pages passed to decoders.
    pub fn pages(&self) -> u64 {
        self.pages.load(Ordering::Relaxed)
    }

    /// Bytes read of heads and pages.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn head(&self, bytes: u64) {
        self.stripes.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn pages_of(&self, pages: usize) {
        self.pages.fetch_add(pages as u64, Ordering::Relaxed);
    }

    pub(crate) fn page_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
