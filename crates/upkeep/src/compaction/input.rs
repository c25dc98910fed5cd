//! Inputs of a merge: the parts of SSTs that may be copied, and their rows.

use std::ops::Range;

use tidetable_layout::{Block, KeyRange, Projection};
use tidetable_sstable::{Compression, StripeLimits, StripeMeta, WriteOptions, encode_rows, stripe_splits};
use tidetable_store::limits::sst_bounds;
use tidetable_store::merge::{self, emptied, weight};
use tidetable_store::read::{ALL_TIMES, BlockScan, ScanMode, ScanOptions, Snapshot, SstSource};
use tidetable_store::version::{Sst, overlaps};
use tidetable_store::write::{SST_BYTES, SizedStripe, write_error};
use tidetable_store::{Result, row_size};

use crate::compaction::filter::CompactionFilter;
use crate::compaction::output::{GC_STAMP, SubcompactionOutput};
use crate::compaction::plan::MergePlan;
use crate::compaction::subcompaction::InputPart;

/// Rows of a merged block: several stripes for rows of one cell.
const BLOCK_ROWS: usize = 4 * 65_536;
/// Approximate bytes of merged rows that wait to be split into stripes: enough for several, so that none is short.
const WAITING: usize = 12 << 20;
/// A block of fewer bytes is split together with those before it.
const SMALL: usize = 2 << 20;

/// The open inputs of a merge.
pub(crate) struct MergeInputs<'a> {
    snapshot: &'a Snapshot,
    /// The compaction filter; `None` if older cells of the same rows may exist elsewhere.
    filter: Option<&'a CompactionFilter>,
    inputs: Vec<MergeInput<'a>>,
}

struct MergeInput<'a> {
    sst: &'a Sst,
    source: SstSource,
    /// Whether its rows may be copied where no other input has them.
    keeps: bool,
}

impl<'a> MergeInputs<'a> {
    /// Opens the SSTs of a merge. `filter`: see [`Self::filter`].
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        merge: &'a MergePlan,
        filter: Option<&'a CompactionFilter>,
    ) -> Result<Self> {
        let mut inputs = Vec::with_capacity(merge.ssts.len());
        for sst in &merge.ssts {
            let source = snapshot.source(sst, &ALL_TIMES)?;
            let stamp = source.reader.metadata().get(GC_STAMP).map(String::as_str);
            let may_expire =
                filter.is_some_and(|filter| !filter.is_empty() && (stamp.is_none() || filter.stamp() != stamp));
            // SSTs of loads are less dense than those of compactions.
            let keeps = sst.level > 0 && source.tombstones.is_none() && source.windows.is_none() && !may_expire;
            inputs.push(MergeInput { sst, source, keeps });
        }

        Ok(Self { snapshot, filter, inputs })
    }

    /// All stripes, or the whole SST where it is large and no other overlaps it.
    pub(crate) fn parts(&self) -> Vec<InputPart<'_>> {
        let mut parts = Vec::new();
        for (index, input) in self.inputs.iter().enumerate() {
            let sst = input.sst;
            if input.keeps && sst.bytes >= SST_BYTES / 4 && !self.is_overlapped(index) {
                parts.push(InputPart {
                    sst: index,
                    stripe: None,
                    first: &sst.first_key,
                    last: &sst.last_key,
                    bytes: sst.bytes,
                    keeps: true,
                    short: false,
                });
                continue;
            }

            let stripes = input.source.reader.stripes().iter().enumerate();
            parts.extend(stripes.map(|(stripe, meta)| InputPart {
                sst: index,
                stripe: Some(stripe),
                first: &meta.first_key,
                last: &meta.last_key,
                bytes: meta.len,
                keeps: input.keeps,
                short: is_short(meta),
            }));
        }

        parts
    }

    /// Whether another input shares keys with the input at `index`.
    fn is_overlapped(&self, index: usize) -> bool {
        let sst = self.inputs[index].sst;
        self.inputs.iter().enumerate().any(|(other, input)| other != index && sst.shares_keys(input.sst))
    }

    /// The input at `index` as an output SST (trivial move).
    pub(crate) fn sst(&self, index: usize) -> Sst {
        self.inputs[index].sst.clone()
    }

    /// Copies stripes of the input at `index` as bytes.
    pub(crate) fn copy(&self, index: usize, stripes: Range<usize>) -> Result<SubcompactionOutput> {
        let MergeInput { sst, source, .. } = &self.inputs[index];
        let largest_row = sst_bounds(self.snapshot, sst)?.row;
        let mut copied = Vec::with_capacity(stripes.len());
        for stripe in stripes {
            let stripe = source.reader.copy_stripe(stripe).map_err(|error| source.error(error))?;
            copied.push(SizedStripe { stripe, largest_row, emptied: sst.emptied });
        }

        Ok(SubcompactionOutput::Stripes(copied))
    }

    /// Merges and encodes the rows of all inputs in a key range; also returns whether cells expired since the
    /// version.
    pub(crate) fn merge(&self, keys: &KeyRange) -> Result<(SubcompactionOutput, bool)> {
        let schema = self.snapshot.schema();
        let holding = self.inputs.iter().filter(|input| overlaps(keys, &input.sst.first_key, &input.sst.last_key));
        let sources = holding.map(|input| input.source.clone()).collect();
        let scan = BlockScan::new(
            schema.clone(),
            sources,
            keys.clone(),
            &Projection::all(schema),
            None,
            &ScanOptions::default(),
            ScanMode { keeps_emptied: true, block_rows: Some(BLOCK_ROWS), ..ScanMode::default() },
        )?;

        let (mut stripes, mut waiting, mut bytes, mut expired) = (Vec::new(), Vec::new(), 0, false);
        for block in scan.of_table(self.snapshot.table().name()) {
            let mut block = block?;
            if let Some(filter) = self.filter {
                let (left, lost) = filter.apply(schema, block)?;
                block = left;
                expired |= lost;
            }
            if block.keys.is_empty() {
                continue;
            }

            let block_bytes = weight(&block);
            if bytes >= WAITING && block_bytes >= SMALL {
                self.encode(&mut waiting, &mut stripes)?;
                bytes = 0;
            }
            bytes += block_bytes;
            waiting.push(block);
            if bytes >= 2 * WAITING {
                self.encode(&mut waiting, &mut stripes)?;
                bytes = 0;
            }
        }

        self.encode(&mut waiting, &mut stripes)?;
        Ok((SubcompactionOutput::Stripes(stripes), expired))
    }

    /// Encodes the waiting blocks, which ascend by key.
    fn encode(&self, waiting: &mut Vec<Block>, stripes: &mut Vec<SizedStripe>) -> Result<()> {
        let schema = self.snapshot.schema();
        let Some(last) = waiting.pop() else { return Ok(()) };
        let block = if waiting.is_empty() {
            last
        } else {
            waiting.push(last);
            merge::concat(schema, &std::mem::take(waiting))?
        };

        let table = self.snapshot.table();
        let sizes = row_size::measure(schema, &block, table.row_limit()).within_limit(&block.keys);
        let largest_row = sizes.map_err(|error| error.of_table(table.name()))?.most;
        let emptied = self.inputs.iter().any(|input| input.sst.emptied) && emptied::any(schema, &block);

        let options = WriteOptions { level: Compression::Dense, ..WriteOptions::new(0) };
        for rows in stripe_splits(schema, &block, &options.stripe) {
            let stripe = encode_rows(schema, &options, &block, rows);
            let stripe = stripe.map_err(|source| write_error(self.snapshot.table().name(), source))?;
            stripes.push(SizedStripe { stripe, largest_row, emptied });
        }
        Ok(())
    }
}

/// Whether a stripe is below a quarter of its full size.
fn is_short(stripe: &StripeMeta) -> bool {
    let limits = StripeLimits::default();
    let records = stripe.records.iter().max().copied().unwrap_or(0).max(stripe.rows);
    records < limits.cells as u64 / 4 && stripe.len < limits.bytes as u64 / 16
}
