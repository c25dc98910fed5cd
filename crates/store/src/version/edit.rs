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
    /// New garbage-collection rules.
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

    /// The SSTs that were written for it.
    pub(crate) fn written(&self) -> impl Iterator<Item = &Sst> {
        self.ssts.values().flatten().chain(self.compacted.iter().flat_map(Compacted::written))
    }
}
