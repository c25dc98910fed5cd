//! Files that were packed after a table had loaded them.

use super::Storage;
use crate::content_hash::{ContentHash, HASH_BUFFER, Tally};
use crate::decompress::Decoded;
use crate::error::SourceError;
use crate::read::HeldContent;
use crate::storage::InputFile;

/// What a packed file holds of a content that a table has loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackedContent {
    /// The hash of the loaded content, with which the unpacked bytes begin.
    pub loaded: ContentHash,
    /// Whether the unpacked bytes are the loaded content; otherwise more follows.
    pub is_whole: bool,
    /// The hash of the packed file, as stored.
    pub packed: ContentHash,
}

impl Storage {
    /// The longest of the contents `held` with which the unpacked bytes of a packed file begin. Reads all of it. `None` if they
    /// begin with none of them, or if the file cannot be unpacked: its load says so.
    ///
    /// # Errors
    /// [`SourceError::Io`] or [`SourceError::Store`].
    pub fn packed_content(
        &self,
        input: &InputFile,
        held: &[HeldContent],
    ) -> Result<Option<PackedContent>, SourceError> {
        let mut unpacked = Tally::default();
        unpacked.mark(held.iter().map(|held| held.size).collect());
        let packed = match self.unpack_into(&mut unpacked, input) {
            Err(error @ (SourceError::Io { .. } | SourceError::Store { .. })) => return Err(error),
            Err(_) => return Ok(None),
            Ok(packed) => packed,
        };

        let loaded = held.iter().filter(|held| unpacked.marked(held.size) == Some(held.hash));
        Ok(loaded.max_by_key(|held| held.size).map(|held| PackedContent {
            loaded: held.hash,
            is_whole: held.size == unpacked.bytes(),
            packed,
        }))
    }

    /// Adds the unpacked bytes of a file to `unpacked`. Returns the hash of the file as stored.
    fn unpack_into(&self, unpacked: &mut Tally, input: &InputFile) -> Result<ContentHash, SourceError> {
        let mut from = Decoded::new(input.path.clone(), self.stop_check.read(self.raw(input)?))?;
        let mut piece = Vec::new();
        while from.append(&mut piece, HASH_BUFFER)? > 0 {
            unpacked.add(&piece);
            piece.clear();
        }
        Ok(from.hash())
    }
}
