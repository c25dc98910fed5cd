//! The scan of one SST: its stripes in a key range, filtered as far as one file alone allows.

use std::ops::Range;
use std::sync::Arc;

use tidetable_layout::{Block, KeyRange, Projection, StoredSchema};
use tidetable_sstable::{ReadError, RecordFilter, StripeMeta};

use crate::error::Result;
use crate::gc::GcFilter;
use crate::merge::keep_rows;
use crate::read::collisions::{FoundKey, places};
use crate::read::known_collisions::RowKeys;
use crate::read::options::StripeStats;
use crate::read::skipped_stripes::SkippedStripes;
use crate::read::sst_source::SstSource;
use crate::read::stripes_ahead::StripesAhead;

/// Which rows of its key range a scan reads.
#[derive(Debug, Clone)]
pub(super) enum RowSelection {
    All,
    Without(RowKeys),
    Only(RowKeys),
}

impl RowSelection {
    /// The keys it names that may be in a stripe.
    fn listed(&self, stripe: &StripeMeta) -> &[Vec<u8>] {
        let (Self::Without(keys) | Self::Only(keys)) = self else { return &[] };
        let first = keys.partition_point(|key| key[..] < stripe.first_key[..]);
        let last = keys.partition_point(|key| key[..] <= stripe.last_key[..]);
        keys.get(first..last).unwrap_or_default()
    }
}

/// The stripes of one SST that a key range touches.
#[derive(Debug)]
pub(crate) struct SstScan {
    pub(super) schema: Arc<StoredSchema>,
    pub(super) source: SstSource,
    pub(super) stripes: Range<usize>,
    pub(super) keys: KeyRange,
    /// Which rows of the key range are read.
    pub(super) rows: RowSelection,
    /// Columns read where GC must be applied.
    pub(super) projection: Arc<Projection>,
    /// Columns of the query.
    pub(super) narrow: Arc<Projection>,
    /// GC filter applied to each stripe.
    pub(super) gc_filter: Option<Arc<GcFilter>>,
    /// Stripes to skip; empty if none is.
    pub(super) skipped: Vec<bool>,
    /// Record filter; `None` if all are needed.
    pub(super) record_filter: Option<Arc<dyn RecordFilter>>,
    /// Answers stripes from their stats.
    pub(super) stripe_stats: Option<Arc<dyn StripeStats>>,
    /// Stripes that are fetched meanwhile.
    pub(super) ahead: StripesAhead,
    /// Stripes that were not read, for the log.
    pub(super) log: SkippedStripes,
}

impl SstScan {
    /// Whether the stats of a fully selected stripe suffice.
    fn is_known(&self, meta: &StripeMeta) -> bool {
        let Some(stats) = &self.stripe_stats else { return false };
        let is_intact =
            self.gc_filter.as_ref().is_none_or(|gc_filter| gc_filter.keeps_all_by_stats(&self.schema, meta));
        is_intact && stats.suffices(meta)
    }

    /// The rows of a stripe that `listed` names.
    fn read_listed(&self, index: usize, listed: &[Vec<u8>]) -> Result<Option<Block>> {
        if listed.is_empty() {
            return Ok(None);
        }
        let stripe = self.source.reader.stripe(index).map_err(|error| self.source.error(error))?;
        let rows: Vec<usize> = places(stripe.keys(), listed).into_iter().map(|key| key.row).collect();
        if rows.is_empty() {
            return Ok(None);
        }

        let block = stripe.read_selected(&rows, &self.narrow).map_err(|error| self.source.error(error))?;
        self.visible(block).map(Some)
    }

    /// The selected rows of a stripe but those that `listed` names, after tombstones and GC.
    fn read_others(&self, index: usize, whole: bool, listed: &[Vec<u8>]) -> Result<Option<Block>> {
        let Some((block, judged)) = self.read(index, whole).map_err(|error| self.source.error(error))? else {
            return Ok(None);
        };
        let block = without(&self.schema, block, listed)?;
        let block = self.visible(block)?;
        Ok(Some(match self.gc_filter.as_ref().filter(|_| judged) {
            Some(gc_filter) => gc_filter.apply(&self.schema, block)?,
            None => block,
        }))
    }

    /// `block` without the rows of other windows and what tombstones hide.
    fn visible(&self, block: Block) -> Result<Block> {
        let block = match &self.source.windows {
            Some(windows) => windows.apply(&self.schema, block)?,
            None => block,
        };
        match &self.source.tombstones {
            Some(tombstones) => tombstones.apply(&self.schema, block),
            None => Ok(block),
        }
    }

    /// The selected rows of a stripe, and whether GC is still to be applied; `None` if no record is needed.
    fn read(&self, index: usize, whole: bool) -> std::result::Result<Option<(Block, bool)>, ReadError> {
        let stripe = self.source.reader.stripe(index)?;
        let judged = match &self.gc_filter {
            Some(gc_filter) => !gc_filter.keeps_all(&self.schema, &stripe)?,
            None => false,
        };
        let projection = if judged { &self.projection } else { &self.narrow };
        let rows =
            if whole { 0..stripe.keys().len() } else { stripe.rows_in(&self.keys.start, self.keys.end.as_deref()) };
        let block = match self.record_filter.as_deref().filter(|_| !judged) {
            Some(filter) => stripe.into_filtered(rows, projection, filter)?,
            None => Some(stripe.into_block(rows, projection)?),
        };
        Ok(block.map(|block| (block, judged)))
    }
}

/// `block` without the rows of `keys`.
fn without(schema: &StoredSchema, block: Block, keys: &[Vec<u8>]) -> Result<Block> {
    let mut kept: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    for FoundKey { row, .. } in places(&block.keys, keys) {
        kept.push(start..row);
        start = row + 1;
    }
    if start == 0 {
        return Ok(block);
    }
    kept.push(start..block.keys.len());
    kept.retain(|rows| !rows.is_empty());
    keep_rows(schema, &block, &kept)
}

impl Iterator for SstScan {
    type Item = Result<Block>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let index = self.stripes.next()?;
            let meta = self.source.reader.stripes().get(index);
            if let (Some(tombstones), Some(meta)) = (&self.source.tombstones, meta)
                && tombstones.hides_all(&meta.first_key, &meta.last_key)
            {
                self.log.hidden += 1;
                continue;
            }
            if self.skipped.get(index) == Some(&true) {
                self.log.pruned += 1;
                continue;
            }

            let listed = meta.map_or(&[][..], |meta| self.rows.listed(meta));
            let block = if let RowSelection::Only(_) = &self.rows {
                self.read_listed(index, listed)
            } else {
                let whole = meta.is_some_and(|meta| self.keys.covers(&meta.first_key, &meta.last_key));
                if whole && listed.is_empty() && meta.is_some_and(|meta| self.is_known(meta)) {
                    self.log.answered += 1;
                    continue;
                }
                self.ahead.before(index, self.stripes.end, &self.skipped, &self.source.reader);
                self.read_others(index, whole, listed)
            };
            if let Some(block) = block.transpose() {
                return Some(block);
            }
        }
    }
}
