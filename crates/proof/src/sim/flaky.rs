//! Blobs whose answers get lost, as those of a bucket do.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tidetable_sstable::ReadAt;
use tidetable_store::{BlobWriter, Blobs, Stat, StoreError};

use super::shelf::Shelf;
use crate::random::Random;

type Result<T> = std::result::Result<T, StoreError>;

/// What became of a `create_new`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Right,
    /// It was done; the answer was lost and the caller got an error.
    LostAfter,
    /// It was not done; the caller got an error.
    LostBefore,
    /// It was done; the answer was lost, the client asked again and was told that the name is taken.
    TakenByItself,
    /// It was not done, for another was at it at the same time, who then did not finish either: 409.
    TakenByNobody,
}

/// A shelf some of whose answers are wrong.
#[derive(Debug)]
pub struct Flaky {
    shelf: Shelf,
    random: Mutex<Random>,
    /// One answer in so many is not the right one.
    one_in: u64,
}

impl Flaky {
    /// Puts an unreliable line before `shelf`.
    pub fn new(shelf: Shelf, random: Random, one_in: u64) -> Self {
        Self { shelf, random: Mutex::new(random), one_in }
    }

    fn answer(&self) -> Answer {
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        if !random.one_in(self.one_in) {
            return Answer::Right;
        }
        let wrong = [Answer::LostAfter, Answer::LostBefore, Answer::TakenByItself, Answer::TakenByNobody];
        random.pick(&wrong).unwrap_or(Answer::Right)
    }
}

impl Blobs for Flaky {
    fn create_new(&self, path: &str, bytes: &[u8]) -> Result<bool> {
        let lost = || StoreError::Io { action: "write", path: path.to_owned(), source: io::ErrorKind::TimedOut.into() };
        match self.answer() {
            Answer::Right => self.shelf.create_new(path, bytes),
            Answer::LostAfter => self.shelf.create_new(path, bytes).and(Err(lost())),
            Answer::LostBefore => Err(lost()),
            Answer::TakenByItself => self.shelf.create_new(path, bytes).and(Ok(false)),
            Answer::TakenByNobody => Ok(false),
        }
    }

    fn replace(&self, path: &str, bytes: &[u8]) -> Result<()> {
        self.shelf.replace(path, bytes)
    }

    fn writer(&self, path: &str) -> Result<Box<dyn BlobWriter>> {
        self.shelf.writer(path)
    }

    fn overwrite_writer(&self, path: &str) -> Result<Box<dyn BlobWriter>> {
        self.shelf.overwrite_writer(path)
    }

    fn read(&self, path: &str) -> Result<Option<Bytes>> {
        self.shelf.read(path)
    }

    fn open(&self, path: &str) -> Result<Arc<dyn ReadAt>> {
        self.shelf.open(path)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        self.shelf.list(folder)
    }

    fn stat(&self, path: &str) -> Result<Option<Stat>> {
        self.shelf.stat(path)
    }

    fn delete(&self, path: &str) -> Result<()> {
        self.shelf.delete(path)
    }

    fn display(&self) -> String {
        self.shelf.display()
    }
}
