//! What a compaction changes of a version.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::version::sst::Sst;
use crate::version::state::Version;

/// SSTs put in the place of others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Compacted {
    /// What takes the place of what.
    pub replacements: Vec<Replacement>,
    /// Logical time at which rules were judged.
    pub now: i64,
    /// The rules.
    pub gc: BTreeMap<String, String>,
}

/// The SSTs of one merge.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replacement {
    /// Start of their window, or of the first that they join.
    pub window: i64,
    /// Starts of the windows that they join, if they do, ascending.
    pub joins: Vec<i64>,
    /// Starts of the windows that those that go hold together, ascending: if one was built anew meanwhile, they are
    /// others.
    pub held: Vec<i64>,
    /// Ids of those that go; one after the other in the window.
    pub replaced: Vec<String>,
    /// Those that take their place, by key. One of the replaced may be among them, with another order. Without
    /// any the window keeps its days.
    pub ssts: Vec<Sst>,
}

impl Replacement {
    fn put(&self, next: &mut Version) -> Result<(), String> {
        let ids: HashSet<&str> = self.replaced.iter().map(String::as_str).collect();
        let there: HashSet<&str> = next.ssts().map(|sst| sst.id.as_str()).collect();
        if let Some(gone) = ids.iter().find(|id| !there.contains(*id)) {
            return Err(format!("SST {gone} was replaced meanwhile"));
        }
        if self.held != held_windows(next.ssts().filter(|sst| ids.contains(sst.id.as_str()))) {
            return Err(format!("a window of SST {} was built anew meanwhile", self.replaced.join(", ")));
        }
        let window = next.window(self.window);
        let at = window.ssts.iter().position(|sst| ids.contains(sst.id.as_str())).unwrap_or(0);
        for start in self.joins.iter().chain([&self.window]) {
            next.window(*start).ssts.retain(|sst| !ids.contains(sst.id.as_str()));
        }
        if !self.held.is_empty() {
            // A file may stand in a window that has left it.
            let is_one = |sst: &Sst| ids.contains(sst.id.as_str());
            for at in 0..next.windows.len() {
                // The others stay shared with the version before.
                if next.windows[at].ssts.iter().any(is_one) {
                    next.windows[at].ssts.retain(|sst| !is_one(sst));
                }
            }
        }
        let at = if self.joins.is_empty() { at } else { 0 };
        next.window(self.window).ssts.splice(at..at, self.ssts.iter().cloned());
        Ok(())
    }

    /// The files that the merge wrote.
    fn written(&self) -> impl Iterator<Item = &Sst> {
        self.ssts.iter().filter(|sst| !self.replaced.contains(&sst.id))
    }
}

impl Compacted {
    /// The files it wrote.
    pub fn written(&self) -> impl Iterator<Item = &Sst> {
        self.replacements.iter().flat_map(Replacement::written)
    }

    /// Why it cannot come after `version`, if it was worked out against `base`: cells that were taken out
    /// would be shown by looser rules, or once a drop hid what is newer.
    pub(crate) fn may_rebase(&self, version: &Version, base: u64) -> Result<(), String> {
        if version.table.gc != self.gc {
            return Err("its garbage-collection rules are others now".to_owned());
        }
        match version.drops.iter().find(|drop| drop.version > base) {
            Some(drop) => Err(format!("version {} dropped {}", drop.version, drop.target)),
            None => Ok(()),
        }
    }

    /// Puts its files into `next`. They stay older than all that was appended since.
    pub(crate) fn put(&self, next: &mut Version) -> Result<(), String> {
        self.replacements.iter().try_for_each(|replacement| replacement.put(next))?;
        next.collected = Some(next.collected.map_or(self.now, |collected| collected.max(self.now)));
        Ok(())
    }
}

/// The windows that files of several hold together.
pub(crate) fn held_windows<'a>(ssts: impl Iterator<Item = &'a Sst>) -> Vec<i64> {
    let windows: BTreeSet<i64> =
        ssts.filter_map(|sst| sst.joined.as_ref()).flat_map(|joined| &joined.windows).copied().collect();
    windows.into_iter().collect()
}
