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
use crate::read::known_collisions::RowKeys;
use crate::read::options::{ScanMode, ScanOptions};
use crate::read::row_identity::Identity;
use crate::read::skipped_stripes::SkippedStripes;
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

        let mut collisions = None;
        if runs.len() > 1 && as_stored && gains_from_parts(&runs, options) {
            let identity = Identity::new(&schema, projection, gc_filter.is_some());
            collisions = collisions::find(&schema, &runs, &keys, &identity, mode.known_collisions.as_deref())?;
        }

        let scans = Scans { schema: &schema, keys: &keys, options, gc_filter: gc_filter.as_ref(), mode: &mode };
        let parts = match collisions {
            _ if runs.len() == 1 => vec![scans.merged(scans.of(&runs, &RowSelection::All, &of_one, true))],
            Some(keys) => scans.apart(&runs, keys, &of_one, &of_several),
            None => {
                // Runs with several versions of a cell.
                let merged = scans.merged(scans.of(&runs, &RowSelection::All, &of_several, false));
                vec![scans.collected(merged)]
            }
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

/// Whether a scan of several runs reads less, or sooner, if it reads the rows that do not collide apart from the others.
fn gains_from_parts(runs: &[(u64, Vec<SstSource>)], options: &ScanOptions) -> bool {
    if options.unordered || options.record_filter.is_some() {
        return true;
    }

    let Some(pruner) = &options.stripe_pruner else { return false };
    let mut sources = runs.iter().flat_map(|(_, run)| run);
    sources.any(|source| pruner.prunes(source.reader.stripes()).contains(&true))
}

/// What the SST scans of a scan have in common.
struct Scans<'a> {
    schema: &'a Arc<StoredSchema>,
    keys: &'a KeyRange,
    options: &'a ScanOptions,
    gc_filter: Option<&'a Arc<GcFilter>>,
    mode: &'a ScanMode,
}

impl Scans<'_> {
    /// The merge of runs, each with its sequence number.
    fn merged(&self, runs: Vec<(u64, Run)>) -> Run {
        let merge = Merge::new(Arc::clone(self.schema), runs).on_overflow(self.mode.overflow);
        Run(Box::new(match self.mode.block_rows {
            Some(rows) => merge.with_rows(rows),
            None => merge,
        }))
    }

    /// Scans in which the rows with these `keys`, of which several runs hold colliding parts, are merged before the others
    /// join them. Where order matters all are merged then, otherwise each run is a part.
    fn apart(
        &self,
        runs: &[(u64, Vec<SstSource>)],
        keys: RowKeys,
        of_one: &Projection,
        of_several: &Projection,
    ) -> Vec<Run> {
        let others = RowSelection::Without(Arc::clone(&keys));
        let projection = if self.options.unordered { of_one } else { of_several };
        let mut apart = self.of(runs, &others, projection, true);

        let joined = self.merged(self.of(runs, &RowSelection::Only(keys), of_several, false));
        let newest = runs.iter().map(|(seqno, _)| *seqno).max().unwrap_or_default();
        apart.push((newest, self.collected(joined)));

        match self.options.unordered {
            true => apart.into_iter().map(|run| self.merged(vec![run])).collect(),
            false => vec![self.merged(apart)],
        }
    }

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
        let columns = ScanColumns::new(self, projection, complete);
        let mut scans = Vec::with_capacity(runs.len());
        for (seqno, run) in runs {
            let of_run: Vec<SstScan> =
                run.iter().map(|source| self.of_source(source, rows, &columns, complete)).collect();
            scans.push((*seqno, Run(Box::new(of_run.into_iter().flatten()))));
        }

        scans
    }

    /// As [`Self::of`], of one SST.
    fn of_source(&self, source: &SstSource, rows: &RowSelection, columns: &ScanColumns, complete: bool) -> SstScan {
        let ScanOptions { stripe_pruner, record_filter, stripe_stats, .. } = self.options;
        let as_stored = complete && source.is_as_stored() && source.windows.is_none();
        let pruner = stripe_pruner.as_ref().filter(|_| complete);
        SstScan {
            schema: Arc::clone(self.schema),
            stripes: source.reader.stripes_in(&self.keys.start, self.keys.end.as_deref()),
            keys: self.keys.clone(),
            rows: rows.clone(),
            projection: Arc::clone(&columns.judged),
            narrow: Arc::clone(if as_stored { &columns.with_sums } else { &columns.narrow }),
            gc_filter: self.gc_filter.filter(|_| complete).cloned(),
            skipped: pruner.map(|pruner| pruner.prunes(source.reader.stripes())).unwrap_or_default(),
            record_filter: record_filter.clone().filter(|_| as_stored),
            stripe_stats: stripe_stats.clone().filter(|_| as_stored),
            source: source.clone(),
            ahead: StripesAhead::default(),
            log: SkippedStripes::of(source.place.clone()),
        }
    }

    /// What GC leaves of merged rows.
    fn collected(&self, merged: Run) -> Run {
        let Some(gc_filter) = self.gc_filter.cloned() else { return merged };
        let schema = Arc::clone(self.schema);
        Run(Box::new(merged.map(move |block| gc_filter.apply(&schema, block?))))
    }
}

/// The columns that scans of SSTs read.
struct ScanColumns {
    /// Those of the query, with row sums: where all values are as they are stored.
    with_sums: Arc<Projection>,
    /// Those of the query, without row sums, which are not valid where values are hidden, deleted or replaced.
    narrow: Arc<Projection>,
    /// Also those by which GC is decided.
    judged: Arc<Projection>,
}

impl ScanColumns {
    fn new(scans: &Scans<'_>, projection: &Projection, complete: bool) -> Self {
        let with_sums = Arc::new(projection.clone());
        let mut judged = projection.clone();
        judged.groups.iter_mut().flatten().for_each(|group| group.sums = false);

        let mut narrow = Arc::new(judged.clone());
        if let Some(gc_filter) = scans.gc_filter {
            gc_filter.widen(scans.schema, &mut judged);
        }
        let judged = Arc::new(judged);
        if !complete && scans.gc_filter.is_some() {
            narrow = Arc::clone(&judged);
        }

        Self { with_sums, narrow, judged }
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
