//! Finishing SSTs beside the cores that encode: syncing a file is waiting for a disk.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::output::SstFile;
use crate::version::Sst;

/// Files that are finished at the same time, and as many wait for it.
const FILES: usize = 4;

/// Which file of which window one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) window: i64,
    pub(super) file: usize,
}

/// A file that was finished, or not.
pub(super) struct Finished {
    pub(super) place: Place,
    /// `None` if it would hold no row.
    pub(super) sst: Result<Option<Sst>>,
    pub(super) took: Duration,
}

/// Takes files that are written but for their end.
pub(super) struct Finisher<'t> {
    sender: SyncSender<(Place, SstFile<'t>)>,
}

impl<'t> Finisher<'t> {
    /// Runs `work`, which hands files over, until all of them are finished: by place.
    pub(super) fn beside<R>(work: impl FnOnce(&Self) -> R) -> (R, Vec<Finished>) {
        let (sender, receiver) = sync_channel::<(Place, SstFile<'t>)>(FILES);
        let (receiver, done) = (Mutex::new(receiver), Mutex::new(Vec::new()));
        let result = std::thread::scope(|scope| {
            for _ in 0..FILES {
                scope.spawn(|| {
                    while let Some((place, file)) = next(&receiver) {
                        let clock = Instant::now();
                        let finished = Finished { place, sst: file.end(), took: clock.elapsed() };
                        done.lock().unwrap_or_else(PoisonError::into_inner).push(finished);
                    }
                });
            }
            // The threads end when the sender is gone.
            let finisher = Self { sender };
            work(&finisher)
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|finished| finished.place);
        (result, done)
    }

    /// Finishes `file`, soon. Waits if many are being finished.
    pub(super) fn finish(&self, place: Place, file: SstFile<'t>) {
        // The receiver outlives every sender.
        let _ = self.sender.send((place, file));
    }
}

fn next<T>(receiver: &Mutex<Receiver<T>>) -> Option<T> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}
