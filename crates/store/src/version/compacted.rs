//! Compaction edits: the SSTs that compactions replace in a version.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::version::sst::Sst;
use crate::version::state::Version;

/// The replacements of a compaction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Compacted {
    /// The replacements, one per merge.
    pub replacements: Vec<Replacement>,
    /// Logical time at which garbage-collection rules were applied.
    pub now: i64,
    /// The garbage-collection rules that were applied, by family: a commit under other rules is a conflict.
    pub gc: BTreeMap<String, String>,
}

/// The SSTs that one merge replaces, and its output.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replacement {
    /// Start of their window, or of the first window of a join.
    pub window: i64,
    /// Starts of the joined windows, ascending; empty without a join.
    pub joins: Vec<i64>,
    /// Starts of the windows of the replaced SSTs, ascending, to detect that one was rebuilt meanwhile.
    pub held: Vec<i64>,
    /// Ids of the replaced SSTs, which are consecutive in the window.
    pub replaced: Vec<String>,
    /// The output SSTs, by key. A replaced SST may be among them, with another sequence number. May be empty; the
    /// window keeps its days.
    pub ssts: Vec<Sst>,
}

impl Replacement {
    /// Replaces the SSTs of the merge in `next`; the conflict if one of them, or a window of theirs, is another now.
    fn put(&self, next: &mut Version) -> Result<(), String> {
        let ids: HashSet<&str> = self.replaced.iter().map(String::as_str).collect();
        let there: HashSet<&str> = next.ssts().map(|sst| sst.id.as_str()).collect();
        if let Some(gone) = ids.iter().find(|id| !there.contains(*id)) {
            return Err(format!("SST {gone} was replaced meanwhile"));
        }
        if self.held != held_windows(next.ssts().filter(|sst| ids.contains(sst.id.as_str()))) {
            return Err(format!("a window of SST {} was rebuilt meanwhile", self.replaced.join(", ")));
        }

        let is_replaced = |sst: &Sst| ids.contains(sst.id.as_str());
        let window = next.window(self.window);
        let first = window.ssts.iter().position(is_replaced).unwrap_or(0);
        for start in self.joins.iter().chain([&self.window]) {
            next.window(*start).ssts.retain(|sst| !is_replaced(sst));
        }
        if !self.held.is_empty() {
            // A multi-window file may be listed in a window that was rebuilt and no longer uses it.
            for index in 0..next.windows.len() {
                // Other windows stay shared with the version before.
                if next.windows[index].ssts.iter().any(is_replaced) {
                    next.windows[index].ssts.retain(|sst| !is_replaced(sst));
                }
            }
        }

        let first = if self.joins.is_empty() { first } else { 0 };
        next.window(self.window).ssts.splice(first..first, self.ssts.iter().cloned());
        Ok(())
    }

    /// The SSTs that the merge wrote.
    fn written(&self) -> impl Iterator<Item = &Sst> {
        self.ssts.iter().filter(|sst| !self.replaced.contains(&sst.id))
    }
}

impl Compacted {
    /// The SSTs that the compaction wrote.
    pub fn written(&self) -> impl Iterator<Item = &Sst> {
        self.replacements.iter().flat_map(Replacement::written)
    }

    /// The conflict, if an edit made against `base` cannot be applied to `version`: looser rules, or a new tombstone
    /// on newer cells, would show cells that the compaction removed.
    pub(crate) fn may_rebase(&self, version: &Version, base: u64) -> Result<(), String> {
        if version.table.gc != self.gc {
            return Err("its garbage-collection rules changed".to_owned());
        }
        match version.tombstones.iter().find(|tombstone| tombstone.version > base) {
            Some(tombstone) => Err(format!("version {} deleted {}", tombstone.version, tombstone.target)),
            None => Ok(()),
        }
    }

    /// Applies the replacements to `next`. Their SSTs stay older than all appended since.
    pub(crate) fn put(&self, next: &mut Version) -> Result<(), String> {
        self.replacements.iter().try_for_each(|replacement| replacement.put(next))?;
        next.gc_watermark = Some(next.gc_watermark.map_or(self.now, |gc_watermark| gc_watermark.max(self.now)));
        Ok(())
    }
}

/// The windows of the multi-window files among `ssts`.
pub fn held_windows<'a>(ssts: impl Iterator<Item = &'a Sst>) -> Vec<i64> {
    let windows: BTreeSet<i64> = ssts
        .filter_map(|sst| sst.multi_window.as_ref())
        .flat_map(|multi_window| &multi_window.windows)
        .copied()
        .collect();
    windows.into_iter().collect()
}
