//! Finishing SSTs beside the cores that encode: syncing a file is waiting for a disk.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Result;
use crate::sst_writer::SstFile;
use crate::version::Sst;

/// Files that are finished at the same time, and as many wait for it.
const FILES: usize = 4;

/// Which file of which window one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) window: i64,
    pub(crate) file: usize,
}

/// A file that was finished, or not.
pub(crate) struct Finished {
    pub(crate) place: Place,
    /// `None` if it would hold no row.
    pub(crate) sst: Result<Option<Sst>>,
    pub(crate) took: Duration,
}

/// Takes files that are written but for their end.
pub(crate) struct Finisher<'t> {
    sender: SyncSender<(Place, SstFile<'t>)>,
}

impl<'t> Finisher<'t> {
    /// Runs `work`, which hands files over, until all of them are finished: by place.
    pub(crate) fn beside<R>(work: impl FnOnce(&Self) -> R) -> (R, Vec<Finished>) {
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
    pub(crate) fn finish(&self, place: Place, file: SstFile<'t>) {
        // The receiver outlives every sender.
        let _ = self.sender.send((place, file));
    }
}

fn next<T>(receiver: &Mutex<Receiver<T>>) -> Option<T> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}
