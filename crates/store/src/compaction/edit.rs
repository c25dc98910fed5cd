//! What a compaction changes of a version.

use std::collections::BTreeMap;

use crate::version::{Sst, Version};

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
    /// Start of their window.
    pub window: i64,
    /// Ids of those that go; one after the other in the window.
    pub replaced: Vec<String>,
    /// Those that take their place, by key. One of the replaced may be among them, with another order. Without
    /// any the window keeps its days.
    pub ssts: Vec<Sst>,
}

impl Replacement {
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
        for Replacement { window, replaced, ssts } in &self.replacements {
            let window = next.window(*window);
            let there = |id: &String| window.ssts.iter().any(|sst| sst.id == *id);
            if let Some(gone) = replaced.iter().find(|id| !there(id)) {
                return Err(format!("SST {gone} was replaced meanwhile"));
            }
            let at = window.ssts.iter().position(|sst| replaced.contains(&sst.id)).unwrap_or(0);
            window.ssts.retain(|sst| !replaced.contains(&sst.id));
            window.ssts.splice(at..at, ssts.iter().cloned());
        }
        next.collected = Some(next.collected.map_or(self.now, |collected| collected.max(self.now)));
        Ok(())
    }
}
