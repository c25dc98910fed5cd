//! Commit: creates the next manifest if its name is free (compare-and-set), after fencing against vacuum.
//!
//! A vacuum may have removed files of a commit whose writer was suspended. So every version records which files may
//! be gone ([`Version::vacuum_watermark`]), and a later commit checks its own.

pub(crate) mod limits;

use std::collections::HashSet;
use std::ops::ControlFlow;

use crate::commit::limits::check_limits;
use crate::error::{Result, StoreError};
use crate::ids::Ids;
use crate::manifest::put::PutOutcome;
use crate::table::Table;
use crate::version::{Version, VersionEdit};

/// Attempts to commit after concurrent commits before giving up.
const REBASES: usize = 100;

impl Table {
    /// Commits `edit` after the newest version. The commit point is the creation of the manifest. After concurrent
    /// commits the edit is rebased, where that is sound.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if it is not, [`StoreError::Fenced`] if vacuum may have removed files that it names,
    /// [`StoreError::SumOverflow`] or [`StoreError::RowTooLarge`] if a row would exceed a limit: then nothing was
    /// committed. [`StoreError::OutcomeUnknown`] if vacuum removed the version before its commit was confirmed.
    pub fn commit(&self, mut base: Version, edit: &VersionEdit, ids: &dyn Ids, now: i64) -> Result<Version> {
        let id = format!("{:032x}", ids.next());
        let planned = (base.number == edit.base).then(|| base.clone());
        let commit = Commit { table: self, edit, planned, id, now };
        for _ in 0..REBASES {
            base = match commit.attempt(&mut base)? {
                ControlFlow::Break(committed) => return Ok(committed),
                ControlFlow::Continue(refused) => commit.next_base(&base, refused)?,
            };
        }
        Err(commit.conflict(format!("{REBASES} other commits were first")))
    }
}

/// A commit in progress.
struct Commit<'a> {
    table: &'a Table,
    edit: &'a VersionEdit,
    /// The version that the edit was made against, if the caller has it.
    planned: Option<Version>,
    /// Id of the commit.
    id: String,
    now: i64,
}

impl Commit<'_> {
    /// Tries to commit after `base`: returns the committed version, or the refused one if another commit was first.
    fn attempt(&self, base: &mut Version) -> Result<ControlFlow<Version, Version>> {
        let manifests = self.table.manifests();
        let rebased = self.rebase(base)?;
        let mut next = match base.apply(rebased.as_ref().unwrap_or(self.edit), &self.id, self.now) {
            Ok(next) => next,
            // The conflict may be with an earlier try of the caller, whose reply was lost.
            Err(reason) => {
                let Some(prior) = manifests.find_prior_commit(self.edit, base)? else {
                    self.discard_unnamed(base);
                    return Err(self.conflict(reason));
                };
                return Ok(ControlFlow::Break(prior));
            }
        };
        let checked = self.fence(base).and_then(|()| check_limits(self.table, base, &next, self.edit));
        checked.inspect_err(|_| self.discard_unnamed(base))?;
        match manifests.put(base, &mut next)? {
            PutOutcome::Committed => {
                manifests.checkpoint_if_due(&mut next);
                Ok(ControlFlow::Break(next))
            }
            PutOutcome::NameTaken => Ok(match manifests.find_own_commit(next.number, &self.id)? {
                Some(own) => ControlFlow::Break(own),
                None => ControlFlow::Continue(next),
            }),
            PutOutcome::Stale => Ok(ControlFlow::Continue(next)),
            PutOutcome::Unknown => {
                Err(StoreError::OutcomeUnknown { table: self.table.name().to_owned(), number: next.number })
            }
        }
    }

    /// The edit rebased onto `base`, if `base` is newer than the edit's own base and that is sound; `None` to apply
    /// it as it is, where [`Version::apply`] refuses conflicts.
    fn rebase(&self, base: &Version) -> Result<Option<VersionEdit>> {
        let edit = self.edit;
        let is_load = edit.deletes.is_empty() && edit.removed_ssts.is_empty() && edit.compacted.is_none();
        if base.number == edit.base || edit.base == 0 || !is_load {
            return Ok(None);
        }
        let read = match self.planned {
            Some(_) => None,
            None => match self.table.version(edit.base) {
                Ok(read) => Some(read),
                Err(StoreError::Vacuumed { .. } | StoreError::NoVersion { .. }) => return Ok(None),
                Err(error) => return Err(error),
            },
        };
        Ok(self.planned.as_ref().or(read.as_ref()).and_then(|planned| base.rebased(planned, edit).ok()))
    }

    /// Refuses new SSTs that a vacuum before `base` may have removed.
    fn fence(&self, base: &Version) -> Result<()> {
        let Some(cutoff) = base.vacuum_watermark else { return Ok(()) };
        for sst in self.edit.written() {
            let path = self.table.sst_path(&sst.id);
            let there = self.table.blobs().stat(&path)?;
            let may_go = there.is_none_or(|found| found.modified.is_some_and(|modified| modified < cutoff));
            // Files that a version names are never removed.
            if may_go && !base.ssts().any(|named| named.id == sst.id) {
                return Err(StoreError::Fenced { table: self.table.name().to_owned(), path });
            }
        }
        Ok(())
    }

    /// The base of the next try, after `refused` could not follow `base`.
    fn next_base(&self, base: &Version, refused: Version) -> Result<Version> {
        let Some(latest) = self.table.latest()? else { return Ok(Version::empty(refused.table)) };
        if self.edit.reset.is_none() && latest.table.layout != base.table.layout {
            // Its cells were encoded for another layout.
            self.discard_unnamed(&latest);
            return Err(self.conflict("its layout changed".to_owned()));
        }
        if latest.table.job != base.table.job {
            return Err(StoreError::Owned { table: self.table.name().to_owned(), owner: latest.table.job });
        }
        Ok(latest)
    }

    /// Removes the SSTs of the edit, except those that `version` names.
    fn discard_unnamed(&self, version: &Version) {
        let new: HashSet<&str> = self.edit.written().map(|sst| sst.id.as_str()).collect();
        let named: HashSet<&str> = version.ssts().map(|sst| sst.id.as_str()).filter(|id| new.contains(id)).collect();
        self.table.ssts().delete(self.edit.written().filter(|sst| !named.contains(sst.id.as_str())));
    }

    fn conflict(&self, reason: String) -> StoreError {
        StoreError::Conflict { table: self.table.name().to_owned(), reason }
    }
}
