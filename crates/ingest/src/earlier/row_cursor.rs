//! A scan that is read row by row.

use tidetable_layout::Block;
use tidetable_store::Result;
use tidetable_store::merge::slice_block;
use tidetable_store::read::BlockScan;

/// A scan with its current block and the next row of it.
pub(super) struct RowCursor {
    scan: BlockScan,
    pub(super) block: Option<Block>,
    pub(super) row: usize,
}

/// Whether a cursor has a row, and whether that is in another block than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filled {
    SameBlock,
    NewBlock,
    End,
}

impl RowCursor {
    pub(super) fn new(scan: BlockScan) -> Self {
        Self { scan, block: None, row: 0 }
    }

    /// Reads blocks until one has a row left.
    ///
    /// # Errors
    /// As the scan.
    pub(super) fn fill(&mut self) -> Result<Filled> {
        let mut filled = Filled::SameBlock;
        while self.left() == 0 {
            let Some(block) = self.scan.next().transpose()? else { return Ok(Filled::End) };
            (self.block, self.row, filled) = (Some(block), 0, Filled::NewBlock);
        }
        Ok(filled)
    }

    /// Rows of the current block from the next on.
    pub(super) fn left(&self) -> usize {
        self.block.as_ref().map_or(0, |block| block.keys.len() - self.row)
    }

    /// Takes the next `rows` rows, which must be [left](Self::left); `None` before the first block.
    pub(super) fn take(&mut self, rows: usize) -> Option<Block> {
        let range = self.row..self.row + rows;
        self.row = range.end;
        self.block.as_ref().map(|block| slice_block(block, range))
    }
}
