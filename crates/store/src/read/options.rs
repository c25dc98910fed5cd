//! Options and counters of scans.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidetable_sstable::{ReadCounts, RecordFilter, StripeMeta};

use crate::merge::operator::Overflow;
use crate::read::known_collisions::KnownCollisions;

/// Options of a scan.
#[derive(Debug, Clone, Default)]
pub struct ScanOptions {
    /// Counters of the scan.
    pub counts: Option<Arc<ScanCounts>>,
    /// Skips stripes by their stats.
    pub stripe_pruner: Option<Arc<dyn StripePruner>>,
    /// Whether the order of blocks does not matter, nor that the records of a row are in one block.
    pub unordered: bool,
    /// Filters records while they are read. Not applied where cells of several files are merged, nor to files with
    /// hidden rows.
    pub record_filter: Option<Arc<dyn RecordFilter>>,
    /// Answers stripes from their stats. Applied under the same conditions, and only to stripes that are fully
    /// selected and that GC leaves intact.
    pub stripe_stats: Option<Arc<dyn StripeStats>>,
}

/// Scan options for use inside the store.
#[derive(Debug, Clone, Default)]
pub struct ScanMode {
    /// Handling of sums that exceed 64 bits.
    pub overflow: Overflow,
    /// Whether rows that an upsert emptied are returned.
    pub keeps_emptied: bool,
    /// Greatest number of rows of a block where several SSTs are merged.
    pub block_rows: Option<usize>,
    /// What earlier scans of the same version found.
    pub known_collisions: Option<Arc<KnownCollisions>>,
}

/// Answers a stripe from its stats, where they suffice.
pub trait StripeStats: fmt::Debug + Send + Sync {
    /// Whether the stats of this stripe suffice: then it is not read.
    fn suffices(&self, stripe: &StripeMeta) -> bool;
}

/// Decides by stripe stats which stripes a scan skips.
pub trait StripePruner: fmt::Debug + Send + Sync {
    /// For each stripe of a file, whether none of its records is needed. Not applied where cells of several files are
    /// merged: there cells of one stripe may hide cells of another.
    fn prunes(&self, stripes: &[StripeMeta]) -> Vec<bool>;
}

/// Counters of scans: what they considered and what they read.
#[derive(Debug, Default)]
pub struct ScanCounts {
    files: AtomicU64,
    files_pruned: AtomicU64,
    stripes: AtomicU64,
    bytes: AtomicU64,
    pub(crate) reads: Arc<ReadCounts>,
}

impl ScanCounts {
    pub(crate) fn considered(&self, files: usize, pruned: usize, stripes: usize, bytes: u64) {
        self.files.fetch_add(files as u64, Ordering::Relaxed);
        self.files_pruned.fetch_add(pruned as u64, Ordering::Relaxed);
        self.stripes.fetch_add(stripes as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// (SSTs whose key range matches, those of them that key filters ruled out).
    pub fn files(&self) -> (u64, u64) {
        (self.files.load(Ordering::Relaxed), self.files_pruned.load(Ordering::Relaxed))
    }

    /// (stripes of those SSTs, stripes read).
    pub fn stripes(&self) -> (u64, u64) {
        (self.stripes.load(Ordering::Relaxed), self.reads.stripes())
    }

    /// Number of pages that were decoded.
    pub fn pages(&self) -> u64 {
        self.reads.pages()
    }

    /// (bytes of those SSTs, bytes read).
    pub fn bytes(&self) -> (u64, u64) {
        (self.bytes.load(Ordering::Relaxed), self.reads.bytes())
    }
}
