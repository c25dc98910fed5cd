//! Committing: the next manifest is put if its name is free, after checking that what it names is there to stay.
//!
//! Two things could undo that. A vacuum may have removed files that the commit names, while its writer slept: so every
//! version says which files may be gone ([`Version::vacuumed`]), and a commit after it checks its own. And a vacuum may
//! have removed the manifest of the very number, so that its name is free again, though newer versions are there:
//! vacuum removes manifests in ascending order, so the very one before it is then gone too, and is looked for before and
//! afterwards.

pub(crate) mod limits;
pub(crate) mod prior;

use std::collections::HashSet;

use crate::error::{Result, StoreError};
use crate::ids::Ids;
use crate::manifest;
use crate::manifest::line::CHECKPOINT_EVERY;
use crate::manifest::{Manifest, Step};
use crate::table::Table;
use crate::version::Compacted;
use crate::version::{Origin, Sst, Version, VersionEdit};

/// Attempts to put a commit after those of others before giving up.
const REBASES: usize = 100;

/// What became of a manifest that was put.
enum Put {
    /// It is part of the table.
    Committed,
    /// Newer versions do not go upon it: its name was that of a manifest that vacuum removed.
    Stale,
    /// Nobody can tell any more.
    Unknown,
}

impl Table {
    /// Commits `edit` after the newest version: the commit point is the name of the manifest. If
    /// others commit at the same time, it is put after theirs where that is sound.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if it is not, [`StoreError::Fenced`] if vacuum has removed files that it names, and
    /// [`StoreError::SumOverflow`] or [`StoreError::RowTooLarge`] if a row would go over a limit together with what is
    /// there; then nothing was committed. [`StoreError::OutcomeUnknown`] if so much came after it that
    /// nobody can tell.
    pub fn commit(&self, base: Version, edit: &VersionEdit, ids: &dyn Ids, now: i64) -> Result<Version> {
        let commit = format!("{:032x}", ids.next());
        let planned = (base.number == edit.base).then(|| base.clone());
        let mut base = base;
        for _ in 0..REBASES {
            let conflict = |reason| StoreError::Conflict { table: self.name().to_owned(), reason };
            let rebased = self.rebased(&base, planned.as_ref(), edit)?;
            let mut next = match base.apply(rebased.as_ref().unwrap_or(edit), &commit, now) {
                Ok(next) => next,
                Err(reason) => {
                    // Perhaps because of itself: an earlier try of the caller, whose answer was lost.
                    let landed = self.landed(edit, &base)?;
                    if landed.is_none() {
                        self.discard_but(edit, &base);
                    }
                    return landed.ok_or_else(|| conflict(reason));
                }
            };
            let checked = self.fence(&base, edit).and_then(|()| self.check_limits(&base, &next, edit));
            if let Err(error) = checked {
                self.discard_but(edit, &base);
                return Err(error);
            }
            let path = self.manifest_path(next.number);
            let (bytes, checksum) = self
                .encoded(&mut base, &next)?
                .map_err(|reason| StoreError::Manifest { path: path.clone(), reason })?;
            // A number is only free for good while the one before it is there.
            let is_old = base.number > 0 && !self.has_manifest(base.number)?;
            if !is_old && self.blobs().create_new(&path, &bytes)? {
                match self.settle(&base, &next, &checksum)? {
                    Put::Committed => {
                        let checkpoint = if base.number == 0 { next.number } else { base.origin.checkpoint };
                        next.origin = Origin { manifest: checksum, checkpoint };
                        self.checkpoint_if_due(&mut next);
                        return Ok(next);
                    }
                    Put::Stale => self.blobs().delete(&path)?,
                    Put::Unknown => {
                        let (table, number) = (self.name().to_owned(), next.number);
                        return Err(StoreError::OutcomeUnknown { table, number });
                    }
                }
            } else if !is_old && let Some(taken) = self.own(next.number, &commit)? {
                // By ourselves, in a try whose reply was lost.
                return Ok(taken);
            }
            base = match self.latest()? {
                // Its cells would be read by another layout.
                Some(latest) if edit.reset.is_none() && latest.table.layout != base.table.layout => {
                    self.discard_but(edit, &latest);
                    return Err(conflict("its layout is another now".to_owned()));
                }
                Some(latest) if latest.table.job != base.table.job => {
                    return Err(StoreError::Owned { table: self.name().to_owned(), owner: latest.table.job });
                }
                Some(latest) => latest,
                None => Version::empty(next.table),
            };
        }
        let reason = format!("{REBASES} others were faster");
        Err(StoreError::Conflict { table: self.name().to_owned(), reason })
    }

    /// What `edit` must be to come after `base`, if it is a newer version than the one it was worked out against and that is
    /// sound; `None` if it is to be applied as it is, and refused where that is not sound.
    fn rebased(&self, base: &Version, planned: Option<&Version>, edit: &VersionEdit) -> Result<Option<VersionEdit>> {
        let is_load = edit.drops.is_empty() && edit.taken_out.is_empty() && edit.compacted.is_none();
        if base.number == edit.base || edit.base == 0 || !is_load {
            return Ok(None);
        }
        let read = match planned {
            Some(_) => None,
            None => match self.version(edit.base) {
                Ok(read) => Some(read),
                Err(StoreError::Vacuumed { .. } | StoreError::NoVersion { .. }) => return Ok(None),
                Err(error) => return Err(error),
            },
        };
        Ok(planned.or(read.as_ref()).and_then(|planned| base.rebased(planned, edit).ok()))
    }

    /// The bytes of the manifest of `next`, and its checksum. The first is a whole version, the others are steps.
    fn encoded(&self, base: &mut Version, next: &Version) -> Result<std::result::Result<(Vec<u8>, String), String>> {
        if base.number == 0 {
            return Ok(manifest::encode_whole(next));
        }
        if base.origin.manifest.is_empty() {
            // It was made by hand and not read.
            *base = self.version(base.number)?;
        }
        Ok(manifest::encode_step(&Step::between(base, &base.origin.manifest, next)))
    }

    /// The version of `number`, if it is of this commit.
    fn own(&self, number: u64, commit: &str) -> Result<Option<Version>> {
        let taken = match self.manifest(number) {
            Ok((Manifest::Whole(version), _)) => version.commit == commit,
            Ok((Manifest::Step(step), _)) => step.commit() == commit,
            // So much came after it that it is not there any more; or it was by one that was at it at the same time and
            // did not finish.
            Err(StoreError::Vacuumed { .. } | StoreError::NoVersion { .. }) => false,
            Err(error) => return Err(error),
        };
        if taken { self.version(number).map(Some) } else { Ok(None) }
    }

    /// Refuses new SSTs that a vacuum before `base` may have removed.
    fn fence(&self, base: &Version, edit: &VersionEdit) -> Result<()> {
        let Some(cutoff) = base.vacuumed else { return Ok(()) };
        for sst in written(edit) {
            let path = self.sst_path(&sst.id);
            let there = self.blobs().stat(&path)?;
            let may_go = there.is_none_or(|found| found.modified.is_some_and(|modified| modified < cutoff));
            // What a version names is never removed.
            if may_go && !base.ssts().any(|named| named.id == sst.id) {
                return Err(StoreError::Fenced { table: self.name().to_owned(), path });
            }
        }
        Ok(())
    }

    /// What became of the manifest that was just put upon `base`.
    fn settle(&self, base: &Version, next: &Version, checksum: &str) -> Result<Put> {
        let number = next.number;
        // A manifest of the number before may be another one, of a writer that is about to take it back.
        if number > 1 && self.checksum(base.number)?.as_ref() == Some(&base.origin.manifest) {
            return Ok(Put::Committed);
        }
        let newest = self.latest()?.map(|newest| (newest.number, newest.commit));
        match newest {
            Some((newest, commit)) if newest == number && commit == next.commit => return Ok(Put::Committed),
            Some((newest, _)) if newest > number => {}
            // It went after it was put, or never led anywhere.
            _ => return Ok(Put::Unknown),
        }
        Ok(match self.step(number + 1)? {
            Some((step, _)) if step.before == checksum => Put::Committed,
            Some(_) => Put::Stale,
            // The next one went before ours was put, or ours would have gone with it.
            None if self.checksum(number)?.as_deref() == Some(checksum) => Put::Stale,
            None => Put::Unknown,
        })
    }

    /// A version is committed without its checkpoint too: the next commit tries again.
    fn checkpoint_if_due(&self, version: &mut Version) {
        if version.number - version.origin.checkpoint < CHECKPOINT_EVERY {
            return;
        }
        match self.write_checkpoint(version) {
            Ok(()) => version.origin.checkpoint = version.number,
            Err(error) => tracing::warn!(%error, "a checkpoint was not written"),
        }
    }

    /// Removes the SSTs of an edit that will not be committed. What cannot be removed is named by no
    /// version, and harmless.
    pub fn discard(&self, edit: &VersionEdit) {
        self.remove_ssts(written(edit));
    }

    /// The same, but for those that a version names all the same.
    fn discard_but(&self, edit: &VersionEdit, version: &Version) {
        let new: HashSet<&str> = written(edit).map(|sst| sst.id.as_str()).collect();
        let named: HashSet<&str> = version.ssts().map(|sst| sst.id.as_str()).filter(|id| new.contains(id)).collect();
        self.remove_ssts(written(edit).filter(|sst| !named.contains(sst.id.as_str())));
    }

    fn remove_ssts<'a>(&self, ssts: impl Iterator<Item = &'a Sst>) {
        for sst in ssts {
            if let Err(error) = self.blobs().delete(&self.sst_path(&sst.id)) {
                tracing::warn!(%error, "an unused file stays");
            }
        }
    }
}

/// The SSTs that an edit brings.
fn written(edit: &VersionEdit) -> impl Iterator<Item = &Sst> {
    edit.ssts.values().flatten().chain(edit.compacted.iter().flat_map(Compacted::written))
}
