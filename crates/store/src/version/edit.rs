//! Version edit: the change of a commit.

use std::collections::{BTreeMap, BTreeSet};

use crate::version::DeleteTarget;
use crate::version::compacted::Compacted;
use crate::version::inputs::{Input, InputName};
use crate::version::sst::Sst;
use crate::version::state::TableIdentity;

/// The change that a commit applies to a version.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VersionEdit {
    /// Empties the table and gives it this identity: all inputs and SSTs are removed.
    pub reset: Option<TableIdentity>,
    /// New garbage-collection rules by family, in cbt's notation; all days may change.
    pub gc: Option<BTreeMap<String, String>>,
    /// Paths of inputs whose rows the rebuilt windows no longer hold, and of names that others replace.
    pub removed: Vec<String>,
    /// Inputs to add, or to replace by path.
    pub inputs: Vec<Input>,
    /// Names without rows to add, or to replace by path.
    pub names: Vec<InputName>,
    /// Windows whose SSTs are all replaced by those of `ssts`.
    pub rebuilt: Vec<i64>,
    /// SSTs to add to their windows, older data first. The commit sets their sequence numbers.
    pub ssts: BTreeMap<i64, Vec<Sst>>,
    /// Deletes. The commit sets their sequence numbers.
    pub deletes: Vec<DeleteTarget>,
    /// SSTs that a compaction replaces by others.
    pub compacted: Option<Compacted>,
    /// Damaged SSTs to remove from their windows, by id: their cells are lost.
    pub removed_ssts: BTreeMap<i64, Vec<String>>,
    /// Cutoff of a vacuum, see `Version::vacuum_watermark`.
    pub vacuum_watermark: Option<i64>,
    /// UTC days whose cells change, by window.
    pub days: BTreeMap<i64, BTreeSet<i32>>,
    /// The version the edit was made against.
    pub base: u64,
}

impl VersionEdit {
    /// Whether committing it would change nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self { base: self.base, ..Self::default() }
    }

    /// What the commit does to the table, in one word, for the log.
    pub(crate) fn kind(&self) -> &'static str {
        if self.reset.is_some() {
            "rebuild"
        } else if self.compacted.is_some() {
            "compaction"
        } else if self.vacuum_watermark.is_some() {
            "vacuum"
        } else if !self.removed_ssts.is_empty() {
            "repair"
        } else if !self.deletes.is_empty() {
            "delete"
        } else if self.is_empty() {
            "nothing"
        } else {
            "load"
        }
    }

    /// Starts of the windows whose SSTs or cells it changes, in microseconds since the epoch, ascending.
    pub(crate) fn windows(&self) -> BTreeSet<i64> {
        let replaced = self.compacted.iter().flat_map(|compacted| &compacted.replacements);
        let mut windows: BTreeSet<i64> = replaced.map(|replacement| replacement.window).collect();
        windows.extend(&self.rebuilt);
        windows.extend(self.ssts.keys());
        windows.extend(self.removed_ssts.keys());
        windows.extend(self.days.keys());

        windows
    }

    /// The SSTs that were written for it.
    pub(crate) fn written(&self) -> impl Iterator<Item = &Sst> {
        self.ssts.values().flatten().chain(self.compacted.iter().flat_map(Compacted::written))
    }
}
