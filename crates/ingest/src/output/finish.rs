//! Finishes SSTs on threads of their own, so that encoding does not wait for fsync.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tidetable_blobs::Blobs;
use tidetable_store::Result;
use tidetable_store::version::Sst;
use tidetable_store::write::SstFile;

/// Files finished at the same time in a directory, and at least in a bucket; as many may be queued.
const FILES: usize = 4;
/// Files finished at the same time in a bucket, at most: each waits for a reply or two.
const MOST_FILES: usize = 16;
/// Bytes that a file holds while it waits for its replies: its last part, and the one before.
const FILE_BYTES: u64 = 16 << 20;

/// Files of a load with a budget of `memory` bytes that are finished at the same time.
pub(crate) fn files_at_once(blobs: &dyn Blobs, memory: u64) -> usize {
    match blobs.capabilities().round_trips {
        true => ((memory / 4 / FILE_BYTES) as usize).clamp(FILES, MOST_FILES),
        false => FILES,
    }
}

/// The place of an output SST among those of a load: results are in this order, whichever file ends first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OutputId {
    pub(crate) window: i64,
    pub(crate) file: usize,
}

pub(crate) struct Finished {
    pub(crate) place: OutputId,
    /// `None` if it has no rows.
    pub(crate) sst: Result<Option<Sst>>,
    pub(crate) took: Duration,
}

/// Queue of files to finish. It is bounded, so that encoding does not run ahead of a slow disk.
pub(crate) struct Finisher<'t> {
    sender: SyncSender<(OutputId, SstFile<'t>)>,
}

impl<'t> Finisher<'t> {
    /// Runs `work`, which queues files, and waits until all are finished, `files` of them at a time. Returns them by place.
    pub(crate) fn beside<R>(files: usize, work: impl FnOnce(&Self) -> R) -> (R, Vec<Finished>) {
        let (sender, receiver) = sync_channel::<(OutputId, SstFile<'t>)>(FILES);
        let (receiver, done) = (Mutex::new(receiver), Mutex::new(Vec::new()));
        let result = std::thread::scope(|scope| {
            for _ in 0..files {
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

    /// Queues `file`; blocks while the queue is full.
    pub(crate) fn finish(&self, place: OutputId, file: SstFile<'t>) {
        // The receiver outlives every sender.
        let _ = self.sender.send((place, file));
    }
}

fn next<T>(receiver: &Mutex<Receiver<T>>) -> Option<T> {
    receiver.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}
