//! Scans: the rows of a key range in key order, merged from several SSTs.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use tidetable_layout::block::GroupProjection;
use tidetable_layout::schema::{QualifierKind, TimestampKind};
use tidetable_layout::{Block, KeyRange, Projection, StoredSchema};

use crate::error::Result;
use crate::gc::GcFilter;
use crate::merge::{Merge, emptied};
use crate::read::collisions;
use crate::read::options::{ScanMode, ScanOptions};
use crate::read::row_identity::Identity;
use crate::read::sst_scan::{RowSelection, SstScan};
use crate::read::sst_source::SstSource;
use crate::read::stripes_ahead::StripesAhead;
use crate::tombstone::TombstoneFilter;

/// Iterator over the blocks of a key range. In key order each row occurs once; [unordered](ScanOptions::unordered) it may
/// occur several times, with some of its records each.
#[derive(Debug)]
pub struct BlockScan {
    /// Read one after the other.
    parts: VecDeque<Run>,
    schema: Arc<StoredSchema>,
    /// Whether rows that an upsert emptied are removed.
    emptied: bool,
    /// Table name, for messages.
    table: String,
}

/// A sorted run: SSTs with ascending key ranges, read one after the other, or what was merged of others.
struct Run(Box<dyn Iterator<Item = Result<Block>> + Send>);

impl Iterator for Run {
    type Item = Result<Block>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Run")
    }
}

impl BlockScan {
    /// Scans `sources`.
    ///
    /// # Errors
    /// If keys or timestamps of an SST cannot be read.
    pub fn new(
        schema: Arc<StoredSchema>,
        sources: Vec<SstSource>,
        keys: KeyRange,
        projection: &Projection,
        gc_filter: Option<Arc<GcFilter>>,
        options: &ScanOptions,
        mode: ScanMode,
    ) -> Result<Self> {
        let emptied = sources.iter().any(|source| source.emptied) && !mode.keeps_emptied;
        let tombstones: Vec<TombstoneFilter> = sources.iter().filter_map(|source| source.tombstones.clone()).collect();
        // What hides all records of a part of a row would make an empty row of it.
        let hides = schema.upsert || gc_filter.as_ref().is_some_and(|gc_filter| gc_filter.looks_at_age());
        let as_stored = !hides && sources.iter().all(SstSource::is_as_stored);
        let runs = runs(sources);
        let mut of_one = projection.clone();
        tombstones.iter().for_each(|tombstones| tombstones.widen(&schema, &mut of_one));
        if emptied {
            emptied::widen(&mut of_one);
        }
        let mut of_several = of_one.clone();
        add_merge_keys(&schema, &mut of_several);
        let prunes = |source: &SstSource| {
            let pruner = options.stripe_pruner.as_ref();
            pruner.is_some_and(|pruner| pruner.prunes(source.reader.stripes()).contains(&true))
        };
        let gains =
            || options.unordered || options.record_filter.is_some() || runs.iter().flat_map(|(_, run)| run).any(prunes);
        let collisions = match runs.len() > 1 && as_stored && gains() {
            true => {
                let identity = Identity::new(&schema, projection, gc_filter.is_some());
                collisions::find(&schema, &runs, &keys, &identity, mode.known_collisions.as_deref())?
            }
            false => None,
        };
        let scans = Scans { schema: &schema, keys: &keys, options, gc_filter: gc_filter.as_ref() };
        let merge = |runs| {
            let merge = Merge::new(Arc::clone(&schema), runs).on_overflow(mode.overflow);
            Run(Box::new(mode.block_rows.into_iter().fold(merge, Merge::with_rows)))
        };
        // Runs with several versions of a cell.
        let joined = |rows: &RowSelection| merge(scans.of(&runs, rows, &of_several, false));
        let parts = match collisions {
            _ if runs.len() == 1 => vec![merge(scans.of(&runs, &RowSelection::All, &of_one, true))],
            Some(keys) => {
                let others = RowSelection::Without(Arc::clone(&keys));
                let newest = runs.iter().map(|(seqno, _)| *seqno).max().unwrap_or_default();
                let joined = (newest, scans.collected(joined(&RowSelection::Only(keys))));
                let apart = |projection| scans.of(&runs, &others, projection, true).into_iter().chain([joined]);
                match options.unordered {
                    true => apart(&of_one).map(|run| merge(vec![run])).collect(),
                    false => vec![merge(apart(&of_several).collect())],
                }
            }
            None => vec![scans.collected(joined(&RowSelection::All))],
        };
        Ok(Self { parts: parts.into(), schema, emptied, table: String::new() })
    }

    /// Sets the table name, for messages.
    pub fn of_table(self, name: &str) -> Self {
        Self { table: name.to_owned(), ..self }
    }
}

impl Iterator for BlockScan {
    type Item = Result<Block>;

    fn next(&mut self) -> Option<Self::Item> {
        let block = loop {
            match self.parts.front_mut()?.next() {
                Some(block) => break block.map_err(|error| error.of_table(&self.table)),
                None => drop(self.parts.pop_front()),
            }
        };
        Some(if self.emptied { block.and_then(|block| emptied::take_out(&self.schema, block)) } else { block })
    }
}

/// What the SST scans of a scan have in common.
struct Scans<'a> {
    schema: &'a Arc<StoredSchema>,
    keys: &'a KeyRange,
    options: &'a ScanOptions,
    gc_filter: Option<&'a Arc<GcFilter>>,
}

impl Scans<'_> {
    /// Scans of the selected rows of `runs`. If no cell of them has another version in another run, `complete`, then pruning,
    /// filters and GC apply to each stripe, and columns that only GC needs are read only where stripe stats cannot rule out
    /// expired cells. Otherwise they are always read, for the GC after the merge.
    fn of(
        &self,
        runs: &[(u64, Vec<SstSource>)],
        rows: &RowSelection,
        projection: &Projection,
        complete: bool,
    ) -> Vec<(u64, Run)> {
        // Row sums are not valid where values are hidden, deleted or replaced.
        let sums = Arc::new(projection.clone());
        let mut projection = projection.clone();
        projection.groups.iter_mut().flatten().for_each(|group| group.sums = false);
        let mut narrow = Arc::new(projection.clone());
        if let Some(gc_filter) = self.gc_filter {
            gc_filter.widen(self.schema, &mut projection);
        }
        let projection = Arc::new(projection);
        if !complete && self.gc_filter.is_some() {
            narrow = Arc::clone(&projection);
        }
        let ScanOptions { stripe_pruner, record_filter, stripe_stats, .. } = self.options;
        let scan = |source: &SstSource| {
            let as_stored = complete && source.is_as_stored() && source.windows.is_none();
            let pruner = stripe_pruner.as_ref().filter(|_| complete);
            SstScan {
                schema: Arc::clone(self.schema),
                stripes: source.reader.stripes_in(&self.keys.start, self.keys.end.as_deref()),
                keys: self.keys.clone(),
                rows: rows.clone(),
                projection: Arc::clone(&projection),
                narrow: Arc::clone(if as_stored { &sums } else { &narrow }),
                gc_filter: self.gc_filter.filter(|_| complete).cloned(),
                skipped: pruner.map(|pruner| pruner.prunes(source.reader.stripes())).unwrap_or_default(),
                record_filter: record_filter.clone().filter(|_| as_stored),
                stripe_stats: stripe_stats.clone().filter(|_| as_stored),
                source: source.clone(),
                ahead: StripesAhead::default(),
            }
        };
        let run = |(seqno, run): &(u64, Vec<SstSource>)| {
            (*seqno, Run(Box::new(run.iter().map(scan).collect::<Vec<_>>().into_iter().flatten())))
        };
        runs.iter().map(run).collect()
    }

    /// What GC leaves of merged rows.
    fn collected(&self, merged: Run) -> Run {
        let Some(gc_filter) = self.gc_filter.cloned() else { return merged };
        let schema = Arc::clone(self.schema);
        Run(Box::new(merged.map(move |block| gc_filter.apply(&schema, block?))))
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
