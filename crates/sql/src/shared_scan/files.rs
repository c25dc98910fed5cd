//! Work queue of a file set that several periods read: each scan that opens it reads the next piece until all are read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use arrow::array::RecordBatch;
use tidetable_layout::KeyRange;
use tidetable_store::ScanRange;

/// The records of one period in a piece, in the same batches as an unshared scan; `None` if the period reads by itself.
pub(crate) type PeriodRecords = Option<Vec<RecordBatch>>;

/// The files of a scan range, which several periods share.
#[derive(Debug)]
pub(crate) struct SharedFiles {
    pub(crate) signature: usize,
    keys: KeyRange,
    ssts: Vec<String>,
    /// By period: whether it takes its records from here, or reads by itself.
    gives: Vec<AtomicBool>,
    pieces: Vec<ScanRange>,
    state: Mutex<PieceStates>,
    all_read: Condvar,
}

#[derive(Debug, Default)]
struct PieceStates {
    /// Index of the next piece that a thread takes to read.
    next: usize,
    /// Count of the pieces that were not read yet.
    left: usize,
    /// The records of each piece, by period.
    read: Vec<Vec<PeriodRecords>>,
}

/// A piece being read. If it is dropped before `keep`, all periods read by themselves.
pub(crate) struct ClaimedPiece<'a> {
    files: &'a SharedFiles,
    at: usize,
    given: Option<Vec<PeriodRecords>>,
}

impl SharedFiles {
    /// The files of `slice`, read in `pieces` for the periods set in `readers`.
    pub(crate) fn new(signature: usize, range: &ScanRange, pieces: Vec<ScanRange>, readers: Vec<bool>) -> Self {
        let shared = readers.iter().filter(|reads| **reads).count() > 1;
        let state = PieceStates { next: 0, left: pieces.len(), read: vec![Vec::new(); pieces.len()] };
        Self {
            signature,
            keys: range.keys.clone(),
            ssts: range.ssts.clone(),
            gives: readers.into_iter().map(|reads| AtomicBool::new(reads && shared)).collect(),
            pieces,
            state: Mutex::new(state),
            all_read: Condvar::new(),
        }
    }

    /// Whether these are the files of `slice`.
    pub(crate) fn are(&self, signature: usize, range: &ScanRange) -> bool {
        self.signature == signature && self.keys == range.keys && self.ssts == range.ssts
    }

    /// First key of the scan range.
    pub(crate) fn start(&self) -> &Vec<u8> {
        &self.keys.start
    }

    /// Whether a period takes its records from these files.
    pub(crate) fn gives(&self, period: usize) -> bool {
        self.gives.get(period).is_some_and(|gives| gives.load(Ordering::Relaxed))
    }

    /// The periods that take their records from these files.
    pub(crate) fn periods(&self) -> Vec<usize> {
        (0..self.gives.len()).filter(|period| self.gives(*period)).collect()
    }

    /// Excludes a period: it reads by itself, or has ended.
    pub(crate) fn give_up(&self, period: usize) {
        if let Some(gives) = self.gives.get(period) {
            gives.store(false, Ordering::Relaxed);
        }
    }

    fn state(&self) -> MutexGuard<'_, PieceStates> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next unread piece; without one, waits until all are read and returns `None`.
    pub(crate) fn next_piece(&self) -> Option<(ClaimedPiece<'_>, &ScanRange)> {
        let mut state = self.state();
        let at = state.next;
        if let Some(range) = self.pieces.get(at) {
            state.next += 1;
            return Some((ClaimedPiece { files: self, at, given: None }, range));
        }
        while state.left > 0 {
            state = self.all_read.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// The records of a period. Call after all pieces are read.
    pub(crate) fn records(&self, period: usize) -> PeriodRecords {
        let state = self.state();
        if !self.gives(period) {
            return None;
        }
        let mut records = Vec::new();
        for piece in &state.read {
            records.extend(piece.get(period)?.as_ref()?.iter().cloned());
        }
        Some(records)
    }

    /// Releases the records of excluded periods; returns their bytes.
    pub(crate) fn release(&self) -> u64 {
        let mut state = self.state();
        let pieces = state.read.iter_mut().flat_map(|piece| piece.iter_mut().enumerate());
        pieces.filter(|(period, _)| !self.gives(*period)).map(|(_, given)| bytes_of(&given.take())).sum()
    }
}

impl ClaimedPiece<'_> {
    /// Stores the records of the piece, for each period.
    pub(crate) fn keep(mut self, given: Vec<PeriodRecords>) {
        self.given = Some(given);
    }
}

impl Drop for ClaimedPiece<'_> {
    fn drop(&mut self) {
        let mut state = self.files.state();
        match self.given.take() {
            Some(given) => {
                if let Some(read) = state.read.get_mut(self.at) {
                    *read = given;
                }
            }
            None => (0..self.files.gives.len()).for_each(|period| self.files.give_up(period)),
        }
        state.left = state.left.saturating_sub(1);
        if state.left == 0 {
            self.files.all_read.notify_all();
        }
    }
}

/// Memory that records take, in bytes.
pub(crate) fn bytes_of(given: &PeriodRecords) -> u64 {
    given.iter().flatten().map(|batch| batch.get_array_memory_size() as u64).sum()
}

/// The bytes of records that a shared scan holds.
#[derive(Debug, Default)]
pub(crate) struct HeldBytes(AtomicU64);

impl HeldBytes {
    pub(crate) fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn sub(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
