//! One pass over the files of tables for several periods.
//!
//! Where windows share files, or rows lie across windows, the queries of thirty days would read the same files thirty times,
//! each for a thirtieth. In a [`SharedScan`] the first scan that comes to such files reads them for all its periods and puts each
//! record to its own; the scans of the other periods are given theirs. Nothing else of a query changes: plans are the same,
//! and so are records, their order, and the batches they come in (which sums of floats depend on).
//!
//! What cannot be shared is read as without a pass: files of one period only, files that are merged otherwise for a part of
//! their windows ([`share::is_alike`]), scans that ask for what others do not, and what does not fit.

pub(crate) mod asked;
pub(crate) mod files;
pub(crate) mod read;
pub(crate) mod share;
pub(crate) mod signature;
pub(crate) mod split;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tidetable_store::{ScanRange, Snapshot, StoreError};

use crate::scan::file_groups::pieces_of;
pub use asked::Asked;
use asked::ScanSignature;
use files::{Held, SharedFiles};

/// Pieces that files are read in, side by side.
const PIECES: usize = 8;

/// Periods whose queries read the files they share once.
#[derive(Debug)]
pub struct SharedScan {
    /// Event times of the periods, microseconds; ascending, none overlaps another.
    times: Vec<Range<i64>>,
    asks: Vec<ScanSignature>,
    /// Bytes of records that may be held.
    most: u64,
    held: Held,
    /// Periods that ask for nothing any more.
    finished: Vec<AtomicBool>,
    stopped: AtomicBool,
    files: Mutex<Vec<Arc<SharedFiles>>>,
    read: AtomicU64,
    given: AtomicU64,
}

/// A period of a pass.
#[derive(Debug, Clone)]
pub(crate) struct InPass {
    pub(crate) pass: Arc<SharedScan>,
    pub(crate) at: usize,
}

/// What a pass did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PassCounts {
    /// Files, or files that are merged, that were read for several periods: once for each of the things that are asked for.
    pub read: u64,
    /// Scans that were given their records.
    pub given: u64,
}

impl SharedScan {
    /// A pass for periods of these event times (microseconds since the epoch, ascending, none overlapping another), whose
    /// queries all ask for what `asked` says, as far as that can be known. It holds `most` bytes of records, about.
    pub fn new(asked: &Asked, times: Vec<Range<i64>>, most: u64) -> Self {
        Self {
            finished: times.iter().map(|_| AtomicBool::new(false)).collect(),
            times,
            asks: asked.asks(),
            most,
            held: Held::default(),
            stopped: AtomicBool::new(false),
            files: Mutex::default(),
            read: AtomicU64::new(0),
            given: AtomicU64::new(0),
        }
    }

    /// The event times of a period; none if there is no such.
    pub(crate) fn time(&self, at: usize) -> Range<i64> {
        self.times.get(at).cloned().unwrap_or_default()
    }

    /// Lets go of what is held for a period, which asks for nothing any more.
    pub fn finish(&self, at: usize) {
        if let Some(finished) = self.finished.get(at) {
            finished.store(true, Ordering::Relaxed);
        }
        for files in self.files.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            files.give_up(at);
            self.held.sub(files.release());
        }
    }

    /// Ends reading, as soon as may be; what was not read yet is read by each period itself.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// What it did so far.
    pub fn counts(&self) -> PassCounts {
        PassCounts { read: self.read.load(Ordering::Relaxed), given: self.given.load(Ordering::Relaxed) }
    }

    /// Bytes of records that it holds, about.
    pub fn held(&self) -> u64 {
        self.held.bytes()
    }

    /// The files of a slice, with who reads them.
    fn files(&self, ask: usize, snapshot: &Snapshot, slice: &ScanRange) -> Result<Arc<SharedFiles>, StoreError> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = files.iter().find(|known| known.are(ask, slice)) {
            return Ok(Arc::clone(known));
        }
        let mut readers = share::readers(snapshot, slice, &self.times);
        for (reads, finished) in readers.iter_mut().zip(&self.finished) {
            *reads &= !finished.load(Ordering::Relaxed);
        }
        let whole = ScanRange { time: share::hull(&self.times, &readers), ..slice.clone() };
        let pieces = match share::is_one_run(snapshot, slice) {
            true => pieces_of(snapshot, &whole, PIECES)?,
            false => vec![whole],
        };
        let new = Arc::new(SharedFiles::new(ask, slice, pieces, readers));
        files.push(Arc::clone(&new));
        Ok(new)
    }
}
