//! Applies an edit to a version.

use crate::version::Tombstone;
use crate::version::edit::VersionEdit;
use crate::version::inputs::put_named;
use crate::version::invariants;
use crate::version::sst::Sst;
use crate::version::state::Version;

impl Version {
    /// The next version, or the conflict. An append applies to any version that does not hold its inputs, which get
    /// the next sequence numbers; a compaction to any version that has its SSTs under the same rules and tombstones;
    /// a rebuild or a delete only to the version it was made against.
    ///
    /// # Errors
    /// The reason for [`crate::StoreError::Conflict`].
    pub fn apply(&self, edit: &VersionEdit, commit: &str, now: i64) -> Result<Self, String> {
        if edit.base != self.number {
            self.may_rebase(edit)?;
        }

        let mut next = self.clone();
        next.number += 1;
        commit.clone_into(&mut next.commit);
        if next.table_uuid.is_empty() {
            commit.clone_into(&mut next.table_uuid);
        }

        // At an earlier logical time, removed cells would not count as expired.
        next.gc_watermark = self.gc_watermark.filter(|_| edit.reset.is_none());
        next.now = next.gc_watermark.map_or(now, |gc_watermark| now.max(gc_watermark));
        if edit.vacuum_watermark.is_some() {
            // It changes no answer.
            next.vacuum_watermark = self.vacuum_watermark.max(edit.vacuum_watermark);
            next.now = self.now;
        }

        if let Some(gc) = &edit.gc {
            // New rules may show or hide any cell.
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
        next.remove_ssts(edit)?;
        next.put_ssts(edit);
        next.put_tombstones(edit);

        invariants::check_next(self, &next)?;
        Ok(next)
    }

    /// Adds and replaces inputs and names.
    fn put_inputs(&mut self, edit: &VersionEdit) {
        let (mut inputs, mut names) = (edit.inputs.clone(), edit.names.clone());
        if edit.reset.is_none() && edit.base != self.number.saturating_sub(1) {
            self.give_later_seqnos(&mut inputs, &mut names);
        }

        // A path is in one of the two lists only.
        let mut no_inputs = edit.removed.clone();
        no_inputs.extend(edit.names.iter().map(|name| name.path.clone()));
        put_named(&mut self.inputs, &no_inputs, inputs);

        let mut no_names = Vec::new();
        if !self.names.is_empty() {
            no_names.clone_from(&edit.removed);
            no_names.extend(edit.inputs.iter().map(|input| input.path.clone()));
        }
        put_named(&mut self.names, &no_names, names);
    }

    /// Removes damaged SSTs from their windows.
    fn remove_ssts(&mut self, edit: &VersionEdit) -> Result<(), String> {
        for (start, ids) in &edit.removed_ssts {
            let window = self.window(*start);
            if let Some(gone) = ids.iter().find(|id| !window.ssts.iter().any(|sst| sst.id == **id)) {
                return Err(format!("SST {gone} was replaced meanwhile"));
            }
            window.ssts.retain(|sst| !ids.contains(&sst.id));
        }
        Ok(())
    }

    /// Empties the rebuilt windows, adds SSTs, and notes which days change.
    fn put_ssts(&mut self, edit: &VersionEdit) {
        let number = self.number;
        let mut seqno = self.next_seqno();
        for start in &edit.rebuilt {
            self.window(*start);
        }
        for index in 0..self.windows.len() {
            // Only changed windows are copied; the others stay shared with the version before.
            if self.windows[index].has_rows_of(&edit.rebuilt) {
                self.windows[index].leave(&edit.rebuilt);
            }
        }

        for (start, ssts) in &edit.ssts {
            for sst in ssts {
                self.window(*start).ssts.push(Sst { seqno, ..sst.clone() });
                seqno += 1;
            }
        }
        for (start, days) in &edit.days {
            let window = self.window(*start);
            window.days.extend(days.iter().map(|day| (*day, number)));
        }
    }

    /// Adds tombstones, older than all inputs and SSTs that come later.
    fn put_tombstones(&mut self, edit: &VersionEdit) {
        for target in &edit.deletes {
            self.tombstones.push(Tombstone {
                target: target.clone(),
                input_seqno: self.next_input_seqno(),
                seqno: self.next_seqno(),
                version: self.number,
                now: self.now,
            });
        }
    }
}
