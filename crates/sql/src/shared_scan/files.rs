//! Files that several periods read, in pieces: whoever comes for their records reads the next piece, until all are read.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use arrow::array::RecordBatch;
use tidetable_layout::KeyRange;
use tidetable_store::ScanRange;

/// The records of one period in a piece, in the batches of reading them by itself; `None` if it is given none.
pub(crate) type Given = Option<Vec<RecordBatch>>;

/// Files that several periods of a pass read.
#[derive(Debug)]
pub(crate) struct SharedFiles {
    pub(crate) ask: usize,
    keys: KeyRange,
    ssts: Vec<String>,
    /// Whether each period is given its records, or reads by itself.
    gives: Vec<AtomicBool>,
    pieces: Vec<ScanRange>,
    state: Mutex<State>,
    all_read: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The next piece to read.
    next: usize,
    /// Pieces that are not read yet.
    left: usize,
    /// For each piece, what it holds for each period.
    read: Vec<Vec<Given>>,
}

/// A piece that is being read. Dropped before it is, nobody is given anything.
pub(crate) struct Piece<'a> {
    files: &'a SharedFiles,
    at: usize,
    given: Option<Vec<Given>>,
}

impl SharedFiles {
    /// The files of `slice`, to be read in `pieces` for the periods that `readers` says.
    pub(crate) fn new(ask: usize, slice: &ScanRange, pieces: Vec<ScanRange>, readers: Vec<bool>) -> Self {
        let shared = readers.iter().filter(|reads| **reads).count() > 1;
        let state = State { next: 0, left: pieces.len(), read: vec![Vec::new(); pieces.len()] };
        Self {
            ask,
            keys: slice.keys.clone(),
            ssts: slice.ssts.clone(),
            gives: readers.into_iter().map(|reads| AtomicBool::new(reads && shared)).collect(),
            pieces,
            state: Mutex::new(state),
            all_read: Condvar::new(),
        }
    }

    /// Whether they are the files of `slice`.
    pub(crate) fn are(&self, ask: usize, slice: &ScanRange) -> bool {
        self.ask == ask && self.keys == slice.keys && self.ssts == slice.ssts
    }

    /// The first key of them that is read.
    pub(crate) fn start(&self) -> &Vec<u8> {
        &self.keys.start
    }

    /// Whether a period is given its records.
    pub(crate) fn gives(&self, period: usize) -> bool {
        self.gives.get(period).is_some_and(|gives| gives.load(Ordering::Relaxed))
    }

    /// The periods that are given their records.
    pub(crate) fn periods(&self) -> Vec<usize> {
        (0..self.gives.len()).filter(|period| self.gives(*period)).collect()
    }

    /// Lets a period read by itself, or go without.
    pub(crate) fn give_up(&self, period: usize) {
        if let Some(gives) = self.gives.get(period) {
            gives.store(false, Ordering::Relaxed);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A piece that nobody reads yet, if there is one; otherwise waits until all are read.
    pub(crate) fn next_piece(&self) -> Option<(Piece<'_>, &ScanRange)> {
        let mut state = self.state();
        let at = state.next;
        if let Some(slice) = self.pieces.get(at) {
            state.next += 1;
            return Some((Piece { files: self, at, given: None }, slice));
        }
        while state.left > 0 {
            state = self.all_read.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// The records of a period, once all pieces are read.
    pub(crate) fn records(&self, period: usize) -> Given {
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

    /// Lets go of what is held for periods that are given nothing; the bytes.
    pub(crate) fn release(&self) -> u64 {
        let mut state = self.state();
        let pieces = state.read.iter_mut().flat_map(|piece| piece.iter_mut().enumerate());
        pieces.filter(|(period, _)| !self.gives(*period)).map(|(_, given)| bytes_of(&given.take())).sum()
    }
}

impl Piece<'_> {
    /// Keeps what was read of it.
    pub(crate) fn keep(mut self, given: Vec<Given>) {
        self.given = Some(given);
    }
}

impl Drop for Piece<'_> {
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

/// Bytes that records hold.
pub(crate) fn bytes_of(given: &Given) -> u64 {
    given.iter().flatten().map(|batch| batch.get_array_memory_size() as u64).sum()
}

/// Bytes that a pass holds.
#[derive(Debug, Default)]
pub(crate) struct Held(AtomicU64);

impl Held {
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
