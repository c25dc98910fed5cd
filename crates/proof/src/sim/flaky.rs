//! Blobs that lose replies, as a bucket does.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tidetable_blobs::{BlobError, BlobWriter, Blobs, Listed, Listing, OpenMode, Place, Stat, Tag, WriteMode};
use tidetable_sstable::ReadAt;

use super::shelf::Shelf;
use crate::random::Random;

type Result<T> = std::result::Result<T, BlobError>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Right,
    /// Done, the reply was lost: the caller gets an error.
    LostAfter,
    /// Not done: the caller gets an error.
    LostBefore,
    /// Done, the reply was lost, and the client's retry is refused because of its own object: 412.
    TakenByItself,
    /// Not done, because of a concurrent request that did not succeed either: 409.
    TakenByNobody,
}

/// A shelf with some wrong replies to the writes that commit.
#[derive(Debug)]
pub struct Flaky {
    shelf: Shelf,
    random: Mutex<Random>,
    /// One reply in this many is wrong.
    one_in: u64,
}

impl Flaky {
    /// Wraps `shelf`; `random` decides which of the replies are wrong, one in `one_in`.
    pub fn new(shelf: Shelf, random: Random, one_in: u64) -> Self {
        Self { shelf, random: Mutex::new(random), one_in }
    }

    /// How the next write is answered, by random.
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
        let lost = || BlobError::Io { action: "write", path: path.to_owned(), source: io::ErrorKind::TimedOut.into() };
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

    fn open_writer(&self, path: &str, mode: WriteMode<'_>) -> Result<Box<dyn BlobWriter>> {
        self.shelf.open_writer(path, mode)
    }

    fn read_tagged(&self, path: &str) -> Result<Option<(Bytes, Option<Tag>)>> {
        self.shelf.read_tagged(path)
    }

    fn open_file(&self, path: &str, mode: OpenMode) -> Result<Arc<dyn ReadAt>> {
        self.shelf.open_file(path, mode)
    }

    fn list_files(&self, folder: &str, listing: Listing<'_>) -> Result<Vec<Listed>> {
        self.shelf.list_files(folder, listing)
    }

    fn stat_all(&self, paths: &[String]) -> Result<Vec<Option<Stat>>> {
        self.shelf.stat_all(paths)
    }

    fn delete_all(&self, paths: &[String]) -> Result<()> {
        self.shelf.delete_all(paths)
    }

    fn place(&self) -> Place<'_> {
        self.shelf.place()
    }
}
