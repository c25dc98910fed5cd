//! Cells of earlier loads that a load replaces by cells of the same row, column and timestamp.
//!
//! A window that is rebuilt has all its cells from one load, which counts them: each unit its own, and the driver those that units
//! replace in each other. Elsewhere new SSTs lie beside older
//! ones, and cells of both may be equal in all but their value: the new one wins. Such cells are found by reading the
//! older SSTs whose keys and timestamps overlap those of new ones: first the keys, and the cells if rows have equal keys.
//! A small late file may overlap a window of any size, so no more is read than [`LEAST_READ`] or [`READ_FACTOR`] times the
//! new bytes: beyond that, replaced cells are not counted.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::{Array, DynComparator, make_comparator};
use arrow::compute::SortOptions;
use tidetable_layout::{Block, GroupBlock, Layout, Projection};
use tidetable_store::Result;
use tidetable_store::limits::ignore_damage;
use tidetable_store::read::{ALL_TIMES, BlockScan, ScanMode, Snapshot, SstSource};
use tidetable_store::version::{Sst, VersionEdit};

use crate::earlier::near::{Overlap, are_apart, times_decide};
use crate::earlier::row_cursor::{Filled, RowCursor};
use crate::spec::LoadTarget;
use crate::stats::{ReplacedCells, key_text};

/// Bytes of older SSTs that a load of any size may read.
const LEAST_READ: u64 = 32 << 20;
/// Bytes of older SSTs that a load may read for each byte that it wrote: reading is several times as fast as loading.
const READ_FACTOR: u64 = 2;

impl LoadTarget<'_> {
    /// The cells of earlier loads that the SSTs of `edit` replace; `None` if there are none. A table of the newest rows
    /// replaces them on purpose, and is not looked at.
    pub(crate) fn replaced(&self, edit: &VersionEdit) -> Result<Option<ReplacedCells>> {
        if self.layout.stored().upsert || self.base.windows.is_empty() {
            return Ok(None);
        }

        let snapshot = Snapshot::new(self.table.clone(), Arc::new(self.base.clone()))?;
        let mut replaced = ReplacedCells::default();
        let mut changed_in = BTreeSet::new();
        let written: u64 = edit.ssts.values().flatten().map(|sst| sst.bytes).sum();
        let mut may_read = LEAST_READ.max(written.saturating_mul(READ_FACTOR));

        for (start, new) in edit.ssts.iter().filter(|(start, _)| !edit.rebuilt.contains(start)) {
            // Where a row lies in several windows, so may cells of one timestamp.
            let window = Some(*start).filter(|_| self.layout.rows_lie_in_one_window());
            let new = new.iter().collect();
            let old = self.left_in(window, edit);

            // `verify` tells of a damaged file.
            let counts = count(&snapshot, OldCells::OfVersion(old), new, &mut may_read);
            let counts = counts.or_else(|error| ignore_damage(error).map(|()| Counts::default()))?;
            replaced.cells += counts.cells;
            replaced.changed += counts.changed;
            if counts.changed > 0 {
                changed_in.insert(*start);
            }
            replaced.in_row = replaced.in_row.take().or(counts.changed_in_row);
        }

        self.name_inputs(&mut replaced, edit, &changed_in);
        Ok(Some(replaced).filter(|replaced| replaced.cells > 0))
    }

    /// The cells that units of one load replace in each other, which no unit can count: `units` are the SSTs of each by window, in
    /// order. A table of the newest rows is not looked at.
    pub(crate) fn replaced_between(&self, units: &[BTreeMap<i64, Vec<Sst>>]) -> Result<Counts> {
        let mut counts = Counts::default();
        if self.layout.stored().upsert || units.len() < 2 {
            return Ok(counts);
        }

        let snapshot = Snapshot::new(self.table.clone(), Arc::new(self.base.clone()))?;
        // Not in proportion to what was written: units write on many machines, and the driver reads alone.
        let mut may_read = LEAST_READ;
        let windows: BTreeSet<i64> = units.iter().flat_map(BTreeMap::keys).copied().collect();
        for window in windows {
            let mut before: Vec<&Sst> = Vec::new();
            for ssts in units.iter().filter_map(|unit| unit.get(&window)) {
                let new: Vec<&Sst> = ssts.iter().collect();
                if !before.is_empty() {
                    let between = count(&snapshot, OldCells::OfLoad(before.clone()), new, &mut may_read)?;
                    counts.cells += between.cells;
                    counts.changed += between.changed;
                    counts.changed_in_row = counts.changed_in_row.take().or(between.changed_in_row);
                }
                before.extend(ssts);
            }
        }
        Ok(counts)
    }

    /// Names the inputs with cells in `windows`: new ones, and those of earlier loads. Growth of an input may correct its
    /// own rows, so it is named as neither.
    fn name_inputs(&self, replaced: &mut ReplacedCells, edit: &VersionEdit, windows: &BTreeSet<i64>) {
        let new = self.plan.new.iter().chain(&self.plan.resumed);
        let new: BTreeSet<&str> = new.map(|(_, file)| file.path.as_str()).collect();
        for input in edit.inputs.iter().filter(|input| new.contains(input.path.as_str())) {
            if has_any(&input.windows, windows) {
                replaced.by.push(input.path.clone());
            }
        }
        for input in self.base.inputs.iter().filter(|input| has_any(&input.windows, windows)) {
            replaced.of.push(input.path.clone());
        }
        replaced.by.sort_unstable();
        replaced.of.sort_unstable();
    }
}

/// Whether one of the windows that begin at `starts` is among `windows`.
fn has_any(starts: &[i64], windows: &BTreeSet<i64>) -> bool {
    starts.iter().any(|start| windows.contains(start))
}

/// Cells that others replace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub(crate) cells: u64,
    /// Cells whose new value differs from the one that they replace.
    pub(crate) changed: u64,
    /// The key of the first row with such a cell, as text.
    pub(crate) changed_in_row: Option<String>,
}

/// SSTs whose cells may be replaced.
enum OldCells<'a> {
    /// Those of the version before the load.
    OfVersion(Vec<&'a Sst>),
    /// Those of earlier units of the same load, in order: they have no sequence number yet, and deletes were applied to them.
    OfLoad(Vec<&'a Sst>),
}

/// Counts the cells of `old` that those of `new` replace. `may_read` are the bytes of `old` that may be read, from which
/// it takes what it reads; if these do not suffice, no cells are counted.
fn count<'a>(snapshot: &'a Snapshot, old: OldCells<'a>, new: Vec<&'a Sst>, may_read: &mut u64) -> Result<Counts> {
    let times_decide = times_decide(snapshot.layout());
    let (old, is_of_load) = match old {
        OldCells::OfVersion(old) => (old, false),
        OldCells::OfLoad(old) => (old, true),
    };
    let meet = |old: &Sst, new: &Sst| new.shares_keys(old) && !(times_decide && are_apart(old, new));
    let Some(overlap) = Overlap::new(snapshot, &old, &new, meet) else { return Ok(Counts::default()) };
    let Some(left) = may_read.checked_sub(overlap.old.iter().map(|sst| sst.bytes).sum()) else {
        return Ok(Counts::default());
    };
    *may_read = left;

    let no_cells = Projection { groups: vec![None; snapshot.schema().groups.len()] };
    if shared_rows(&overlap, is_of_load, &no_cells)?.next()?.is_none() {
        return Ok(Counts::default());
    }

    let mut rows = shared_rows(&overlap, is_of_load, &Projection::all(snapshot.schema()))?;
    let mut counts = Counts::default();
    let mut compared: Vec<ComparedGroup> = Vec::new();
    while let Some(shared) = rows.next()? {
        if shared.are_blocks_new {
            compared = ComparedGroup::all(snapshot.layout(), &shared)?;
        }
        compared.iter().for_each(|group| group.count_row(&shared, &mut counts));
        if counts.changed > 0 && counts.changed_in_row.is_none() {
            counts.changed_in_row = Some(key_text(&shared.new.keys.get(shared.new_row)));
        }
    }
    Ok(counts)
}

/// The rows that both sides have, with the cells of `projection`; `is_of_load`: also the old ones are of the load.
fn shared_rows(overlap: &Overlap<'_>, is_of_load: bool, projection: &Projection) -> Result<SharedRows> {
    let mut old = Vec::with_capacity(overlap.old.len());
    if is_of_load {
        old = in_order(overlap, &overlap.old)?;
    } else {
        for sst in &overlap.old {
            old.push(overlap.snapshot.source(sst, &ALL_TIMES)?);
        }
    }
    let new = in_order(overlap, &overlap.new)?;

    let old = overlap.scan(old, projection, ScanMode::default())?;
    let new = overlap.scan(new, projection, ScanMode::default())?;
    Ok(SharedRows::new(old, new))
}

/// SSTs of a load, in order: they have no number yet, and deletes were applied during the load.
fn in_order(overlap: &Overlap<'_>, ssts: &[&Sst]) -> Result<Vec<SstSource>> {
    let mut sources = Vec::with_capacity(ssts.len());
    for (seqno, sst) in (0..).zip(ssts) {
        sources.push(SstSource { seqno, tombstones: None, ..overlap.snapshot.source(sst, &ALL_TIMES)? });
    }
    Ok(sources)
}

/// Rows with equal keys of a scan of old SSTs and one of new ones, found by merging the two.
struct SharedRows {
    old: RowCursor,
    new: RowCursor,
    are_blocks_new: bool,
}

/// A row that two blocks share, with its place in each.
struct SharedRow<'a> {
    old: &'a Block,
    old_row: usize,
    new: &'a Block,
    new_row: usize,
    /// Whether a block is another than that of the row before.
    are_blocks_new: bool,
}

impl SharedRows {
    fn new(old: BlockScan, new: BlockScan) -> Self {
        Self { old: RowCursor::new(old), new: RowCursor::new(new), are_blocks_new: true }
    }

    fn next(&mut self) -> Result<Option<SharedRow<'_>>> {
        if !self.advance()? {
            return Ok(None);
        }
        let are_blocks_new = std::mem::take(&mut self.are_blocks_new);
        let (old_row, new_row) = (self.old.row, self.new.row);
        (self.old.row, self.new.row) = (old_row + 1, new_row + 1);
        let blocks = self.old.block.as_ref().zip(self.new.block.as_ref());
        Ok(blocks.map(|(old, new)| SharedRow { old, old_row, new, new_row, are_blocks_new }))
    }

    /// Goes to the next row of both scans; returns whether there is one.
    fn advance(&mut self) -> Result<bool> {
        loop {
            let filled = [self.old.fill()?, self.new.fill()?];
            if filled.contains(&Filled::End) {
                return Ok(false);
            }
            self.are_blocks_new |= filled.contains(&Filled::NewBlock);
            let (Some(old), Some(new)) = (&self.old.block, &self.new.block) else { return Ok(false) };
            match old.keys.compare(self.old.row, &new.keys, self.new.row) {
                Ordering::Less => self.old.row += 1,
                Ordering::Greater => self.new.row += 1,
                Ordering::Equal => return Ok(true),
            }
        }
    }
}

/// How to compare the cells of a group in two blocks.
struct ComparedGroup {
    group: usize,
    /// Whether a record is one cell, and its columns are fields of it.
    is_packed: bool,
    columns: Vec<ComparedColumn>,
}

/// A column whose later cells replace earlier ones.
struct ComparedColumn {
    place: usize,
    /// Compares values by record of the older and of the newer block.
    compare: DynComparator,
}

impl ComparedGroup {
    /// The groups of which two blocks may hold equal cells.
    fn all(layout: &Layout, blocks: &SharedRow<'_>) -> Result<Vec<Self>> {
        let mut groups = Vec::new();
        for (at, group) in layout.stored().groups.iter().enumerate().filter(|(_, group)| !group.keeps_duplicates()) {
            let (Some(old), Some(new)) = (&blocks.old.groups[at], &blocks.new.groups[at]) else { continue };
            let mut columns = Vec::new();
            for (place, column) in group.columns.iter().enumerate() {
                let (Some(old), Some(new)) = (&old.columns[place], &new.columns[place]) else { continue };
                if column.merge.is_newest() && !layout.follows_from_key(at, place) {
                    columns.push(ComparedColumn { place, compare: make_comparator(old, new, SortOptions::default())? });
                }
            }
            groups.push(Self { group: at, is_packed: group.packed.is_some(), columns });
        }
        Ok(groups)
    }

    /// Adds the cells of a row that both blocks have.
    fn count_row(&self, row: &SharedRow<'_>, counts: &mut Counts) {
        let (Some(old), Some(new)) = (&row.old.groups[self.group], &row.new.groups[self.group]) else { return };
        let mut old_records = old.records(row.old_row).map(|record| Record { group: old, record }).peekable();
        let mut new_records = new.records(row.new_row).map(|record| Record { group: new, record }).peekable();
        while let (Some(old), Some(new)) = (old_records.peek(), new_records.peek()) {
            match old.place().cmp(&new.place()) {
                Ordering::Less => {
                    old_records.next();
                }
                Ordering::Greater => {
                    new_records.next();
                }
                Ordering::Equal => {
                    self.count_record(old, new, counts);
                    old_records.next();
                    new_records.next();
                }
            }
        }
    }

    /// Adds the cells that two records with equal qualifiers and timestamps share.
    fn count_record(&self, old: &Record<'_>, new: &Record<'_>, counts: &mut Counts) {
        let (mut cells, mut changed) = (0, 0);
        for ComparedColumn { place, compare } in &self.columns {
            match (old.has(*place), new.has(*place)) {
                (true, true) => {
                    cells += 1;
                    changed += u64::from(compare(old.record, new.record).is_ne());
                }
                // A cell of several fields is replaced with all of them.
                (true, false) | (false, true) if self.is_packed => changed += 1,
                _ => {}
            }
        }
        if self.is_packed {
            (cells, changed) = (u64::from(cells + changed > 0), u64::from(changed > 0));
        }
        counts.cells += cells;
        counts.changed += changed;
    }
}

struct Record<'a> {
    group: &'a GroupBlock,
    record: usize,
}

impl Record<'_> {
    /// Its place in the order of the records of a row: its qualifier, then its timestamp, newest first.
    fn place(&self) -> (Option<&[u8]>, Reverse<Option<i64>>) {
        let names = self.group.qualifiers.as_ref();
        let qualifier = names.map(|names| &*names.dictionary[names.codes[self.record] as usize]);
        (qualifier, Reverse(self.group.timestamps.as_ref().map(|times| times[self.record])))
    }

    fn has(&self, column: usize) -> bool {
        self.group.columns[column].as_ref().is_some_and(|values| values.is_valid(self.record))
    }
}
