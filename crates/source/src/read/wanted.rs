//! Whether a file is wanted to its end: hashing a large one must not outlast who asked for it.

use std::io::{self, Read};
use std::sync::Arc;

/// Asked before each piece of a file; without a question all of it is wanted.
#[derive(Clone, Default)]
pub(crate) struct Wanted(Option<Arc<dyn Fn() -> bool + Send + Sync>>);

impl Wanted {
    pub fn asking(is_wanted: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(is_wanted)))
    }

    /// What gives the bytes of `from` as long as they are wanted.
    pub fn read(&self, from: impl Read + Send + 'static) -> Box<dyn Read + Send> {
        match &self.0 {
            None => Box::new(from),
            Some(_) => Box::new(WantedBytes { from, wanted: self.clone() }),
        }
    }
}

struct WantedBytes<R> {
    from: R,
    wanted: Wanted,
}

impl<R: Read> Read for WantedBytes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.wanted.0.as_ref().is_some_and(|is_wanted| !is_wanted()) {
            return Err(io::Error::other("stopped while it was read"));
        }
        self.from.read(buffer)
    }
}
