//! Where rows come from: the files of a source, or whatever else gives batches of them.

use std::fmt::Debug;
use std::sync::Arc;

use arrow::array::RecordBatch;
use tidetable_source::{Chunk, ContentHash, InputFile, Parser, SourceSpec, Storage};

use crate::error::{Result, StoreError};

/// Some rows of an input.
#[derive(Debug)]
pub enum Piece {
    /// A piece of a file, which any thread may parse.
    Chunk {
        /// Knows the file.
        parser: Arc<Parser>,
        /// The piece.
        chunk: Chunk,
    },
    /// Rows in the columns and types that the layouts were compiled for.
    Rows(RecordBatch),
}

impl Piece {
    /// Where it begins in its input: the bytes before a chunk, or the rows before rows, of which `first_row` is the first.
    pub(crate) fn offset(&self, first_row: u64) -> u64 {
        match self {
            Self::Chunk { chunk, .. } => chunk.offset(),
            Self::Rows(_) => first_row.saturating_sub(1),
        }
    }
}

/// What is known of an input at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedEnd {
    /// Hash of its content.
    pub hash: ContentHash,
    /// Bytes read of it, as stored; 0 if it has none of its own.
    pub bytes: u64,
}

/// Gives the rows of inputs.
pub trait Feed: Debug + Sync {
    /// Gives the pieces of `input` in order, each with the bytes read since the one before. At `cuts` pieces begin: offsets
    /// in bytes of what is given as chunks, in rows of what is given as rows. `None` if `give` answers false: nobody wants
    /// more.
    ///
    /// # Errors
    /// Those of reading; [`StoreError::InputMoved`] if the input changed meanwhile.
    fn read(
        &self,
        input: &InputFile,
        cuts: &[u64],
        give: &mut dyn FnMut(Piece, u64) -> bool,
    ) -> Result<Option<FeedEnd>>;

    /// Whether the load is to go on: asked between the pieces of all long work.
    ///
    /// # Errors
    /// Why it is not, for the load to end with.
    fn go_on(&self) -> Result<()> {
        Ok(())
    }
}

/// The files of a source.
#[derive(Debug, Clone, Copy)]
pub struct FileFeed<'a> {
    /// Where they lie.
    pub storage: &'a Storage,
    /// What they hold.
    pub source: &'a SourceSpec,
}

impl Feed for FileFeed<'_> {
    fn read(
        &self,
        input: &InputFile,
        cuts: &[u64],
        give: &mut dyn FnMut(Piece, u64) -> bool,
    ) -> Result<Option<FeedEnd>> {
        let mut reader = self.storage.open(self.source, input)?;
        reader.cut_at(cuts);
        let parser = reader.parser();
        let mut seen = 0;
        while let Some(chunk) = reader.next() {
            let bytes = reader.bytes_read();
            if !give(Piece::Chunk { parser: Arc::clone(&parser), chunk: chunk? }, bytes - seen) {
                return Ok(None);
            }
            seen = bytes;
        }
        let bytes = reader.bytes_read();
        if bytes != input.size {
            return Err(StoreError::InputMoved { path: input.path.clone() });
        }
        Ok(Some(FeedEnd { hash: reader.content_hash(), bytes }))
    }
}
