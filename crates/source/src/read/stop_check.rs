//! Stops reading a file: hashing a large one must not outlast the run that asked for it.

use std::io::{self, Read};
use std::sync::Arc;

/// Asked before each piece of a file whether to go on; the default goes on to its end.
#[derive(Clone, Default)]
pub(crate) struct StopCheck(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl StopCheck {
    pub fn new(goes_on: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(goes_on)))
    }

    /// A reader of `from` that fails once the check says stop.
    pub fn read(&self, from: impl Read + Send + 'static) -> Box<dyn Read + Send> {
        match &self.0 {
            None => Box::new(from),
            Some(_) => Box::new(CheckedBytes { from, check: self.clone() }),
        }
    }
}

struct CheckedBytes<R> {
    from: R,
    check: StopCheck,
}

impl<R: Read> Read for CheckedBytes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.check.0.as_ref().is_some_and(|goes_on| !goes_on()) {
            return Err(io::Error::other("stopped while it was read"));
        }
        self.from.read(buffer)
    }
}
