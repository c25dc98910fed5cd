//! Feeds: where a load gets rows from, such as the files of a source or record batches.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::RecordBatch;
use tidetable_source::{Chunk, ContentHash, InputFile, Parser, SourceSpec, Storage};
use tidetable_store::{Result, StoreError};

/// Some rows of an input.
#[derive(Debug)]
pub enum FeedPiece {
    /// A chunk of a file, to be parsed on any thread.
    Chunk {
        /// Parser of the file.
        parser: Arc<Parser>,
        /// The chunk.
        chunk: Chunk,
    },
    /// Rows in the columns and types for which the layouts were compiled.
    Rows(RecordBatch),
}

impl FeedPiece {
    /// Its offset in the input: in bytes for a chunk; in rows, that is `first_row`, for rows.
    pub(crate) fn offset(&self, first_row: u64) -> u64 {
        match self {
            Self::Chunk { chunk, .. } => chunk.offset(),
            Self::Rows(_) => first_row.saturating_sub(1),
        }
    }
}

/// Facts about an input that are known after reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedEnd {
    /// Hash of its content.
    pub hash: ContentHash,
    /// Bytes read, as stored; 0 if it has no bytes of its own.
    pub bytes: u64,
}

/// A source of rows for a load.
pub trait Feed: Debug + Sync {
    /// Passes the pieces of `input` to `give` in order, each with the bytes read since the one before. A piece begins
    /// at each of `cuts`: offsets in bytes for chunks, in rows for rows. Returns `None` if `give` returned false, to
    /// stop.
    ///
    /// # Errors
    /// Those of reading; [`StoreError::InputChanged`] if the input changed meanwhile.
    fn read(
        &self,
        input: &InputFile,
        cuts: &[u64],
        give: &mut dyn FnMut(FeedPiece, u64) -> bool,
    ) -> Result<Option<FeedEnd>>;

    /// Called between the pieces of long work, to cancel the load.
    ///
    /// # Errors
    /// The error with which the load shall end.
    fn go_on(&self) -> Result<()> {
        Ok(())
    }
}

/// The files of a source.
#[derive(Debug, Clone, Copy)]
pub struct FileFeed<'a> {
    /// Their storage.
    pub storage: &'a Storage,
    /// Their format and columns.
    pub source: &'a SourceSpec,
}

impl Feed for FileFeed<'_> {
    fn read(
        &self,
        input: &InputFile,
        cuts: &[u64],
        give: &mut dyn FnMut(FeedPiece, u64) -> bool,
    ) -> Result<Option<FeedEnd>> {
        let mut reader = self.storage.open(self.source, input)?;
        reader.cut_at(cuts);
        let parser = reader.parser();
        let mut seen = 0;
        while let Some(chunk) = reader.next() {
            let bytes = reader.bytes_read();
            if !give(FeedPiece::Chunk { parser: Arc::clone(&parser), chunk: chunk? }, bytes - seen) {
                return Ok(None);
            }
            seen = bytes;
        }
        let bytes = reader.bytes_read();
        if bytes != input.size {
            return Err(StoreError::InputChanged { path: input.path.clone() });
        }
        Ok(Some(FeedEnd { hash: reader.content_hash(), bytes }))
    }
}
