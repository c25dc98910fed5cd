//! Doing what a plan says: merge, hide for good, write.

use std::collections::{BTreeMap, BTreeSet};

use arrow::array::{Array, AsArray};
use rayon::prelude::*;
use tidetable_layout::{Block, Projection};
use tidetable_sstable::{Compression, EncodedStripe, StripeLimits, WriteOptions, encode_rows, stripe_cuts};

use super::edit::Compacted;
use super::plan::{CompactionPlan, WindowPlan};
use crate::drops::cells_of;
use crate::error::Result;
use crate::gc::Collector;
use crate::ids::Ids;
use crate::merge;
use crate::output::{SstFile, write_error};
use crate::snapshot::Snapshot;
use crate::table::Table;
use crate::version::{Edit, Sst};

/// Bytes of merged rows, about, that wait to be cut into stripes: enough for a few, so that none is short.
const WAITING: usize = 48 << 20;

/// A compaction that was done but for its commit.
#[derive(Debug)]
pub struct Compaction {
    /// To be committed at the plan's time.
    pub edit: Edit,
    /// SSTs before, and the bytes of them.
    pub before: (usize, u64),
    /// SSTs after, and the bytes of them.
    pub after: (usize, u64),
    /// Cells that were taken out: hidden by drops or rules, or written over.
    pub removed: u64,
}

/// What became of a window.
struct Rewritten {
    ssts: Vec<Sst>,
    /// Whether a read at the plan's time shows less than one at the version's.
    expired: bool,
}

impl Compaction {
    /// Does what `plan` says, on all cores.
    ///
    /// # Errors
    /// Those of reading and writing. What was written is removed then.
    pub fn run(plan: &CompactionPlan, ids: &dyn Ids) -> Result<Self> {
        let snapshot = &plan.snapshot;
        let version = snapshot.version();
        let judges = Judges::new(snapshot, plan.now)?;
        let done: Vec<Result<Rewritten>> = plan.windows.par_iter().map(|window| judges.rewrite(window, ids)).collect();
        let mut compacted = Compacted { now: plan.now, gc: version.table.gc.clone(), ..Compacted::default() };
        let (mut failed, mut expired) = (None, BTreeSet::new());
        for (window, done) in plan.windows.iter().zip(done) {
            match done {
                Ok(done) => {
                    if done.expired {
                        expired.insert(window.start);
                    }
                    let replaced = window.ssts.iter().map(|sst| sst.id.clone()).collect();
                    compacted.windows.insert(window.start, (replaced, done.ssts));
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let old = || plan.windows.iter().flat_map(|window| &window.ssts);
        let sum = |of: fn(&Sst) -> u64| (old().map(of).sum::<u64>(), compacted.written().map(of).sum::<u64>());
        let ((bytes_before, bytes_after), (cells_before, cells_after)) = (sum(|sst| sst.bytes), sum(|sst| sst.cells));
        let before = (old().count(), bytes_before);
        let after = (compacted.written().count(), bytes_after);
        let mut edit = Edit { base: version.number, ..Edit::default() };
        if !plan.is_empty() {
            edit.days = changed_days(snapshot, &expired);
            edit.compacted = Some(compacted);
        }
        match failed {
            None => Ok(Self { edit, before, after, removed: cells_before.saturating_sub(cells_after) }),
            Some(error) => {
                snapshot.table().discard(&edit);
                Err(error)
            }
        }
    }
}

/// The days whose answer changes, by window. A merge changes none, nor does taking out what was hidden;
/// only a later logical time does, by hiding more: that is the days of windows in which it does. Where rows
/// span windows, another window may hide more because of it, so all days count.
fn changed_days(snapshot: &Snapshot, expired: &BTreeSet<i64>) -> BTreeMap<i64, BTreeSet<i32>> {
    let all = !expired.is_empty() && !snapshot.layout().rows_keep_to_windows();
    let windows = snapshot.version().windows.iter().filter(|window| all || expired.contains(&window.start));
    windows.map(|window| (window.start, window.days.keys().copied().collect())).collect()
}

/// What is done to every window.
struct Judges<'a> {
    table: &'a Table,
    snapshot: Snapshot,
    /// The rules at the time of the version, if the plan's is another.
    before: Option<Collector>,
    /// The rules at the time of the plan.
    now: Option<Collector>,
    /// The newest drop was applied to all that is read.
    drops: Option<u64>,
}

impl<'a> Judges<'a> {
    fn new(snapshot: &'a Snapshot, now: i64) -> Result<Self> {
        let version = snapshot.version();
        let before = if now > version.now { snapshot.collector_at(version.now)? } else { None };
        Ok(Self {
            table: snapshot.table(),
            snapshot: snapshot.including_expired(),
            before,
            now: snapshot.collector_at(now)?,
            drops: version.drops.iter().map(|drop| drop.order).max(),
        })
    }

    fn rewrite(&self, window: &WindowPlan, ids: &dyn Ids) -> Result<Rewritten> {
        let schema = self.snapshot.schema();
        // Newer than every drop that was applied, so that it is not asked again, and older than what comes:
        // that gets an order above all SSTs and drops there are.
        let order = window.ssts.iter().map(|sst| sst.order).chain(self.drops).max().unwrap_or(0);
        let level = window.ssts.iter().map(|sst| sst.level).max().unwrap_or(0).saturating_add(1);
        let mut out = Output { table: self.table, snapshot: &self.snapshot, ids, open: None, ssts: Vec::new() };
        let mut expired = false;
        let mut waiting: Vec<Block> = Vec::new();
        let mut bytes = 0;
        let done = (|| {
            for block in self.snapshot.scan(&window.slice(), &Projection::all(schema))? {
                let mut block = block?;
                if let Some(before) = &self.before {
                    block = before.collect(schema, block)?;
                    let shown = cells_of(schema, &block);
                    block = self.collect(block)?;
                    expired |= cells_of(schema, &block) < shown;
                } else {
                    block = self.collect(block)?;
                }
                if block.keys.is_empty() {
                    continue;
                }
                bytes += weight(&block);
                waiting.push(block);
                if bytes >= WAITING {
                    out.write(&std::mem::take(&mut waiting))?;
                    bytes = 0;
                }
            }
            out.write(&waiting)?;
            out.end()
        })();
        let place = |sst: Sst| Sst { order, level, ..sst };
        let ssts: Vec<Sst> = std::mem::take(&mut out.ssts).into_iter().map(place).collect();
        match done {
            Ok(()) => Ok(Rewritten { ssts, expired }),
            Err(error) => {
                self.table.discard(&Edit { ssts: [(window.start, ssts)].into(), ..Edit::default() });
                Err(error)
            }
        }
    }

    fn collect(&self, block: Block) -> Result<Block> {
        match &self.now {
            Some(collector) => collector.collect(self.snapshot.schema(), block),
            None => Ok(block),
        }
    }
}

/// The files of a window as they are written.
struct Output<'a> {
    table: &'a Table,
    snapshot: &'a Snapshot,
    ids: &'a dyn Ids,
    open: Option<SstFile<'a>>,
    ssts: Vec<Sst>,
}

impl Output<'_> {
    /// Writes blocks that come after all before.
    fn write(&mut self, blocks: &[Block]) -> Result<()> {
        if blocks.is_empty() {
            return Ok(());
        }
        let schema = self.snapshot.schema();
        let block = merge::concat(schema, blocks)?;
        let uid = self.open.as_ref().map_or_else(|| self.ids.next(), SstFile::uid);
        let options = WriteOptions { uid, level: Compression::Dense, stripe: StripeLimits::default() };
        let stripes: Vec<EncodedStripe> = stripe_cuts(schema, &block, &options.stripe)
            .into_par_iter()
            .map(|rows| encode_rows(schema, &options, &block, rows).map_err(|source| write_error(self.table, source)))
            .collect::<Result<_>>()?;
        let mut file = match self.open.take() {
            Some(open) => open,
            None => SstFile::begin(self.table, schema, &options)?,
        };
        stripes.into_iter().try_for_each(|stripe| file.push(stripe))?;
        let full = file.is_full();
        self.open = Some(file);
        if full { self.end() } else { Ok(()) }
    }

    /// Ends the open file, if there is one.
    fn end(&mut self) -> Result<()> {
        if let Some(file) = self.open.take() {
            self.ssts.extend(file.end()?);
        }
        Ok(())
    }
}

/// Bytes of the rows of a block, about. Of a slice of an array only its own part counts.
fn weight(block: &Block) -> usize {
    let mut bytes = block.keys.len() * 16;
    for group in block.groups.iter().flatten() {
        bytes += group.len() * 12;
        for values in group.columns.iter().flatten() {
            let text = values.as_string_opt::<i32>().map(|texts| texts.value_offsets());
            let offsets = text.or_else(|| values.as_binary_opt::<i32>().map(|values| values.value_offsets()));
            let own = offsets.and_then(|offsets| Some(offsets.last()?.abs_diff(*offsets.first()?) as usize));
            bytes += own.unwrap_or(0) + values.len() * 8;
        }
    }
    bytes
}
