//! Feeds: where a load gets rows from, such as the files of a source or record batches.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::RecordBatch;
use serde::{Deserialize, Serialize};
use tidetable_source::{
    Chunk, ContentHash, InputFile, InputReader, Parser, SourceError, SourceSpec, Storage, TextShape,
};
use tidetable_store::{Result, StoreError};

/// Some consecutive rows of an input, as they were read.
#[derive(Debug)]
pub enum FeedPiece {
    /// A chunk of a file, to be parsed on any thread.
    Chunk {
        /// Parser of the file, which all its chunks share.
        parser: Arc<Parser>,
        /// Bytes of whole records, with their place in the file.
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
    /// Hash of its content, by which the next load knows it as unchanged, and other files as copies of it.
    pub hash: ContentHash,
    /// Bytes read, as stored; 0 if it has no bytes of its own.
    pub bytes: u64,
    /// The content that was loaded, if the last line was not: it has no line end, and the file changed meanwhile.
    pub loaded: Option<LoadedContent>,
    /// What the beginning of a text decided, such as how its lines end; kept for the rows that it may get later.
    pub shape: TextShape,
}

/// The first bytes of an input, which are all of its content that a table holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedContent {
    /// Length of the content in bytes, as stored.
    pub bytes: u64,
    /// Hash of these bytes, as that of a whole file.
    pub hash: ContentHash,
}

/// A source of rows for a load, such as files, batches in memory, or the windows of other tables.
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

/// The files of a source, as found by its storage.
#[derive(Debug, Clone, Copy)]
pub struct FileFeed<'a> {
    /// The directory or bucket that the files are read from.
    pub storage: &'a Storage,
    /// Format of the files, and the columns to parse with their types.
    pub source: &'a SourceSpec,
}

impl Feed for FileFeed<'_> {
    fn read(
        &self,
        input: &InputFile,
        cuts: &[u64],
        give: &mut dyn FnMut(FeedPiece, u64) -> bool,
    ) -> Result<Option<FeedEnd>> {
        let mut reader = self.storage.open(self.source, input).map_err(|error| of_change(input, error))?;
        reader.cut_at(cuts);
        let parser = reader.parser();

        let mut seen = 0;
        while let Some(chunk) = reader.next() {
            let bytes = reader.bytes_read();
            let chunk = chunk.map_err(|error| of_change(input, error))?;
            if !give(FeedPiece::Chunk { parser: Arc::clone(&parser), chunk }, bytes - seen) {
                return Ok(None);
            }
            seen = bytes;
        }

        let bytes = reader.bytes_read();
        if bytes != input.size {
            return Err(StoreError::InputChanged { path: input.path.clone() });
        }
        let loaded = self.loaded(input, &reader)?;
        Ok(Some(FeedEnd { hash: reader.content_hash(), bytes, loaded, shape: reader.shape() }))
    }
}

impl FileFeed<'_> {
    /// What was loaded of an input that was read, if that is not all of it.
    ///
    /// Text may be appended while it is read: what was there before is loaded, and the rest by the next load.
    ///
    /// # Errors
    /// [`StoreError::InputChanged`] if the file no longer begins with what was read.
    fn loaded(&self, input: &InputFile, reader: &InputReader) -> Result<Option<LoadedContent>> {
        let (left, hash) = (reader.bytes_left(), reader.content_hash());
        if !input.format.is_text() || (left == 0 && input.is_as_found()) {
            return Ok(None);
        }
        let bytes = input.size - left;
        match self.storage.hash_of_first(input, bytes, hash)? {
            Some(_) if left == 0 => Ok(None),
            Some(hash) => Ok(Some(LoadedContent { bytes, hash })),
            None => Err(StoreError::InputChanged { path: input.path.clone() }),
        }
    }
}

/// A failed read of an input that has changed meanwhile is no fault of its content.
fn of_change(input: &InputFile, error: SourceError) -> StoreError {
    let is_of_content = !matches!(error, SourceError::Io { .. } | SourceError::Store { .. });
    if is_of_content && !input.is_as_found() {
        return StoreError::InputChanged { path: input.path.clone() };
    }
    error.into()
}
