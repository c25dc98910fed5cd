//! Rebase: applying an edit to a newer version than its base, where that is sound.

use std::collections::{HashMap, HashSet};

use crate::version::inputs::InputName;
use crate::version::{Input, Version, VersionEdit};

impl Version {
    /// Whether `edit` may be applied to this version, although it was made against another.
    ///
    /// # Errors
    /// The reason for [`crate::StoreError::Conflict`].
    pub(crate) fn may_rebase(&self, edit: &VersionEdit) -> Result<(), String> {
        if let Some(compacted) = &edit.compacted {
            compacted.may_rebase(self, edit.base)?;
        }
        // A delete lists the days it changes, without those of rows added since.
        let exact = !edit.rebuilt.is_empty() || !edit.deletes.is_empty() || !edit.removed_ssts.is_empty();
        if exact || edit.reset.is_some() || !edit.removed.is_empty() {
            return Err(self.is_newer_than(edit));
        }

        let live: HashMap<&str, &Input> = self.inputs.iter().map(|input| (input.path.as_str(), input)).collect();
        let names: HashMap<&str, &InputName> = self.names.iter().map(|name| (name.path.as_str(), name)).collect();
        let hashes: HashSet<u128> = live.values().map(|input| input.hash.0).collect();
        for input in &edit.inputs {
            match live.get(input.path.as_str()) {
                // Only its fingerprint changed. With SSTs, both may have loaded the input: its cells would be stored
                // and summed twice.
                Some(held)
                    if edit.ssts.is_empty()
                        && (held.input_seqno, held.hash, &held.owed)
                            == (input.input_seqno, input.hash, &input.owed) => {}
                None if !names.contains_key(input.path.as_str()) && !hashes.contains(&input.hash.0) => {}
                _ => return Err(loaded_by_both(&input.path)),
            }
        }
        for name in &edit.names {
            let known = names.get(name.path.as_str());
            let differs = known.is_some_and(|known| (known.input_seqno, &known.owed) != (name.input_seqno, &name.owed));
            if live.contains_key(name.path.as_str()) || differs {
                return Err(loaded_by_both(&name.path));
            }
        }

        Ok(())
    }

    /// Rebases `edit` from `planned` onto this version, after concurrent compactions and deletes. The deletes are
    /// made again, for the rebuilt windows.
    ///
    /// # Errors
    /// The reason for [`crate::StoreError::Conflict`]: other changes were committed, or a new input was read, to
    /// which the deletes do not apply.
    pub(crate) fn rebased(&self, planned: &Self, edit: &VersionEdit) -> Result<VersionEdit, String> {
        if !edit.deletes.is_empty() || !edit.removed_ssts.is_empty() || edit.compacted.is_some() {
            return Err(self.is_newer_than(edit));
        }

        let same = (&self.table, &self.inputs, &self.names) == (&planned.table, &planned.inputs, &planned.names);
        let Some((known, since)) = self.tombstones.split_at_checked(planned.tombstones.len()) else {
            return Err(self.is_newer_than(edit));
        };
        if !same || known != planned.tombstones.as_slice() {
            return Err(self.is_newer_than(edit));
        }

        // Without rows of inputs that are older than the deletes, these need not be made again.
        let brings_older_rows = edit.inputs.iter().any(|input| planned.has_other_content(input));
        if edit.reset.is_none() && edit.rebuilt.is_empty() && !brings_older_rows {
            return Ok(VersionEdit { base: self.number, ..edit.clone() });
        }

        let next = planned.next_input_seqno();
        let has_new = edit.inputs.iter().any(|input| input.input_seqno >= next)
            || edit.names.iter().any(|name| name.input_seqno >= next);
        if has_new && !since.is_empty() {
            return Err(self.is_newer_than(edit));
        }

        let again = since.iter().filter(|_| !tidetable_sstable::failpoint!(ForgetDropsMeanwhile));
        let deletes = again.map(|drop| drop.target.clone()).collect();
        Ok(VersionEdit { deletes, base: self.number, ..edit.clone() })
    }

    /// Whether it holds the input of the same sequence number with another content.
    fn has_other_content(&self, input: &Input) -> bool {
        let found = self.inputs.binary_search_by_key(&input.input_seqno, |held| held.input_seqno);
        found.is_ok_and(|index| self.inputs[index].hash != input.hash)
    }

    /// The conflict of an edit with versions that were committed since its base.
    fn is_newer_than(&self, edit: &VersionEdit) -> String {
        format!("version {} is newer than the {} this run read", self.number, edit.base)
    }

    /// Gives new inputs and names the next free sequence numbers: a concurrent commit may have used theirs, and its
    /// cells came first.
    pub(crate) fn give_later_seqnos(&self, inputs: &mut [Input], names: &mut [InputName]) {
        let known: HashSet<&str> = {
            let inputs = self.inputs.iter().map(|input| input.path.as_str());
            inputs.chain(self.names.iter().map(|name| name.path.as_str())).collect()
        };
        let new_inputs = inputs.iter_mut().filter(|input| !known.contains(input.path.as_str()));
        let new_names = names.iter_mut().filter(|name| !known.contains(name.path.as_str()));
        let mut new: Vec<&mut u64> = new_inputs.map(|input| &mut input.input_seqno).collect();
        new.extend(new_names.map(|name| &mut name.input_seqno));

        let first = new.iter().map(|input_seqno| **input_seqno).min().unwrap_or(0);
        let later = self.next_input_seqno().saturating_sub(first);
        new.into_iter().for_each(|input_seqno| *input_seqno += later);
    }
}

/// The conflict of two commits that loaded one input.
fn loaded_by_both(path: &str) -> String {
    format!("{path} was loaded by both")
}
