//! What a compaction changes of a version.

use std::collections::BTreeMap;

use crate::version::{Sst, Version};

/// SSTs put in the place of others.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Compacted {
    /// By window: the ids of the SSTs that go, and those that take their place, by key. Without any a
    /// window keeps its days, and holds nothing.
    pub windows: BTreeMap<i64, (Vec<String>, Vec<Sst>)>,
    /// Logical time at which rules were judged.
    pub now: i64,
    /// The rules.
    pub gc: BTreeMap<String, String>,
}

impl Compacted {
    /// The files it wrote.
    pub fn written(&self) -> impl Iterator<Item = &Sst> {
        self.windows.values().flat_map(|(_, written)| written)
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
        for (start, (replaced, written)) in &self.windows {
            let window = next.window(*start);
            let there = |id: &String| window.ssts.iter().any(|sst| sst.id == *id);
            if let Some(gone) = replaced.iter().find(|id| !there(id)) {
                return Err(format!("SST {gone} was replaced meanwhile"));
            }
            window.ssts.retain(|sst| !replaced.contains(&sst.id));
            window.ssts.splice(0..0, written.iter().cloned());
        }
        next.collected = Some(next.collected.map_or(self.now, |collected| collected.max(self.now)));
        Ok(())
    }
}
