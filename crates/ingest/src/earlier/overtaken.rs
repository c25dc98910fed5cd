//! Whether rows of grown inputs may be appended after all other SSTs.
//!
//! Among equal cells the later input wins. Rows of a grown input get the greatest sequence number, although inputs
//! with later input sequence numbers are in the same windows already. That is harmless if no new cell has the row,
//! column and timestamp of an older one, or both have the same value. Then reads of a window return the same with the
//! new SSTs first and with them last, and so at any position between. The store does not know which input an SST's
//! cells came from, so all SSTs of the window are compared.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use arrow::array::Array;
use tidetable_layout::{Block, GroupBlock, Projection};
use tidetable_store::Result;
use tidetable_store::limits::ignore_damage;
use tidetable_store::read::{ALL_TIMES, BlockScan, ScanMode, Snapshot, SstSource};
use tidetable_store::version::{Input, Sst, VersionEdit};

use crate::earlier::near::{Overlap, are_apart, is_in, times_decide};
use crate::earlier::row_cursor::{Filled, RowCursor};
use crate::input::plan::Grown;
use crate::spec::LoadTarget;

impl LoadTarget<'_> {
    /// The grown inputs whose new cells, appended by `edit`, would hide cells of later inputs.
    pub(crate) fn overtaken(&self, edit: &VersionEdit) -> Result<Vec<String>> {
        let suspects = self.suspects(edit);
        if suspects.is_empty() || tidetable_sstable::failpoint!(AppendWhateverComesLater) {
            return Ok(Vec::new());
        }

        let snapshot = Snapshot::new(self.table.clone(), Arc::new(self.base.clone()))?;
        let mut overtaken: HashSet<&str> = HashSet::new();
        for (window, paths) in suspects {
            let mut new: Vec<&Sst> = Vec::new();
            for (_, ssts) in edit.ssts.iter().filter(|(start, _)| is_in(window, **start)) {
                new.extend(ssts);
            }

            // A damaged window is better rebuilt.
            let matters = order_matters(&snapshot, &self.left_in(window, edit), &new);
            if matters.or_else(|error| ignore_damage(error).map(|()| true))? {
                overtaken.extend(paths);
            }
        }

        Ok(overtaken.into_iter().map(str::to_owned).collect())
    }

    /// By window, the grown inputs that append to it although it holds later inputs; under `None` those of all
    /// windows, where a row may lie in several.
    fn suspects<'e>(&self, edit: &'e VersionEdit) -> BTreeMap<Option<i64>, Vec<&'e str>> {
        let lies_in_one = self.layout.rows_lie_in_one_window();
        let mut suspects: BTreeMap<Option<i64>, Vec<&str>> = BTreeMap::new();
        for Grown { held, .. } in self.plan.grown.iter().filter(|grown| grown.from > 0) {
            let Some(now) = edit.inputs.iter().find(|input| input.input_seqno == held.input_seqno) else { continue };

            if !lies_in_one {
                if self.inputs_after(held).any(|input| !input.windows.is_empty()) {
                    suspects.entry(None).or_default().push(&now.path);
                }
                continue;
            }

            // Rebuilt windows are in input order.
            for start in now.windows.iter().filter(|start| !edit.rebuilt.contains(start)) {
                let appends = edit.ssts.contains_key(start);
                if appends && self.inputs_after(held).any(|input| input.windows.binary_search(start).is_ok()) {
                    suspects.entry(Some(*start)).or_default().push(&now.path);
                }
            }
        }

        suspects
    }

    /// The inputs of the version before the load that were first seen after `held`.
    fn inputs_after(&self, held: &Input) -> impl Iterator<Item = &Input> {
        let seqno = held.input_seqno;
        self.base.inputs.iter().rev().take_while(move |input| input.input_seqno > seqno)
    }
}

/// Which SSTs of an [`Overlap`] win among equal cells: those that come last.
enum Last {
    Old,
    New,
}

/// Scans SSTs with those of `last` after the others.
fn scan(overlap: &Overlap<'_>, last: Last) -> Result<BlockScan> {
    let new_count = overlap.new.len() as u64;
    let mut sources: Vec<SstSource> = Vec::with_capacity(overlap.old.len() + overlap.new.len());
    for sst in &overlap.old {
        let source = overlap.snapshot.source(sst, &ALL_TIMES)?;
        sources.push(SstSource { seqno: source.seqno + new_count, ..source });
    }

    let first_new = match last {
        Last::Old => 0,
        Last::New => new_count + overlap.old.iter().map(|sst| sst.seqno).max().unwrap_or(0) + 1,
    };
    for (seqno, sst) in (first_new..).zip(&overlap.new) {
        // Tombstones were applied to new SSTs during the load.
        sources.push(SstSource { seqno, tombstones: None, ..overlap.snapshot.source(sst, &ALL_TIMES)? });
    }

    let all = Projection::all(overlap.snapshot.schema());
    overlap.scan(sources, &all, ScanMode { keeps_emptied: true, ..ScanMode::default() })
}

/// Whether a read of `old` and `new` depends on their order.
fn order_matters(snapshot: &Snapshot, old: &[&Sst], new: &[&Sst]) -> Result<bool> {
    if times_decide(snapshot.layout()) && new.iter().all(|new| old.iter().all(|old| are_apart(old, new))) {
        return Ok(false);
    }

    let overlap = Overlap::new(snapshot, old, new, |old, new| new.shares_keys(old));
    let Some(overlap) = overlap else { return Ok(false) };
    differ(scan(&overlap, Last::Old)?, scan(&overlap, Last::New)?)
}

/// Whether two scans of the same rows return different cells.
fn differ(one: BlockScan, other: BlockScan) -> Result<bool> {
    let mut one = RowCursor::new(one);
    let mut other = RowCursor::new(other);
    loop {
        match (one.fill()?, other.fill()?) {
            (Filled::End, Filled::End) => return Ok(false),
            (Filled::End, _) | (_, Filled::End) => return Ok(true),
            _ => {}
        }

        let rows = one.left().min(other.left());
        if !same(&one.take(rows), &other.take(rows)) {
            return Ok(true);
        }
    }
}

/// Whether both hold the same rows.
fn same(one: &Option<Block>, other: &Option<Block>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return one.is_none() && other.is_none() };

    let keys = (0..one.keys.len()).all(|row| one.keys.compare(row, &other.keys, row).is_eq());
    let mut groups = one.groups.iter().flatten().zip(other.groups.iter().flatten());
    keys && groups.all(|(one, other)| same_records(one, other))
}

/// Whether both hold the same records of a group: the same qualifiers, timestamps and values.
fn same_records(one: &GroupBlock, other: &GroupBlock) -> bool {
    let mut values = one.columns.iter().flatten().zip(other.columns.iter().flatten());
    one.row_ends == other.row_ends
        && one.timestamps == other.timestamps
        && same_qualifiers(one, other)
        && values.all(|(one, other)| one.to_data() == other.to_data())
}

/// Whether the records of both have the same qualifiers, whose codes may differ from block to block.
fn same_qualifiers(one: &GroupBlock, other: &GroupBlock) -> bool {
    match (&one.qualifiers, &other.qualifiers) {
        (Some(one), Some(other)) => {
            let mut codes = one.codes.iter().zip(&other.codes);
            one.codes.len() == other.codes.len()
                && codes.all(|(code, others)| one.dictionary[*code as usize] == other.dictionary[*others as usize])
        }
        (one, other) => one.is_none() && other.is_none(),
    }
}
