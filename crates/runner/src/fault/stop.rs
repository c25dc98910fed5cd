//! Requests to stop a run. It cleans up what is not committed, and ends as interrupted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidetable_ingest::{Feed, FeedEnd, FeedPiece};
use tidetable_source::InputFile;
use tidetable_store::{Result as StoreResult, StoreError};

use crate::fault::error::RunError;

/// Poll interval while a query runs.
const PAUSE: Duration = Duration::from_millis(50);

/// The stop flag of a run. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    signal: Arc<AtomicUsize>,
}

/// A run was stopped by the signal of this number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("stopped by signal {0}")]
pub struct Stopped(pub u8);

impl Stop {
    /// The number of the signal, 0 until one comes; for the signal handler.
    pub fn signal(&self) -> &Arc<AtomicUsize> {
        &self.signal
    }

    /// The signal, if one came.
    pub fn asked(&self) -> Option<Stopped> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(Stopped(u8::try_from(signal).unwrap_or(u8::MAX))),
        }
    }

    /// Fails if the run is asked to stop.
    ///
    /// # Errors
    /// [`RunError::Interrupted`] if the run is asked to stop.
    pub(crate) fn check(&self) -> Result<(), RunError> {
        self.asked().map_or(Ok(()), |stopped| Err(stopped.into()))
    }

    /// The same as an error of the store, for work on `what`.
    pub(crate) fn go_on(&self, what: &str) -> StoreResult<()> {
        match self.asked() {
            Some(stopped) => Err(StoreError::Feed { input: what.to_owned(), source: Box::new(stopped) }),
            None => Ok(()),
        }
    }

    /// Waits until the run is asked to stop.
    pub(crate) async fn wait(&self) -> RunError {
        loop {
            if let Some(stopped) = self.asked() {
                return stopped.into();
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl From<Stopped> for RunError {
    fn from(stopped: Stopped) -> Self {
        Self::Interrupted { signal: stopped.0 }
    }
}

/// A feed that fails when the run is asked to stop.
#[derive(Debug)]
pub(crate) struct Stoppable<'a> {
    pub(crate) feed: &'a dyn Feed,
    pub(crate) stop: &'a Stop,
}

impl Feed for Stoppable<'_> {
    fn read(
        &self,
        input: &InputFile,
        cuts: &[u64],
        give: &mut dyn FnMut(FeedPiece, u64) -> bool,
    ) -> StoreResult<Option<FeedEnd>> {
        let end = self.feed.read(input, cuts, &mut |piece, bytes| self.stop.asked().is_none() && give(piece, bytes))?;
        self.stop.go_on(&input.path).map(|()| end)
    }

    fn go_on(&self) -> StoreResult<()> {
        self.stop.go_on("what was read")
    }
}
