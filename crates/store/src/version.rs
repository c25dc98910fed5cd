//! A version of a table: its live inputs, and for each window the SSTs that hold it.
//!
//! Versions are immutable. A [`VersionEdit`] says what a commit changes; [`Version::apply`] makes the next
//! version of it or says why it cannot, without touching anything.

pub(crate) mod cow_list;
pub(crate) mod invariants;
pub(crate) mod multi_window;
pub(crate) mod names;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tidetable_layout::{SourceSchema, TableSpec};
use tidetable_source::ContentHash;

use crate::compaction::Compacted;
use crate::manifest::hex::hex_bytes;
use crate::tombstone::{AppliedDrop, DropTarget};
use crate::version::cow_list::CowList;
use crate::version::multi_window::MultiWindow;
use crate::version::names::{Name, put_named};

/// One version of a table, as its manifest says it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Version {
    /// Number of the version; the first is 1.
    pub number: u64,
    /// Names the commit, so that a writer whose reply was lost can tell its own from another's.
    pub commit: String,
    /// The commit of version 1: tells this table from another of its name.
    pub born: String,
    /// Logical time of the commit, microseconds since the epoch.
    pub now: i64,
    /// The table.
    pub table: TableIdentity,
    /// Inputs whose rows the table holds, by sequence.
    pub inputs: CowList<Input>,
    /// Other names that were seen, by sequence: copies of inputs, and inputs that were taken out.
    #[serde(default, skip_serializing_if = "CowList::is_empty")]
    pub names: CowList<Name>,
    /// Windows that hold cells, by start.
    pub windows: CowList<WindowState>,
    /// What was deleted, the oldest first. It holds on when its inputs are read again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<AppliedDrop>,
    /// Logical time of the latest compaction: cells that had expired by then may be gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collected: Option<i64>,
    /// Files older than this (microseconds since the epoch, by the clock of the store) that no version named then
    /// may be gone: the latest vacuum says so before it removes any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vacuumed: Option<i64>,
    /// Where it was read from.
    #[serde(skip)]
    pub(crate) origin: Origin,
}

/// Where a version was read from, or written to. It is no part of what a version says: all are alike.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    /// Checksum of its manifest; empty if it has none yet.
    pub(crate) manifest: String,
    /// The newest version up to it that is written out whole, as far as is known.
    pub(crate) checkpoint: u64,
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// What a table is: fixed when it is made, but for a rebuild.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableIdentity {
    /// The job it belongs to.
    pub job: String,
    /// The layout as the job file said it.
    pub spec: TableSpec,
    /// The columns of its source.
    pub source: SourceSchema,
    /// Fingerprint of the layout.
    pub layout: String,
    /// Garbage-collection rule of each family that has one, in cbt's notation.
    pub gc: BTreeMap<String, String>,
}

/// An input the table holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Place among the inputs: of two cells alike, the one of the greater sequence wins.
    pub sequence: u64,
    /// Path or URL, as the job sees it.
    pub path: String,
    /// Bytes as stored.
    pub size: u64,
    /// Fingerprint of the file, see [`tidetable_source::InputFile::version`]: what tells that a file is as it was.
    pub version: String,
    /// Hash of the bytes as stored.
    pub hash: ContentHash,
    /// Rows read, of them rejected.
    pub read: u64,
    /// Rows rejected.
    pub rejected: u64,
    /// UTC days its cells lie in, days since the epoch, ascending.
    pub days: Vec<i32>,
    /// Starts of the windows its cells lie in, microseconds, ascending.
    pub windows: Vec<i64>,
}

/// A window and the files that hold it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowState {
    /// Start, microseconds since the epoch.
    pub start: i64,
    /// For each UTC day of it (days since the epoch), the last version that changed that day.
    pub days: BTreeMap<i32, u64>,
    /// Its SSTs, older data first; those of one compaction by key.
    pub ssts: Vec<Sst>,
}

/// A file of a version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sst {
    /// Name without folder and ending; also the file's uid, as a ULID.
    pub id: String,
    /// Of two cells alike, the one of the greater order wins. SSTs of one order share no key.
    pub order: u64,
    /// 0 from a load, more from compactions.
    pub level: u8,
    /// Length of the file.
    pub bytes: u64,
    /// xxh3-128 of the file, hexadecimal.
    pub checksum: String,
    /// Rows.
    pub rows: u64,
    /// Cells.
    pub cells: u64,
    /// First row key, hexadecimal.
    #[serde(with = "hex_bytes")]
    pub first_key: Vec<u8>,
    /// Last row key, hexadecimal.
    #[serde(with = "hex_bytes")]
    pub last_key: Vec<u8>,
    /// Least stored timestamp, microseconds; `None` if it holds only cells at 0.
    pub min_timestamp: Option<i64>,
    /// Greatest stored timestamp, microseconds.
    pub max_timestamp: Option<i64>,
    /// The windows whose rows it holds, if they are others than the one it stands in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joined: Option<MultiWindow>,
    /// Bounds of what it adds to a row and to a sum; `None` if the build that wrote it did not record them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest: Option<Largest>,
    /// Whether it may hold rows without a cell, which only keep the time of the upsert that emptied them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub emptied: bool,
}

/// Bounds of what an SST holds of any one row or cell: what a commit looks at before it opens files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Largest {
    /// No row has more bytes of cells.
    pub row: u64,
    /// No cell of a sum family is further from 0.
    pub sum: u64,
}

impl Largest {
    /// The bounds of two files together, where no row lies in both.
    pub(crate) fn max(self, other: Self) -> Self {
        Self { row: self.row.max(other.row), sum: self.sum.max(other.sum) }
    }
}

/// What a commit changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VersionEdit {
    /// Makes the table anew under this identity: every input and SST of before goes.
    pub reset: Option<TableIdentity>,
    /// Rules of garbage collection to judge cells by from now on.
    pub gc: Option<BTreeMap<String, String>>,
    /// Paths of inputs whose rows the rebuilt windows no longer hold, and of names that others took the place of.
    pub removed: Vec<String>,
    /// Inputs to add, or to put in the place of those with the same path.
    pub inputs: Vec<Input>,
    /// Names without rows to add, or to put in the place of those with the same path.
    pub names: Vec<Name>,
    /// Windows whose SSTs are replaced as a whole by those of `ssts`.
    pub rebuilt: Vec<i64>,
    /// SSTs to add to their windows, older data first. `order` is set by the commit.
    pub ssts: BTreeMap<i64, Vec<Sst>>,
    /// What to delete. Their place among inputs and SSTs is set by the commit.
    pub drops: Vec<DropTarget>,
    /// SSTs that a compaction puts in the place of others.
    pub compacted: Option<Compacted>,
    /// SSTs to take out of their windows without anything in their place, by id: what they held is lost.
    pub taken_out: BTreeMap<i64, Vec<String>>,
    /// Says that files older than this may be gone, see [`Version::vacuumed`].
    pub vacuumed: Option<i64>,
    /// UTC days whose cells change, by window.
    pub days: BTreeMap<i64, BTreeSet<i32>>,
    /// The version the edit was worked out against.
    pub base: u64,
}

impl VersionEdit {
    /// Whether committing it would change nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self { base: self.base, ..Self::default() }
    }
}

impl Version {
    /// The version before the first: nothing in it, and no file for it.
    pub fn empty(table: TableIdentity) -> Self {
        Self {
            number: 0,
            commit: String::new(),
            born: String::new(),
            now: 0,
            table,
            inputs: CowList::default(),
            names: CowList::default(),
            windows: CowList::default(),
            drops: Vec::new(),
            collected: None,
            vacuumed: None,
            origin: Origin::default(),
        }
    }

    /// The next version, or why `edit` cannot come after this one. An append may come after any
    /// version that does not hold its inputs, which then get sequences after those there are; a compaction
    /// after any that holds its SSTs under the same rules and drops; a rebuild or a drop only after the one
    /// it was worked out against.
    ///
    /// # Errors
    /// A sentence for [`crate::StoreError::Conflict`].
    pub fn apply(&self, edit: &VersionEdit, commit: &str, now: i64) -> Result<Self, String> {
        if edit.base != self.number {
            self.may_rebase(edit)?;
        }
        let mut next = self.clone();
        next.number += 1;
        commit.clone_into(&mut next.commit);
        if next.born.is_empty() {
            commit.clone_into(&mut next.born);
        }
        // What a compaction took out would not be judged to have expired at an earlier time.
        next.collected = self.collected.filter(|_| edit.reset.is_none());
        next.now = next.collected.map_or(now, |collected| now.max(collected));
        if edit.vacuumed.is_some() {
            // No answer is another for it.
            next.vacuumed = self.vacuumed.max(edit.vacuumed);
            next.now = self.now;
        }
        if let Some(gc) = &edit.gc {
            // Every cell may show or not show by other rules.
            next.table.gc.clone_from(gc);
            next.windows.iter_mut().for_each(|window| window.touch(next.number));
        }
        if let Some(identity) = &edit.reset {
            next.table.clone_from(identity);
            next.inputs.clear();
            next.names.clear();
            next.windows.iter_mut().for_each(|window| window.empty(next.number));
        }
        next.put_inputs(edit);
        if let Some(compacted) = &edit.compacted {
            next.now = self.now.max(compacted.now);
            compacted.put(&mut next)?;
        }
        next.take_out(edit)?;
        next.put_ssts(edit);
        next.put_drops(edit);
        invariants::check_next(self, &next)?;
        Ok(next)
    }

    fn put_inputs(&mut self, edit: &VersionEdit) {
        let (mut inputs, mut names) = (edit.inputs.clone(), edit.names.clone());
        if edit.reset.is_none() && edit.base != self.number.saturating_sub(1) {
            self.give_later_sequences(&mut inputs, &mut names);
        }
        // A name stands in one of both lists.
        let paths = |removed: &[String], other: Vec<&String>| removed.iter().chain(other).cloned().collect::<Vec<_>>();
        let no_inputs = paths(&edit.removed, edit.names.iter().map(|name| &name.path).collect());
        let no_names = match self.names.is_empty() {
            true => Vec::new(),
            false => paths(&edit.removed, edit.inputs.iter().map(|input| &input.path).collect()),
        };
        put_named(&mut self.inputs, &no_inputs, inputs);
        put_named(&mut self.names, &no_names, names);
    }

    fn take_out(&mut self, edit: &VersionEdit) -> Result<(), String> {
        for (start, ids) in &edit.taken_out {
            let window = self.window(*start);
            if let Some(gone) = ids.iter().find(|id| !window.ssts.iter().any(|sst| sst.id == **id)) {
                return Err(format!("SST {gone} was replaced meanwhile"));
            }
            window.ssts.retain(|sst| !ids.contains(&sst.id));
        }
        Ok(())
    }

    fn put_ssts(&mut self, edit: &VersionEdit) {
        let number = self.number;
        let mut order = self.next_order();
        for start in &edit.rebuilt {
            self.window(*start);
        }
        // Only those that change: the others stay shared with the version before.
        let leaves = |window: &WindowState| {
            let holds = |joined: &MultiWindow| edit.rebuilt.iter().any(|start| joined.holds(*start));
            edit.rebuilt.contains(&window.start) || window.ssts.iter().any(|sst| sst.joined.as_ref().is_some_and(holds))
        };
        let changed: Vec<usize> = (0..self.windows.len()).filter(|at| leaves(&self.windows[*at])).collect();
        for at in changed {
            multi_window::leave(std::iter::once(&mut self.windows[at]), &edit.rebuilt);
        }
        for (start, ssts) in &edit.ssts {
            for sst in ssts {
                self.window(*start).ssts.push(Sst { order, ..sst.clone() });
                order += 1;
            }
        }
        for (start, days) in &edit.days {
            let window = self.window(*start);
            window.days.extend(days.iter().map(|day| (*day, number)));
        }
    }

    /// Inputs and SSTs that come later are newer than the drops.
    fn put_drops(&mut self, edit: &VersionEdit) {
        for target in &edit.drops {
            self.drops.push(AppliedDrop {
                target: target.clone(),
                sequence: self.next_sequence(),
                order: self.next_order(),
                version: self.number,
                now: self.now,
            });
        }
    }

    pub(crate) fn window(&mut self, start: i64) -> &mut WindowState {
        let found = self.windows.binary_search_by_key(&start, |window| window.start);
        let at = match found {
            Ok(at) => at,
            Err(at) => {
                self.windows.insert(at, WindowState { start, days: BTreeMap::new(), ssts: Vec::new() });
                at
            }
        };
        &mut self.windows[at]
    }

    /// All SSTs, by window.
    pub fn ssts(&self) -> impl Iterator<Item = &Sst> {
        self.windows.iter().flat_map(|window| &window.ssts)
    }

    /// The sequence the next new input gets: never one that a drop holds for, even if inputs are gone.
    pub fn next_sequence(&self) -> u64 {
        let dropped = self.drops.iter().map(|drop| drop.sequence);
        let inputs = self.inputs.last().map(|input| input.sequence + 1);
        let names = self.names.last().map(|name| name.sequence + 1);
        dropped.chain(inputs).chain(names).fold(1, u64::max)
    }

    /// The order the next SST or drop gets. A drop has one of its own, so that what a compaction makes
    /// of the SSTs before it can take its place, below all that came after.
    pub(crate) fn next_order(&self) -> u64 {
        let orders = self.ssts().map(|sst| sst.order).chain(self.drops.iter().map(|drop| drop.order));
        orders.map(|order| order + 1).max().unwrap_or(0)
    }
}

impl WindowState {
    /// Drops all SSTs; every day of it changes with version `number`.
    fn empty(&mut self, number: u64) {
        self.ssts.clear();
        self.touch(number);
    }

    /// Every day of it changes with version `number`.
    fn touch(&mut self, number: u64) {
        self.days.values_mut().for_each(|changed| *changed = number);
    }
}
