//! Commit: creates the manifest of the next number if that name is free (put-if-absent), after fencing against vacuum.
//!
//! Vacuum removes old files that no version names. Among them may be new SSTs of a writer that was suspended before its
//! commit. So a vacuum first commits its cutoff ([`Version::vacuum_watermark`]), and a later commit is fenced if an SST
//! of it is gone, or was written before the cutoff.

use std::collections::HashSet;
use std::ops::ControlFlow;

use crate::error::{Result, StoreError};
use crate::ids::Ids;
use crate::limits::check_limits;
use crate::log::window_names;
use crate::manifest::put::PutOutcome;
use crate::table::Table;
use crate::version::{Version, VersionEdit};

/// Attempts of a commit, each on a newer base, before it fails with a conflict.
const MAX_ATTEMPTS: usize = 100;

impl Table {
    /// Commits `edit` as the version after `base`, at logical time `now` (microseconds since the epoch). The commit point is
    /// the creation of the manifest. If another commit was first, the edit is rebased onto the newest version, where that
    /// is sound.
    ///
    /// # Errors
    /// Nothing was committed after these: [`StoreError::Conflict`] if the edit cannot be rebased,
    /// [`StoreError::Fenced`] if vacuum may have removed its SSTs, [`StoreError::SumOverflow`],
    /// [`StoreError::RowTooLarge`] or [`StoreError::RowTooLargeAfterDelete`] if a row would exceed a limit, [`StoreError::OwnedByOtherJob`] if
    /// the table now belongs to another job. After [`StoreError::OutcomeUnknown`] the edit may be committed or not:
    /// vacuum removed the version before the commit was confirmed.
    pub fn commit(&self, base: Version, edit: &VersionEdit, ids: &dyn Ids, now: i64) -> Result<Version> {
        let id = format!("{:032x}", ids.next());
        let edit_base = (base.number == edit.base).then(|| base.clone());
        let commit = Commit { table: self, edit, edit_base, id, now };
        let done = commit.upon(base);

        match &done {
            Ok(committed) => self.manifests().committed(committed),
            // What comes next begins from what is there.
            Err(_) => self.manifests().forget_latest(),
        }

        done
    }
}

/// A commit in progress.
struct Commit<'a> {
    table: &'a Table,
    edit: &'a VersionEdit,
    /// The version that the edit was made against, if the caller passed it as the first base.
    edit_base: Option<Version>,
    /// Id of the commit, by which it recognises its own manifest.
    id: String,
    /// Logical time of the commit, microseconds since the epoch.
    now: i64,
}

impl Commit<'_> {
    /// Commits after `base`, or after the version that others have made meanwhile.
    fn upon(&self, mut base: Version) -> Result<Version> {
        for _ in 0..MAX_ATTEMPTS {
            match self.attempt(&mut base)? {
                ControlFlow::Break(committed) => {
                    self.log_commit(&committed);
                    return Ok(committed);
                }
                ControlFlow::Continue(refused) => base = self.next_base(&base, refused)?,
            }
        }

        Err(self.conflict(&base, format!("{MAX_ATTEMPTS} other commits were first")))
    }

    /// Tries to commit after `base`. Breaks with the committed version; continues with the version that was not
    /// committed because another commit was first. May read `base` again, for the checksum of its manifest.
    fn attempt(&self, base: &mut Version) -> Result<ControlFlow<Version, Version>> {
        let manifests = self.table.manifests();
        let rebased = self.rebase(base)?;
        let mut next = match base.apply(rebased.as_ref().unwrap_or(self.edit), &self.id, self.now) {
            Ok(next) => next,
            // The conflict may be with an earlier commit of this edit, whose reply was lost.
            Err(reason) => {
                let Some(prior) = manifests.find_prior_commit(self.edit, base)? else {
                    self.discard_unnamed(base);
                    return Err(self.conflict(base, reason));
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

    /// The edit rebased onto `base`, if `base` is not the version that the edit was made against and rebasing is sound.
    /// `None` to apply the edit as it is: [`Version::apply`] then refuses it if it conflicts.
    fn rebase(&self, base: &Version) -> Result<Option<VersionEdit>> {
        let edit = self.edit;
        let only_loads = edit.deletes.is_empty() && edit.removed_ssts.is_empty() && edit.compacted.is_none();
        if base.number == edit.base || edit.base == 0 || !only_loads {
            return Ok(None);
        }

        let loaded = match self.edit_base {
            Some(_) => None,
            None => match self.table.version(edit.base) {
                Ok(version) => Some(version),
                Err(StoreError::Vacuumed { .. } | StoreError::NoVersion { .. }) => return Ok(None),
                Err(error) => return Err(error),
            },
        };
        let edit_base = self.edit_base.as_ref().or(loaded.as_ref());

        Ok(edit_base.and_then(|edit_base| base.rebased(edit_base, edit).ok()))
    }

    /// Refuses the edit if the latest vacuum, as `base` records it, may have removed one of its SSTs.
    fn fence(&self, base: &Version) -> Result<()> {
        let Some(cutoff) = base.vacuum_watermark else { return Ok(()) };

        let paths: Vec<String> = self.edit.written().map(|sst| self.table.sst_path(&sst.id)).collect();
        let stats = self.table.blobs().stat_all(&paths)?;
        for ((sst, path), stat) in self.edit.written().zip(paths).zip(stats) {
            let may_be_gone = stat.is_none_or(|stat| stat.modified.is_some_and(|modified| modified < cutoff));
            // Vacuum removes no file that a version names.
            if may_be_gone && !base.ssts().any(|named| named.id == sst.id) {
                self.log_fence(base, &sst.id);
                return Err(StoreError::Fenced { table: self.table.name().to_owned(), path });
            }
        }

        Ok(())
    }

    /// The base of the next attempt, after `refused` was not committed on top of `base`.
    fn next_base(&self, base: &Version, refused: Version) -> Result<Version> {
        let Some(latest) = self.table.manifests().latest_now()? else { return Ok(Version::empty(refused.table)) };

        if self.edit.reset.is_none() && latest.table.layout != base.table.layout {
            // The cells of the edit were encoded for another layout.
            self.discard_unnamed(&latest);
            return Err(self.conflict(&latest, "its layout changed".to_owned()));
        }
        if latest.table.job != base.table.job {
            self.discard_unnamed(&latest);
            return Err(StoreError::OwnedByOtherJob { table: self.table.name().to_owned(), owner: latest.table.job });
        }

        self.log_overtaken(&refused, &latest);
        Ok(latest)
    }

    /// Removes the SSTs written for the edit, except those that `version` names.
    fn discard_unnamed(&self, version: &Version) {
        let new: HashSet<&str> = self.edit.written().map(|sst| sst.id.as_str()).collect();
        let named: HashSet<&str> = version.ssts().map(|sst| sst.id.as_str()).filter(|id| new.contains(id)).collect();

        self.table.ssts().delete(self.edit.written().filter(|sst| !named.contains(sst.id.as_str())));
    }

    /// The error for an edit that cannot follow `base`; logs it.
    fn conflict(&self, base: &Version, reason: String) -> StoreError {
        tracing::debug!(
            table = self.table.name(),
            window = self.windows(base),
            reason,
            kind = self.edit.kind(),
            version = base.number,
            "commit_conflict"
        );

        StoreError::Conflict { table: self.table.name().to_owned(), reason }
    }

    fn log_commit(&self, committed: &Version) {
        tracing::debug!(
            table = self.table.name(),
            window = self.windows(committed),
            reason = self.edit.kind(),
            version = committed.number,
            base = self.edit.base,
            inputs = self.edit.inputs.len(),
            ssts = self.edit.written().count(),
            "commit"
        );
    }

    fn log_fence(&self, base: &Version, sst: &str) {
        tracing::debug!(
            table = self.table.name(),
            window = self.windows(base),
            reason = "a vacuum may have removed an SST that was written for it",
            sst,
            version = base.number,
            "commit_fenced"
        );
    }

    fn log_overtaken(&self, refused: &Version, latest: &Version) {
        tracing::debug!(
            table = self.table.name(),
            window = self.windows(latest),
            reason = "another commit was first",
            version = refused.number,
            newest = latest.number,
            "commit_overtaken"
        );
    }

    /// Names of the windows that the edit changes, as `version` cuts them.
    fn windows(&self, version: &Version) -> String {
        window_names(version.table.spec.window, self.edit.windows())
    }
}
