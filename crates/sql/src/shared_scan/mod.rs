//! Shared scans: one pass over the files of tables for several periods.
//!
//! If windows share files, or rows span windows, the queries of thirty days would read the same files thirty times. In
//! a [`SharedScan`] the first scan of such files reads them for all periods and splits the records by period; the scans
//! of the other periods take theirs. Plans, records, their order and their batches (on which
//! statistics such as `stddev` depend) stay the same.
//!
//! Not shared, and read as usual: files of one period only, files that are merged differently for a part of their
//! windows ([`share::is_alike`]), scans with a signature that other periods lack, and records beyond the memory budget.

pub(crate) mod files;
pub(crate) mod read;
pub(crate) mod share;
pub(crate) mod signatures;
pub(crate) mod split;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tidetable_store::{ScanRange, Snapshot, StoreError};

use crate::scan::file_groups::split_range;
use files::{HeldBytes, SharedFiles};
use signatures::ScanSignature;
pub use signatures::ScanSignatures;

/// The pieces that the files of a scan range are divided into, to be read concurrently.
const PIECES: usize = 8;

/// A pass over files that the queries of several periods share.
#[derive(Debug)]
pub struct SharedScan {
    /// Event times of the periods, microseconds; ascending and disjoint.
    times: Vec<Range<i64>>,
    signatures: Vec<ScanSignature>,
    /// The most bytes of records that may be held.
    most: u64,
    held: HeldBytes,
    /// For each period whether its queries have ended.
    finished: Vec<AtomicBool>,
    stopped: AtomicBool,
    files: Mutex<Vec<Arc<SharedFiles>>>,
    read: AtomicU64,
    given: AtomicU64,
}

/// A period of a shared scan, such as a day.
#[derive(Debug, Clone)]
pub(crate) struct SharedScanPeriod {
    pub(crate) scan: Arc<SharedScan>,
    pub(crate) period: usize,
}

/// What a shared scan has read and given so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SharedScanCounts {
    /// File sets read for several periods, once per scan signature.
    pub read: u64,
    /// Scans that took their records from the shared scan.
    pub given: u64,
}

impl SharedScan {
    /// A pass for periods of these event times (microseconds since the epoch, ascending, disjoint). `asked`: the scans
    /// that the queries of all periods are expected to have. It holds about `most` bytes of records.
    pub fn new(asked: &ScanSignatures, times: Vec<Range<i64>>, most: u64) -> Self {
        Self {
            finished: times.iter().map(|_| AtomicBool::new(false)).collect(),
            times,
            signatures: asked.signatures(),
            most,
            held: HeldBytes::default(),
            stopped: AtomicBool::new(false),
            files: Mutex::default(),
            read: AtomicU64::new(0),
            given: AtomicU64::new(0),
        }
    }

    /// The event times of a period; empty if there is none.
    pub(crate) fn time(&self, at: usize) -> Range<i64> {
        self.times.get(at).cloned().unwrap_or_default()
    }

    /// Releases the records of a period whose queries have ended.
    pub fn finish(&self, at: usize) {
        if let Some(finished) = self.finished.get(at) {
            finished.store(true, Ordering::Relaxed);
        }
        for files in self.files.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            files.give_up(at);
            self.held.sub(files.release());
        }
    }

    /// Stops reading soon; each period reads the rest itself.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// What the scan has read and given so far.
    pub fn counts(&self) -> SharedScanCounts {
        SharedScanCounts { read: self.read.load(Ordering::Relaxed), given: self.given.load(Ordering::Relaxed) }
    }

    /// The bytes of records that are held now, about.
    pub fn held(&self) -> u64 {
        self.held.bytes()
    }

    /// The files of a scan range, which its periods share.
    fn files(&self, signature: usize, snapshot: &Snapshot, range: &ScanRange) -> Result<Arc<SharedFiles>, StoreError> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = files.iter().find(|known| known.are(signature, range)) {
            return Ok(Arc::clone(known));
        }
        let mut readers = share::readers(snapshot, range, &self.times);
        for (reads, finished) in readers.iter_mut().zip(&self.finished) {
            *reads &= !finished.load(Ordering::Relaxed);
        }
        let whole = ScanRange { time: share::hull(&self.times, &readers), ..range.clone() };
        let pieces = match share::is_one_run(snapshot, range) {
            true => split_range(snapshot, &whole, PIECES)?,
            false => vec![whole],
        };
        let new = Arc::new(SharedFiles::new(signature, range, pieces, readers));
        files.push(Arc::clone(&new));
        Ok(new)
    }
}
