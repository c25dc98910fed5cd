//! The bytes of a file of blocks, read in pieces of a megabyte and taken off the front.

use crate::decompress::Decoded;
use crate::error::SourceError;

/// Bytes that are read at once, at least.
const PIECE: usize = 1 << 20;

/// The bytes of a file without its compression, of which some are at hand.
pub(crate) struct BlockInput {
    bytes: Box<Decoded>,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were taken. They go when more is read, as blocks are smaller than what is read at once.
    taken: usize,
    /// Offset of the first of them in the file without its compression.
    offset: u64,
    has_ended: bool,
}

impl BlockInput {
    pub fn new(bytes: Decoded) -> Self {
        Self { bytes: Box::new(bytes), buffer: Vec::new(), taken: 0, offset: 0, has_ended: false }
    }

    /// The name of the file, for messages.
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

    /// The bytes that were read and not taken yet.
    pub fn at_hand(&self) -> &[u8] {
        self.buffer.get(self.taken..).unwrap_or_default()
    }

    /// Reads until at least `count` bytes are at hand; whether the file has so many. Nothing is reserved for bytes that a
    /// damaged length promises.
    pub fn wants(&mut self, count: usize) -> Result<bool, SourceError> {
        while self.at_hand().len() < count && !self.has_ended {
            let wanted = (count - self.at_hand().len()).max(PIECE);
            self.buffer.drain(..self.taken);
            self.taken = 0;
            self.has_ended = self.bytes.append(&mut self.buffer, wanted)? < wanted;
        }
        Ok(self.at_hand().len() >= count)
    }

    /// Takes the first `count` of the bytes at hand.
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        let taken = self.at_hand().get(..count).unwrap_or(self.at_hand()).to_vec();
        self.taken += taken.len();
        self.offset += taken.len() as u64;
        taken
    }

    /// Reads the rest of the file, of which the last `count` bytes are returned.
    pub fn last(&mut self, count: usize) -> Result<Vec<u8>, SourceError> {
        while self.wants(self.at_hand().len() + PIECE)? {
            self.take(self.at_hand().len() - count);
        }
        let rest = self.take(self.at_hand().len());
        Ok(rest.get(rest.len().saturating_sub(count)..).unwrap_or_default().to_vec())
    }

    /// The error of the block at hand; `record` is the number of its first record, from 1.
    pub fn damaged(&self, block: u64, record: u64, problem: impl ToString) -> SourceError {
        let (path, byte, problem) = (self.path().to_owned(), self.offset, problem.to_string());
        SourceError::DamagedBlock { path, block, byte, record, problem }
    }
}
