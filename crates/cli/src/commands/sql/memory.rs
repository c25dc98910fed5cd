//! Ends statements that hold more memory than `--memory` allows.
//!
//! DataFusion counts what sorts, aggregations and joins keep, and spills it. Window functions, readers of files and single
//! functions count nothing. So a thread compares what the process holds with what it held when the statement began.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use futures::channel::oneshot::{self, Receiver, Sender};

use crate::allocator::give_back;
use crate::error::CliError;
use crate::output::values::bytes;

/// What a statement may hold beyond its limit, bytes: buffers of readers, plans, and memory that the allocator keeps.
const ALLOWANCE: u64 = 80 << 20;
/// How often memory is measured. A process is given two to three gigabytes a second at most.
const INTERVAL: Duration = Duration::from_millis(5);

/// A statement whose memory is watched until this is dropped.
pub(crate) struct MemoryWatch {
    limit: u64,
    exceeded: Option<Receiver<u64>>,
    /// Measures until the receiver is gone.
    thread: Option<JoinHandle<()>>,
}

impl MemoryWatch {
    /// Watches a statement that begins now, with a limit of `limit` bytes; without a limit nothing is watched.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub(crate) fn start(limit: Option<u64>) -> io::Result<Self> {
        let Some(limit) = limit else { return Ok(Self { limit: 0, exceeded: None, thread: None }) };
        // What earlier statements left would hide what this one takes.
        give_back();
        let status = File::open("/proc/self/status").ok();
        let Some((status, before)) = status.and_then(|status| anonymous_bytes(&status).map(|before| (status, before)))
        else {
            // Only Linux says it.
            return Ok(Self { limit, exceeded: None, thread: None });
        };

        let (sender, receiver) = oneshot::channel();
        let most = before.saturating_add(limit).saturating_add(ALLOWANCE);
        let watch = move || {
            if let Some(held) = wait_until_beyond(&status, most, &sender) {
                // The statement may have ended just now.
                let _ = sender.send(held.saturating_sub(before));
            }
        };
        let thread = Builder::new().name("memory".to_owned()).spawn(watch)?;
        Ok(Self { limit, exceeded: Some(receiver), thread: Some(thread) })
    }

    /// Returns the error of the statement when it holds too much; never, if it does not.
    pub(crate) async fn exceeded(&mut self) -> CliError {
        let held = match &mut self.exceeded {
            Some(exceeded) => exceeded.await.ok(),
            None => None,
        };
        match held {
            Some(held) => CliError::StatementMemory { held: bytes(held), limit: bytes(self.limit) },
            None => std::future::pending().await,
        }
    }
}

impl Drop for MemoryWatch {
    fn drop(&mut self) {
        self.exceeded = None;
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

/// Measures until the process holds more than `most` bytes; `None` when nobody waits any longer, or it cannot be measured.
fn wait_until_beyond(status: &File, most: u64, waiting: &Sender<u64>) -> Option<u64> {
    while !waiting.is_canceled() {
        if anonymous_bytes(status)? > most {
            // Freed memory may be kept for a while.
            give_back();
            let held = anonymous_bytes(status)?;
            if held > most {
                return Some(held);
            }
        }
        std::thread::park_timeout(INTERVAL);
    }
    None
}

/// The memory of this process that is no file's, bytes, as its `/proc/self/status` says.
fn anonymous_bytes(status: &File) -> Option<u64> {
    let mut bytes = [0; 4096];
    let length = status.read_at(&mut bytes, 0).ok()?;
    let text = String::from_utf8_lossy(bytes.get(..length)?);
    let (_, rest) = text.split_once("RssAnon:")?;
    let kibibytes = rest.split_whitespace().next()?.parse::<u64>().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_held_is_measured() {
        let status = File::open("/proc/self/status").unwrap();
        let before = anonymous_bytes(&status).unwrap();
        let held = std::hint::black_box(vec![1_u8; 256 << 20]);
        let during = anonymous_bytes(&status).unwrap();
        assert!(during > before + (128 << 20), "{before}, {during}");
        drop(held);
    }

    #[test]
    fn a_watch_without_a_limit_measures_nothing() {
        let watch = MemoryWatch::start(None).unwrap();
        assert!(watch.thread.is_none());
    }
}
