//! K-way merge of sorted runs of rows, in columns.
//!
//! A loser tree selects the next source. Rows of one source are copied as ranges; rows of several are merged record
//! by record: a `plan` assigns a block and record to each output record, and `gather` builds the columns. Among
//! equal cells the greatest sequence number wins.

pub(crate) mod dedup;
pub mod emptied;
pub(crate) mod fixed;
pub(crate) mod gather;
pub(crate) mod operator;
pub(crate) mod place;
pub(crate) mod plan;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod tree;

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, AsArray};
use tidetable_layout::{Block, StoredSchema};

use crate::error::Result;
pub use dedup::Contents;
pub use gather::slice_block;
pub use operator::{EqualCells, MergeError, Overflow, merge_cells};
pub use place::{RecordRef, RowRef};
use plan::{BlockPlan, MergeStep, run_before};
use tree::LoserTree;

/// Greatest number of rows of an output block, by default.
const BLOCK_ROWS: usize = 16_384;
/// Rows of the first output block, since a query with a limit may need no more. Each block has four times the rows of the one before.
const FIRST_ROWS: usize = 64;
/// Approximate limit on the bytes of an output block.
const BLOCK_BYTES: usize = 16 << 20;

/// The rows `rows` (ascending) of `block`.
pub(crate) fn keep_rows(schema: &StoredSchema, block: &Block, rows: &[Range<usize>]) -> Result<Block> {
    if let [only] = rows {
        return Ok(slice_block(block, only.clone()));
    }

    let steps = rows.iter().map(|rows| MergeStep::Copy { source: 0, rows: rows.clone() }).collect();
    let mut kept = gather::gather(schema, &[block], &BlockPlan { steps }, Overflow::Fails)?;
    for (kept, group) in kept.groups.iter_mut().flatten().zip(block.groups.iter().flatten()) {
        for sums in &group.sums {
            kept.sums.push(sums.as_ref().map(|sums| gather::gather_ranges(sums, rows)).transpose()?);
        }
    }
    Ok(kept)
}

/// Concatenates `blocks`, which ascend by key.
pub fn concat(schema: &StoredSchema, blocks: &[Block]) -> Result<Block> {
    let steps = blocks.iter().enumerate().map(|(source, block)| MergeStep::Copy { source, rows: 0..block.keys.len() });
    gather::gather(schema, &blocks.iter().collect::<Vec<_>>(), &BlockPlan { steps: steps.collect() }, Overflow::Fails)
}

/// Approximate bytes of the rows of a block; of a sliced array only the slice counts.
pub fn weight(block: &Block) -> usize {
    let mut bytes = block.keys.len() * 16;
    for group in block.groups.iter().flatten() {
        bytes += group.len() * 12;
        for values in group.columns.iter().flatten() {
            let texts = values.as_string_opt::<i32>().map(|texts| texts.value_offsets());
            let offsets = texts.or_else(|| values.as_binary_opt::<i32>().map(|values| values.value_offsets()));
            let content = offsets.and_then(|offsets| Some(offsets.last()?.abs_diff(*offsets.first()?) as usize));
            bytes += content.unwrap_or(0) + values.len() * 8;
        }
    }

    bytes
}

/// Merging iterator: blocks in key order from sources in key order.
#[derive(Debug)]
pub struct Merge<I> {
    schema: Arc<StoredSchema>,
    /// The inputs that have not ended, by sequence number, older first.
    sources: Vec<Source<I>>,
    /// `None` until all sources are at their first rows.
    tree: Option<LoserTree>,
    /// Limit on the rows of the next block, and of any.
    next_rows: usize,
    most_rows: usize,
    overflow: Overflow,
}

/// An input of a merge with its position.
#[derive(Debug)]
struct Source<I> {
    blocks: I,
    /// `None` before the first read and at the end.
    block: Option<Arc<Block>>,
    ended: bool,
    row: usize,
    /// Average bytes of a row of the block.
    row_bytes: usize,
}

/// The blocks used by a plan.
struct HeldBlocks {
    blocks: Vec<Arc<Block>>,
    /// For each source, the index of its current block.
    place: Vec<Option<usize>>,
}

impl HeldBlocks {
    fn put(&mut self, source: usize, block: &Arc<Block>) -> usize {
        *self.place[source].get_or_insert_with(|| {
            self.blocks.push(Arc::clone(block));
            self.blocks.len() - 1
        })
    }
}

impl<I: Iterator<Item = Result<Block>>> Source<I> {
    /// Reads until it is at a row or at the end.
    fn fill(&mut self) -> Result<()> {
        self.row = 0;
        loop {
            self.block = self.blocks.next().transpose()?.map(Arc::new);
            match &self.block {
                Some(block) if block.keys.is_empty() => {}
                Some(block) => {
                    self.row_bytes = (weight(block) / block.keys.len()).max(1);
                    return Ok(());
                }
                None => {
                    self.ended = true;
                    return Ok(());
                }
            }
        }
    }
}

impl<I: Iterator<Item = Result<Block>>> Source<I> {
    /// The rest of its block, or the next block. Nothing is read ahead: the caller may stop.
    fn rest(&mut self) -> Result<Option<Block>> {
        if self.block.is_none() && !self.ended {
            self.fill()?;
        }

        let row = std::mem::take(&mut self.row);
        let Some(block) = self.block.take() else { return Ok(None) };
        Ok(Some(if row == 0 { Arc::unwrap_or_clone(block) } else { gather::tail(&block, row) }))
    }
}

/// Whether source `a` sorts before source `b`: by key, then older first; ended sources last.
fn before<I>(sources: &[Source<I>], a: usize, b: usize) -> bool {
    match (&sources[a].block, &sources[b].block) {
        (Some(one), Some(other)) => {
            one.keys.compare(sources[a].row, &other.keys, sources[b].row).then(a.cmp(&b)).is_lt()
        }
        (one, other) => one.is_some() && other.is_none(),
    }
}

impl<I: Iterator<Item = Result<Block>>> Merge<I> {
    /// Merges `sources`, each with its sequence number.
    pub fn new(schema: Arc<StoredSchema>, mut sources: Vec<(u64, I)>) -> Self {
        sources.sort_by_key(|(seqno, _)| *seqno);
        let blocks = sources.into_iter().map(|(_, blocks)| blocks);
        let sources = blocks.map(|blocks| Source { blocks, block: None, ended: false, row: 0, row_bytes: 1 });
        let (next_rows, most_rows) = (FIRST_ROWS, BLOCK_ROWS);

        Self { schema, sources: sources.collect(), tree: None, next_rows, most_rows, overflow: Overflow::Fails }
    }

    /// Limits the rows of output blocks, except those passed on unchanged.
    pub(crate) fn with_rows(self, most_rows: usize) -> Self {
        Self { next_rows: most_rows, most_rows, ..self }
    }

    /// Sets the handling of sums that exceed 64 bits.
    pub(crate) fn on_overflow(self, overflow: Overflow) -> Self {
        Self { overflow, ..self }
    }

    fn merged(&mut self) -> Result<Option<Block>> {
        if self.tree.is_none() {
            self.sources.iter_mut().try_for_each(Source::fill)?;
        }
        if self.tree.is_none() || self.sources.iter().any(|source| source.ended) {
            self.sources.retain(|source| !source.ended);
            self.tree = Some(LoserTree::new(self.sources.len(), |a, b| before(&self.sources, a, b)));
        }

        match self.sources.as_mut_slice() {
            [] => return Ok(None),
            [source] => return source.rest(),
            _ => {}
        }

        let (held, plan) = self.plan()?;
        let blocks: Vec<&Block> = held.iter().map(Arc::as_ref).collect();
        match plan.steps.as_slice() {
            [] => Ok(None),
            [MergeStep::Copy { source, rows }] => Ok(Some(slice_block(blocks[*source], rows.clone()))),
            _ => gather::gather(&self.schema, &blocks, &plan, self.overflow).map(Some),
        }
    }

    /// Plans an output block and moves the sources past its rows. Exhausted blocks are held until it is built.
    fn plan(&mut self) -> Result<(Vec<Arc<Block>>, BlockPlan)> {
        let mut held = HeldBlocks { blocks: Vec::new(), place: vec![None; self.sources.len()] };
        let mut plan = BlockPlan::default();
        let (mut rows, mut bytes) = (0, 0);
        let most_rows = self.next_rows;
        self.next_rows = (most_rows * 4).min(self.most_rows);

        while rows < most_rows && bytes < BLOCK_BYTES {
            let Some(tree) = &self.tree else { break };
            let first = tree.winner();
            let source = &self.sources[first];
            let (Some(block), row) = (source.block.clone(), source.row) else { break };
            let row_bytes = source.row_bytes;
            let second = tree.runner_up(|a, b| before(&self.sources, a, b)).map(|second| &self.sources[second]);
            let next = second.and_then(|source| Some((source.block.as_deref()?, source.row)));

            if next.is_some_and(|(other, other_row)| block.keys.compare(row, &other.keys, other_row).is_eq()) {
                let alike = self.take_alike(first, &block, row, &mut held)?;
                plan.steps.push(MergeStep::Combine { rows: alike });
                (rows, bytes) = (rows + 1, bytes + row_bytes);
                continue;
            }

            let most = (most_rows - rows).min((BLOCK_BYTES - bytes) / row_bytes).max(1);
            let left = row..block.keys.len().min(row + most);
            let run = match next {
                Some((other, other_row)) => run_before(&block, left, other, other_row),
                None => left,
            };
            (rows, bytes) = (rows + run.len(), bytes + run.len() * row_bytes);
            plan.copy(held.put(first, &block), run.clone());
            self.advance(first, run.len(), &mut held)?;
        }

        Ok((held.blocks, plan))
    }

    /// Takes `row` of `block`, where the winning source `first` is, and the rows of other sources with its key, older first.
    fn take_alike(&mut self, first: usize, block: &Block, row: usize, held: &mut HeldBlocks) -> Result<Vec<RowRef>> {
        let mut alike = Vec::new();
        let mut next = Some(first);
        while let Some(source) = next {
            let taken = &self.sources[source];
            if let Some(block) = taken.block.clone() {
                alike.push(RowRef { row: taken.row, source: held.put(source, &block) });
            }
            self.advance(source, 1, held)?;
            next = self.standing_at(block, row);
        }

        Ok(alike)
    }

    /// The next source, if it is at the key of `row` of `block`.
    fn standing_at(&self, block: &Block, row: usize) -> Option<usize> {
        let next = self.tree.as_ref()?.winner();
        let source = &self.sources[next];
        source.block.as_ref()?.keys.compare(source.row, &block.keys, row).is_eq().then_some(next)
    }

    /// Moves the winning source past `rows` rows.
    fn advance(&mut self, source: usize, rows: usize, held: &mut HeldBlocks) -> Result<()> {
        let moved = &mut self.sources[source];
        moved.row += rows;
        if moved.block.as_ref().is_none_or(|block| moved.row >= block.keys.len()) {
            moved.fill()?;
            held.place[source] = None;
        }
        if let Some(tree) = &mut self.tree {
            tree.replay(|a, b| before(&self.sources, a, b));
        }
        Ok(())
    }
}

impl<I: Iterator<Item = Result<Block>>> Iterator for Merge<I> {
    type Item = Result<Block>;

    fn next(&mut self) -> Option<Self::Item> {
        let merged = self.merged().transpose();
        if matches!(merged, Some(Err(_))) {
            self.sources.clear();
            self.tree = None;
        }
        merged
    }
}
