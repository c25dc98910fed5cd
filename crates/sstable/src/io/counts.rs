//! Counters of what readers read.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of one reader and its clones, for the metrics of a query. Shared between threads.
#[derive(Debug, Default)]
pub struct ReadCounts {
    stripes: AtomicU64,
    pages: AtomicU64,
    bytes: AtomicU64,
}

impl ReadCounts {
    /// The number of stripe heads that were read.
    pub fn stripes(&self) -> u64 {
        self.stripes.load(Ordering::Relaxed)
    }

    /// The number of pages that were passed to decoders.
    pub fn pages(&self) -> u64 {
        self.pages.load(Ordering::Relaxed)
    }

    /// The number of bytes that were read as heads and pages, without footers and meta.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts a stripe head of `bytes` bytes.
    pub(crate) fn head(&self, bytes: u64) {
        self.stripes.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts `pages` pages, whose bytes are counted apart.
    pub(crate) fn pages_of(&self, pages: usize) {
        self.pages.fetch_add(pages as u64, Ordering::Relaxed);
    }

    /// Counts `bytes` bytes of pages.
    pub(crate) fn page_bytes(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
