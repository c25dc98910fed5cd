//! Scans: the rows of a key range in key order, merged from several SSTs.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidetable_layout::block::GroupProjection;
use tidetable_layout::schema::{QualifierKind, TimestampKind};
use tidetable_layout::{Block, KeyRange, Projection, StoredSchema};
use tidetable_sstable::{ReadCounts, ReadError, Reader, RecordFilter, StripeMeta};

use crate::error::{Result, StoreError};
use crate::gc::GcFilter;
use crate::merge::operator::Overflow;
use crate::merge::{Merge, emptied};
use crate::read::window_mask::WindowMask;
use crate::tombstone::TombstoneFilter;

/// Iterator over the blocks of a key range in key order; each row occurs once.
#[derive(Debug)]
pub struct BlockScan {
    merge: Merge<Run>,
    schema: Arc<StoredSchema>,
    /// GC filter applied after merging.
    gc_filter: Option<Arc<GcFilter>>,
    /// Whether rows that an upsert emptied are removed.
    emptied: bool,
    /// Table name, for messages.
    table: String,
}

/// A sorted run: SSTs with ascending key ranges, read one after the other.
type Run = std::iter::Flatten<std::vec::IntoIter<SstScan>>;

/// An SST to merge.
#[derive(Debug, Clone)]
pub(crate) struct SstSource {
    pub(crate) seqno: u64,
    /// For messages.
    pub(crate) path: String,
    pub(crate) reader: Reader,
    /// Tombstones that hide cells of it.
    pub(crate) tombstones: Option<TombstoneFilter>,
    /// Which of its windows are read; `None` for all.
    pub(crate) windows: Option<WindowMask>,
    /// Whether it may hold rows that an upsert emptied.
    pub(crate) emptied: bool,
}

/// Options of a scan.
#[derive(Debug, Clone, Default)]
pub struct ScanOptions {
    /// Counters of the scan.
    pub counts: Option<Arc<ScanCounts>>,
    /// Skips stripes by their stats.
    pub stripe_pruner: Option<Arc<dyn StripePruner>>,
    /// Filters records while they are read. Not applied where rows of several files are merged, nor to files with
    /// hidden rows.
    pub record_filter: Option<Arc<dyn RecordFilter>>,
    /// Answers stripes from their stats. Applied under the same conditions, and only to stripes that are fully
    /// selected and that GC leaves intact.
    pub stripe_stats: Option<Arc<dyn StripeStats>>,
}

/// Scan options for use inside the store.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ScanMode {
    /// Handling of sums that exceed 64 bits.
    pub(crate) overflow: Overflow,
    /// Whether rows that an upsert emptied are returned.
    pub(crate) keeps_emptied: bool,
}

/// Answers a stripe from its stats, where they suffice.
pub trait StripeStats: std::fmt::Debug + Send + Sync {
    /// Whether the stats of this stripe suffice: then it is not read.
    fn suffices(&self, stripe: &StripeMeta) -> bool;
}

/// Decides by stripe stats which stripes a scan skips.
pub trait StripePruner: std::fmt::Debug + Send + Sync {
    /// For each stripe of a file, whether none of its records is needed. Not applied where rows of several files are
    /// merged: there cells of one stripe may hide cells of another.
    fn prunes(&self, stripes: &[StripeMeta]) -> Vec<bool>;
}

/// Counters of scans: what they considered and what they read.
#[derive(Debug, Default)]
pub struct ScanCounts {
    files: AtomicU64,
    files_pruned: AtomicU64,
    stripes: AtomicU64,
    bytes: AtomicU64,
    pub(crate) reads: Arc<ReadCounts>,
}

impl ScanCounts {
    pub(crate) fn considered(&self, files: usize, pruned: usize, stripes: usize, bytes: u64) {
        self.files.fetch_add(files as u64, Ordering::Relaxed);
        self.files_pruned.fetch_add(pruned as u64, Ordering::Relaxed);
        self.stripes.fetch_add(stripes as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// (SSTs whose key range matches, those of them that bloom filters ruled out).
    pub fn files(&self) -> (u64, u64) {
        (self.files.load(Ordering::Relaxed), self.files_pruned.load(Ordering::Relaxed))
    }

    /// (stripes of those SSTs, stripes read).
    pub fn stripes(&self) -> (u64, u64) {
        (self.stripes.load(Ordering::Relaxed), self.reads.stripes())
    }

    /// Pages read.
    pub fn pages(&self) -> u64 {
        self.reads.pages()
    }

    /// (bytes of those SSTs, bytes read).
    pub fn bytes(&self) -> (u64, u64) {
        (self.bytes.load(Ordering::Relaxed), self.reads.bytes())
    }
}

impl BlockScan {
    /// Merges `sources`.
    pub(crate) fn new(
        schema: Arc<StoredSchema>,
        sources: Vec<SstSource>,
        keys: KeyRange,
        projection: &Projection,
        gc_filter: Option<Arc<GcFilter>>,
        options: &ScanOptions,
        mode: ScanMode,
    ) -> Self {
        let mut projection = projection.clone();
        let filters: Vec<TombstoneFilter> = sources.iter().filter_map(|source| source.tombstones.clone()).collect();
        let emptied = sources.iter().any(|source| source.emptied) && !mode.keeps_emptied;
        let runs = runs(sources);
        if runs.len() > 1 {
            add_merge_keys(&schema, &mut projection);
        }
        filters.iter().for_each(|tombstones| tombstones.widen(&schema, &mut projection));
        if emptied {
            emptied::widen(&mut projection);
        }
        // Row sums are not valid where values are hidden, deleted or replaced.
        let sums = Arc::new(projection.clone());
        projection.groups.iter_mut().flatten().for_each(|group| group.sums = false);
        let narrow = Arc::new(projection.clone());
        if let Some(gc_filter) = &gc_filter {
            gc_filter.widen(&schema, &mut projection);
        }
        let projection = Arc::new(projection);
        // With one run, its rows are complete: GC can be applied to each stripe before merging, and columns that only
        // GC needs are read only where stripe stats cannot rule out expired cells. With several runs they are always
        // read.
        let alone = runs.len() == 1;
        let (before, after) = if alone { (gc_filter, None) } else { (None, gc_filter) };
        let narrow = if after.is_some() { Arc::clone(&projection) } else { narrow };
        let pruner = options.stripe_pruner.as_ref().filter(|_| alone);
        let scan = |source: SstSource| {
            let as_stored = alone && source.tombstones.is_none() && source.windows.is_none() && !source.emptied;
            let narrow = if as_stored { &sums } else { &narrow };
            let skipped = pruner.map(|pruner| pruner.prunes(source.reader.stripes())).unwrap_or_default();
            let stripes = source.reader.stripes_in(&keys.start, keys.end.as_deref());
            let (schema, projection) = (Arc::clone(&schema), Arc::clone(&projection));
            let (narrow, gc_filter) = (Arc::clone(narrow), before.clone());
            let record_filter = options.record_filter.clone().filter(|_| as_stored);
            let stripe_stats = options.stripe_stats.clone().filter(|_| as_stored);
            SstScan {
                schema,
                source,
                stripes,
                keys: keys.clone(),
                projection,
                narrow,
                gc_filter,
                skipped,
                record_filter,
                stripe_stats,
            }
        };
        let run = |(seqno, run): (u64, Vec<SstSource>)| {
            (seqno, run.into_iter().map(scan).collect::<Vec<_>>().into_iter().flatten())
        };
        let merge = Merge::new(Arc::clone(&schema), runs.into_iter().map(run).collect()).on_overflow(mode.overflow);
        Self { merge, schema, gc_filter: after, emptied, table: String::new() }
    }

    /// Limits the rows of a block where several SSTs are merged.
    pub(crate) fn in_blocks_of(self, rows: usize) -> Self {
        Self { merge: self.merge.with_rows(rows), ..self }
    }

    /// Sets the table name, for messages.
    pub(crate) fn of_table(self, name: &str) -> Self {
        Self { table: name.to_owned(), ..self }
    }
}

impl Iterator for BlockScan {
    type Item = Result<Block>;

    fn next(&mut self) -> Option<Self::Item> {
        let block = self.merge.next()?.map_err(|error| error.of_table(&self.table));
        let block = match &self.gc_filter {
            Some(gc_filter) => block.and_then(|block| gc_filter.apply(&self.schema, block)),
            None => block,
        };
        Some(if self.emptied { block.and_then(|block| emptied::take_out(&self.schema, block)) } else { block })
    }
}

/// Groups sources into sorted runs, with their sequence numbers: SSTs of one compaction have the same number and
/// ascending keys. SSTs that share no keys, such as those of windows in a table whose keys begin with the time, are one run.
fn runs(mut sources: Vec<SstSource>) -> Vec<(u64, Vec<SstSource>)> {
    sources.sort_by(|a, b| a.first_key().cmp(&b.first_key()));
    if let Some(newest) = sources.iter().map(|source| source.seqno).max()
        && sources.windows(2).all(|pair| matches!(pair, [one, next] if one.ends_before(next)))
    {
        return vec![(newest, sources)];
    }
    sources.sort_by_key(|source| source.seqno);
    let mut runs: Vec<(u64, Vec<SstSource>)> = Vec::new();
    for source in sources {
        match runs.last_mut() {
            Some((seqno, run))
                if *seqno == source.seqno && run.last().is_some_and(|last| last.ends_before(&source)) =>
            {
                run.push(source);
            }
            _ => runs.push((source.seqno, vec![source])),
        }
    }
    runs
}

impl SstSource {
    fn first_key(&self) -> Option<&[u8]> {
        self.reader.stripes().first().map(|stripe| &stripe.first_key[..])
    }

    fn ends_before(&self, other: &Self) -> bool {
        let (last, first) = (self.reader.stripes().last(), other.reader.stripes().first());
        last.zip(first).is_some_and(|(last, first)| last.last_key < first.first_key)
    }
}

/// Adds qualifiers and timestamps, by which rows of several files are merged.
fn add_merge_keys(schema: &StoredSchema, projection: &mut Projection) {
    // An upsert is decided by the timestamps of all groups of a row.
    if schema.upsert && projection.groups.iter().any(Option::is_some) {
        for (group, wanted) in schema.groups.iter().zip(&mut projection.groups) {
            if group.timestamps == TimestampKind::Stored && wanted.is_none() {
                let columns = vec![false; group.columns.len()];
                *wanted = Some(GroupProjection { qualifiers: false, timestamps: true, columns, sums: false });
            }
        }
    }
    for (group, wanted) in schema.groups.iter().zip(&mut projection.groups) {
        if let Some(wanted) = wanted {
            wanted.qualifiers = group.qualifier == QualifierKind::Dynamic;
            wanted.timestamps = true;
            // Dedup compares all columns.
            if group.keeps_duplicates() {
                wanted.columns.fill(true);
            }
        }
    }
}

/// The stripes of one SST that a key range touches.
#[derive(Debug)]
pub(crate) struct SstScan {
    schema: Arc<StoredSchema>,
    source: SstSource,
    stripes: Range<usize>,
    keys: KeyRange,
    /// Columns read where GC must be applied.
    projection: Arc<Projection>,
    /// Columns of the query.
    narrow: Arc<Projection>,
    /// GC filter applied to each stripe.
    gc_filter: Option<Arc<GcFilter>>,
    /// Stripes to skip; empty if none is.
    skipped: Vec<bool>,
    /// Record filter; `None` if all are needed.
    record_filter: Option<Arc<dyn RecordFilter>>,
    /// Answers stripes from their stats.
    stripe_stats: Option<Arc<dyn StripeStats>>,
}

impl SstScan {
    /// Whether the stats of a fully selected stripe suffice.
    fn is_known(&self, meta: &StripeMeta) -> bool {
        let keeps_all = |gc_filter: &Arc<GcFilter>| gc_filter.keeps_all_by_stats(&self.schema, meta);
        let suffices =
            |stats: &Arc<dyn StripeStats>| self.gc_filter.as_ref().is_none_or(keeps_all) && stats.suffices(meta);
        self.stripe_stats.as_ref().is_some_and(suffices)
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

impl Iterator for SstScan {
    type Item = Result<Block>;

    fn next(&mut self) -> Option<Self::Item> {
        let SstSource { path, reader, tombstones, windows, .. } = &self.source;
        loop {
            let stripe = self.stripes.next()?;
            let meta = reader.stripes().get(stripe);
            let hidden = |tombstones: &TombstoneFilter| {
                meta.is_some_and(|meta| tombstones.hides_all(&meta.first_key, &meta.last_key))
            };
            if tombstones.as_ref().is_some_and(hidden) || self.skipped.get(stripe) == Some(&true) {
                continue;
            }
            let whole = meta.is_some_and(|meta| self.keys.covers(&meta.first_key, &meta.last_key));
            if whole && meta.is_some_and(|meta| self.is_known(meta)) {
                continue;
            }
            let read = self.read(stripe, whole).map_err(|source| StoreError::Sst { path: path.clone(), source });
            let Some(read) = read.transpose() else { continue };
            return Some(read.and_then(|(block, judged)| {
                let block = match windows {
                    Some(windows) => windows.apply(&self.schema, block)?,
                    None => block,
                };
                let block = match tombstones {
                    Some(tombstones) => tombstones.apply(&self.schema, block)?,
                    None => block,
                };
                match self.gc_filter.as_ref().filter(|_| judged) {
                    Some(gc_filter) => gc_filter.apply(&self.schema, block),
                    None => Ok(block),
                }
            }));
        }
    }
}
