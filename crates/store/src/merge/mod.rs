//! Merging sorted blocks of several SSTs into one sorted run, in columns.
//!
//! Rows that only one source holds are copied as ranges; rows that several hold are combined record
//! by record: a [`plan`] says which source and record each output record comes from, and
//! [`gather`] builds the columns from it. Of two cells alike the one of the greater order wins.

mod gather;
mod plan;

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use tidetable_layout::{Block, StoredSchema};

use crate::error::Result;
pub use gather::slice;
use plan::{BlockPlan, Head, Step};

/// Rows after which an output block is closed.
const BLOCK_ROWS: usize = 16_384;

/// The rows `rows` of `block`, which ascend.
pub(crate) fn keep_rows(schema: &StoredSchema, block: &Block, rows: &[Range<usize>]) -> Result<Block> {
    if let [only] = rows {
        return Ok(slice(block, only.clone()));
    }
    let steps = rows.iter().map(|rows| Step::Copy { source: 0, rows: rows.clone() }).collect();
    gather::gather(schema, &[block], &BlockPlan { steps })
}

/// `blocks`, of which each begins after the one before it ends, as one.
pub(crate) fn concat(schema: &StoredSchema, blocks: &[Block]) -> Result<Block> {
    let steps = blocks.iter().enumerate().map(|(source, block)| Step::Copy { source, rows: 0..block.keys.len() });
    gather::gather(schema, &blocks.iter().collect::<Vec<_>>(), &BlockPlan { steps: steps.collect() })
}

/// An iterator of blocks in key order, over sources that are each in key order.
#[derive(Debug)]
pub(crate) struct Merge<I> {
    schema: Arc<StoredSchema>,
    sources: Vec<Source<I>>,
}

/// One input of a merge and how far it was read.
#[derive(Debug)]
struct Source<I> {
    blocks: I,
    block: Option<Block>,
    row: usize,
}

impl<I: Iterator<Item = Result<Block>>> Merge<I> {
    /// Merges `sources`, each with its order.
    pub(crate) fn new(schema: Arc<StoredSchema>, mut sources: Vec<(u64, I)>) -> Self {
        sources.sort_by_key(|(order, _)| *order);
        let sources = sources.into_iter().map(|(_, blocks)| Source { blocks, block: None, row: 0 }).collect();
        Self { schema, sources }
    }

    /// Makes every source stand at a row, and forgets those that have none left.
    fn fill(&mut self) -> Result<()> {
        for source in &mut self.sources {
            while source.block.as_ref().is_none_or(|block| source.row >= block.keys.len()) {
                source.row = 0;
                source.block = source.blocks.next().transpose()?;
                if source.block.is_none() {
                    break;
                }
            }
        }
        self.sources.retain(|source| source.block.is_some());
        Ok(())
    }

    fn merged(&mut self) -> Result<Option<Block>> {
        self.fill()?;
        if let [source] = self.sources.as_mut_slice() {
            let row = std::mem::take(&mut source.row);
            let block = source.block.take();
            return Ok(block.map(|block| if row == 0 { block } else { gather::tail(block, row) }));
        }
        let mut heads: Vec<Head<'_>> =
            self.sources.iter().filter_map(|s| Some(Head { block: s.block.as_ref()?, row: s.row })).collect();
        if heads.is_empty() {
            return Ok(None);
        }
        let plan = BlockPlan::new(&mut heads, BLOCK_ROWS);
        let rows: Vec<usize> = heads.iter().map(|head| head.row).collect();
        let blocks: Vec<&Block> = heads.iter().map(|head| head.block).collect();
        let merged = gather::gather(&self.schema, &blocks, &plan)?;
        for (source, row) in self.sources.iter_mut().zip(rows) {
            source.row = row;
        }
        Ok(Some(merged))
    }
}

impl<I: Iterator<Item = Result<Block>>> Iterator for Merge<I> {
    type Item = Result<Block>;

    fn next(&mut self) -> Option<Self::Item> {
        let merged = self.merged().transpose();
        if matches!(merged, Some(Err(_))) {
            self.sources.clear();
        }
        merged
    }
}
