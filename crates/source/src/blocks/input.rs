//! The bytes of a file of blocks.

use crate::decompress::Decoded;
use crate::error::SourceError;

/// Bytes that are read at once, at least.
const PIECE: usize = 1 << 20;

/// The bytes of a file, of which some are at hand.
pub(crate) struct BlockInput {
    bytes: Box<Decoded>,
    at_hand: Vec<u8>,
    /// Offset of the first of them in the file without its compression.
    offset: u64,
    has_ended: bool,
}

impl BlockInput {
    pub fn new(bytes: Decoded) -> Self {
        Self { bytes: Box::new(bytes), at_hand: Vec::new(), offset: 0, has_ended: false }
    }

    /// The file, for messages.
    pub fn path(&self) -> &str {
        self.bytes.path()
    }

    /// Its stored bytes: how many were read, and their hash.
    pub fn stored(&self) -> &Decoded {
        &self.bytes
    }

    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The bytes at hand.
    pub fn at_hand(&self) -> &[u8] {
        &self.at_hand
    }

    /// Reads until at least `count` bytes are at hand; whether the file has so many. Nothing is reserved for bytes that a
    /// damaged length promises.
    pub fn wants(&mut self, count: usize) -> Result<bool, SourceError> {
        while self.at_hand.len() < count && !self.has_ended {
            let wanted = (count - self.at_hand.len()).max(PIECE);
            self.has_ended = self.bytes.append(&mut self.at_hand, wanted)? < wanted;
        }
        Ok(self.at_hand.len() >= count)
    }

    /// Takes the first `count` of the bytes at hand.
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        let rest = self.at_hand.split_off(count.min(self.at_hand.len()));
        let taken = std::mem::replace(&mut self.at_hand, rest);
        self.offset += taken.len() as u64;
        taken
    }

    /// Reads the rest of the file, of which the last `count` bytes are returned.
    pub fn last(&mut self, count: usize) -> Result<Vec<u8>, SourceError> {
        while self.wants(self.at_hand.len() + PIECE)? {
            self.take(self.at_hand.len() - count);
        }
        let rest = self.take(self.at_hand.len());
        Ok(rest.get(rest.len().saturating_sub(count)..).unwrap_or_default().to_vec())
    }

    /// The error of the block at hand; `record` is the number of its first record, from 1.
    pub fn damaged(&self, block: u64, record: u64, problem: impl ToString) -> SourceError {
        let (path, byte, problem) = (self.path().to_owned(), self.offset, problem.to_string());
        SourceError::DamagedBlock { path, block, byte, record, problem }
    }
}
