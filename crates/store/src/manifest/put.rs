//! Put of a manifest: creates it if its name is free, and resolves the outcome.
//!
//! A vacuum may have removed the manifest of the same number, so that its name is free again although newer versions
//! exist. It removes manifests in ascending order, so the one before is missing too: the put looks for it before and
//! after.
//!
//! A writer whose reply was lost may commit the same edit again. Its SSTs are then part of the table, and the second
//! commit must neither add nor remove them.

use std::collections::HashSet;

use crate::error::{Result, StoreError};
use crate::manifest;
use crate::manifest::store::ManifestStore;
use crate::manifest::{Manifest, ManifestDelta};
use crate::version::{Origin, Version, VersionEdit};

/// Outcome of putting a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PutOutcome {
    /// It is a version of the table.
    Committed,
    /// Its name was taken, by another manifest or by this one in a try whose reply was lost.
    NameTaken,
    /// It was not put, or removed again: newer versions do not follow it, because vacuum had removed another manifest
    /// of this number.
    Stale,
    /// The outcome can no longer be determined.
    Unknown,
}

impl ManifestStore {
    /// Puts the manifest of `next`, which follows `base`, if its name is free. The origin of `next` is set if it is
    /// committed; `base` is read again if its own is not known.
    pub(crate) fn put(&self, base: &mut Version, next: &mut Version) -> Result<PutOutcome> {
        let path = self.path(next.number);
        let (bytes, checksum) =
            self.encode(base, next)?.map_err(|reason| StoreError::Manifest { path: path.clone(), reason })?;

        // A free number is really new only while the manifest before it exists.
        if base.number > 0 && !self.has(base.number)? {
            return Ok(PutOutcome::Stale);
        }
        if !self.blobs.create_new(&path, &bytes)? {
            return Ok(PutOutcome::NameTaken);
        }

        let outcome = self.resolve_put(base, next, &checksum)?;
        match outcome {
            PutOutcome::Committed => {
                let checkpoint = if base.number == 0 { next.number } else { base.origin.checkpoint };
                next.origin = Origin { manifest: checksum, checkpoint };
            }
            PutOutcome::Stale => self.blobs.delete(&path)?,
            PutOutcome::NameTaken | PutOutcome::Unknown => {}
        }

        Ok(outcome)
    }

    /// Encodes the manifest of `next`; returns it with its checksum. The first is a full manifest, the others are
    /// deltas.
    fn encode(&self, base: &mut Version, next: &Version) -> Result<std::result::Result<(Vec<u8>, String), String>> {
        if base.number == 0 {
            return Ok(manifest::encode_full(next));
        }
        if base.origin.manifest.is_empty() {
            // Not read from a manifest, so its checksum is unknown.
            *base = self.version(base.number)?;
        }
        Ok(manifest::encode_delta(&ManifestDelta::between(base, &base.origin.manifest, next)))
    }

    /// Resolves the outcome of the manifest of `next`, just created after `base`.
    fn resolve_put(&self, base: &Version, next: &Version, checksum: &str) -> Result<PutOutcome> {
        let number = next.number;
        // The manifest before may be another one, of a writer that is about to take it back.
        if number > 1 && self.checksum(base.number)?.as_ref() == Some(&base.origin.manifest) {
            return Ok(PutOutcome::Committed);
        }

        let newest = self.latest_now()?.map(|newest| (newest.number, newest.commit));
        match newest {
            Some((newest, commit)) if newest == number && commit == next.commit => return Ok(PutOutcome::Committed),
            Some((newest, _)) if newest > number => {}
            // It was removed after the put, or nothing followed it.
            _ => return Ok(PutOutcome::Unknown),
        }

        Ok(match self.delta(number + 1)? {
            Some((delta, _)) if delta.before == checksum => PutOutcome::Committed,
            Some(_) => PutOutcome::Stale,
            // The next manifest was removed before the put; otherwise this one would be gone, too.
            None if self.checksum(number)?.as_deref() == Some(checksum) => PutOutcome::Stale,
            None => PutOutcome::Unknown,
        })
    }

    /// Version `number`, if `commit` created it, in a try whose reply was lost.
    pub(crate) fn find_own_commit(&self, number: u64, commit: &str) -> Result<Option<Version>> {
        let is_own = match self.read(number) {
            Ok((Manifest::Full(version), _)) => version.commit == commit,
            Ok((Manifest::Delta(delta), _)) => delta.commit() == commit,
            // Vacuum has removed it after many later commits, or another writer took it back.
            Err(StoreError::Vacuumed { .. } | StoreError::NoVersion { .. }) => false,
            Err(error) => return Err(error),
        };
        if is_own { self.version(number).map(Some) } else { Ok(None) }
    }

    /// The version up to `newest` that committed `edit`: the first that names an SST of the edit, since SST ids are
    /// unique. An edit without SSTs is never found.
    pub(crate) fn find_prior_commit(&self, edit: &VersionEdit, newest: &Version) -> Result<Option<Version>> {
        let written: HashSet<&str> = edit.written().map(|sst| sst.id.as_str()).collect();
        if written.is_empty() || newest.number == 0 || tidetable_sstable::failpoint!(ForgetPriorCommit) {
            return Ok(None);
        }

        // Vacuumed versions cannot be searched.
        let oldest = self.version_numbers()?.first().copied().unwrap_or(newest.number);
        let mut found = None;
        self.walk(oldest.max(edit.base + 1).min(newest.number), newest.number, |version| {
            if found.is_none() && version.ssts().any(|sst| written.contains(sst.id.as_str())) {
                found = Some(version.clone());
            }
            Ok(())
        })?;
        Ok(found)
    }
}
