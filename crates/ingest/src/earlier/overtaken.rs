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
use tidetable_layout::{Block, GroupBlock, KeyRange, Projection};
use tidetable_store::Result;
use tidetable_store::limits::ignore_damage;
use tidetable_store::merge::Overflow;
use tidetable_store::read::BlockScan;
use tidetable_store::read::SstSource;
use tidetable_store::read::{ALL_TIMES, Snapshot};
use tidetable_store::read::{ScanMode, ScanOptions};
use tidetable_store::version::{Sst, VersionEdit};

use crate::earlier::near::{are_apart, times_decide};
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
            let is_near = |start: i64| window.is_none_or(|window| window == start);
            let new: Vec<&Sst> =
                edit.ssts.iter().filter(|(start, _)| is_near(**start)).flat_map(|(_, ssts)| ssts).collect();
            let old = self.left_in(window, edit);
            // A damaged window is better rebuilt.
            if order_matters(&snapshot, &old, &new).or_else(|error| ignore_damage(error).map(|()| true))? {
                overtaken.extend(paths);
            }
        }
        Ok(overtaken.into_iter().map(str::to_owned).collect())
    }

    /// By window, the grown inputs that append to it although it holds later inputs; under `None` those of all
    /// windows, where a row may lie in several.
    fn suspects<'e>(&self, edit: &'e VersionEdit) -> BTreeMap<Option<i64>, Vec<&'e str>> {
        let keeps = self.layout.rows_lie_in_one_window();
        let mut suspects: BTreeMap<Option<i64>, Vec<&str>> = BTreeMap::new();
        for Grown { held, .. } in self.plan.grown.iter().filter(|grown| grown.from > 0) {
            let later = || self.base.inputs.iter().rev().take_while(|input| input.input_seqno > held.input_seqno);
            let Some(now) = edit.inputs.iter().find(|input| input.input_seqno == held.input_seqno) else { continue };
            if !keeps && later().any(|input| !input.windows.is_empty()) {
                suspects.entry(None).or_default().push(&now.path);
            }
            // Rebuilt windows are in input order.
            let added = now.windows.iter().filter(|start| keeps && !edit.rebuilt.contains(start));
            for start in added.filter(|start| edit.ssts.contains_key(start)) {
                if later().any(|input| input.windows.binary_search(start).is_ok()) {
                    suspects.entry(Some(*start)).or_default().push(&now.path);
                }
            }
        }
        suspects
    }
}

/// Whether a read of `old` and `new` depends on their order.
fn order_matters(snapshot: &Snapshot, old: &[&Sst], new: &[&Sst]) -> Result<bool> {
    if new.is_empty()
        || (times_decide(snapshot.layout()) && new.iter().all(|new| old.iter().all(|old| are_apart(old, new))))
    {
        return Ok(false);
    }
    let near: Vec<&Sst> = old.iter().copied().filter(|sst| new.iter().any(|new| new.shares_keys(sst))).collect();
    let (Some(first), Some(last)) =
        (new.iter().map(|sst| &sst.first_key).min(), new.iter().map(|sst| &sst.last_key).max())
    else {
        return Ok(false);
    };
    if near.is_empty() {
        return Ok(false);
    }
    let keys = KeyRange { start: first.clone(), end: Some([last.as_slice(), &[0]].concat()) };
    let (count, top) = (new.len() as u64, near.iter().map(|sst| sst.seqno).max().unwrap_or(0) + 1);
    let scan = |is_last: bool| -> Result<BlockScan> {
        let mut sources: Vec<SstSource> = Vec::with_capacity(near.len() + new.len());
        for sst in &near {
            let source = snapshot.source(sst, &ALL_TIMES)?;
            sources.push(SstSource { seqno: source.seqno + count, ..source });
        }
        for (at, sst) in new.iter().enumerate() {
            let seqno = at as u64 + if is_last { count + top } else { 0 };
            // Tombstones were applied to new SSTs during the load.
            sources.push(SstSource { seqno, tombstones: None, ..snapshot.source(sst, &ALL_TIMES)? });
        }
        let (schema, all) = (Arc::clone(snapshot.schema()), Projection::all(snapshot.schema()));
        let mode = ScanMode { overflow: Overflow::Passes, keeps_emptied: true, ..ScanMode::default() };
        BlockScan::new(schema, sources, keys.clone(), &all, None, &ScanOptions::default(), mode)
    };
    differ(scan(false)?, scan(true)?)
}

/// Whether two scans of the same rows return different cells.
fn differ(one: BlockScan, other: BlockScan) -> Result<bool> {
    let (mut one, mut other) = (RowCursor::new(one), RowCursor::new(other));
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
    let groups = || one.groups.iter().flatten().zip(other.groups.iter().flatten());
    keys && groups().all(|(one, other)| same_records(one, other))
}

fn same_records(one: &GroupBlock, other: &GroupBlock) -> bool {
    let names = |group: &GroupBlock| -> Option<Vec<Box<[u8]>>> {
        let names = group.qualifiers.as_ref()?;
        Some(names.codes.iter().map(|code| names.dictionary[*code as usize].clone()).collect())
    };
    let values = || one.columns.iter().flatten().zip(other.columns.iter().flatten());
    one.row_ends == other.row_ends
        && one.timestamps == other.timestamps
        && names(one) == names(other)
        && values().all(|(one, other)| one.to_data() == other.to_data())
}
