//! Content hashes of files, by which a changed input is told from one that was copied again.

use std::io::Read;
use std::str::FromStr;
use std::{fmt, io};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use xxhash_rust::xxh3::Xxh3Default;

use crate::error::SourceError;

/// XXH3-128 (seed 0) of a file's stored bytes, before decompression. Displayed as 32 hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash(pub u128);

impl fmt::Display for ContentHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}", self.0)
    }
}

impl FromStr for ContentHash {
    type Err = SourceError;

    fn from_str(text: &str) -> Result<Self, SourceError> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u128::from_str_radix(text, 16) {
            Ok(hash) if is_hex => Ok(Self(hash)),
            _ => Err(SourceError::BadHash { text: text.to_owned() }),
        }
    }
}

impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A running count and hash of bytes, which also keeps the hashes of marked beginnings.
#[derive(Default)]
pub(crate) struct Tally {
    hasher: Box<Xxh3Default>,
    bytes: u64,
    /// Numbers of bytes whose hash is to be kept, the least last.
    marks: Vec<u64>,
    /// Those seen so far, each with the hash of so many bytes.
    marked: Vec<(u64, ContentHash)>,
}

impl Tally {
    /// Keeps the hashes of the first so many bytes, none of which has been seen yet.
    pub fn mark(&mut self, mut marks: Vec<u64>) {
        marks.sort_unstable_by(|a, b| b.cmp(a));
        self.marks = marks;
    }

    /// The hash of the first `mark` bytes, if they were marked and all of them have been seen.
    pub fn marked(&self, mark: u64) -> Option<ContentHash> {
        let at = self.marked.binary_search_by_key(&mark, |(mark, _)| *mark).ok()?;
        self.marked.get(at).map(|(_, hash)| *hash)
    }

    pub fn add(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(mark) = self.marks.last().copied()
            && let Some((first, others)) =
                usize::try_from(mark - self.bytes).ok().and_then(|missing| rest.split_at_checked(missing))
        {
            self.hasher.update(first);
            self.bytes += first.len() as u64;
            self.marks.pop();
            self.marked.push((mark, self.hash()));
            rest = others;
        }
        self.hasher.update(rest);
        self.bytes += rest.len() as u64;
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn hash(&self) -> ContentHash {
        ContentHash(self.hasher.digest128())
    }
}

/// Bytes that are read at once for hashing.
pub(crate) const HASH_BUFFER: usize = 1 << 20;

/// Reads to the end, and adds all bytes to `tally`.
pub(crate) fn hash_all(from: &mut dyn Read, tally: &mut Tally) -> io::Result<()> {
    hash_all_by(from, tally, HASH_BUFFER)
}

/// As [`hash_all`], with a buffer of so many bytes.
pub(crate) fn hash_all_by(from: &mut dyn Read, tally: &mut Tally, buffer: usize) -> io::Result<()> {
    let mut buffer = vec![0; buffer];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => tally.add(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
