//! Checkpoints of a table, and the oldest version it keeps.

use std::collections::HashMap;

use bytes::Bytes;
use tidetable_blobs::{ETag, Listed};

use crate::error::{Result, StoreError};
use crate::ids::TABLES;
use crate::manifest;
use crate::manifest::kept::{Kept, Listing, OLDEST, kept_of, numbered};
use crate::manifest::store::ManifestStore;
use crate::version::{Origin, Version};

/// Commits between checkpoints: a reader reads at most as many deltas.
const CHECKPOINT_EVERY: u64 = 32;

impl ManifestStore {
    /// Directory of the checkpoints, inside the store.
    pub fn checkpoint_directory(&self) -> String {
        format!("{TABLES}/{}/checkpoint", self.table)
    }

    /// Path of the checkpoint of a version, inside the store.
    pub fn checkpoint_path(&self, number: u64) -> String {
        format!("{}/{number:020}.json", self.checkpoint_directory())
    }

    /// The oldest version and the checkpoints.
    pub fn kept(&self) -> Result<Kept> {
        Ok(kept_of(&self.blobs.list(&self.checkpoint_directory())?, HashMap::new()))
    }

    /// The same with the numbers of all manifests, if these are few in a bucket: then one round trip tells both.
    pub(super) fn kept_and_numbers(&self) -> Result<Listing> {
        let (of_checkpoints, of_manifests) = (self.checkpoint_directory(), self.directory());
        let (checkpoints, manifests) = self.blobs.list_both(&of_checkpoints, &of_manifests)?;

        let mut tags = HashMap::new();
        add_tags(&mut tags, &of_checkpoints, &checkpoints);
        add_tags(&mut tags, &of_manifests, manifests.as_deref().unwrap_or_default());

        let manifests = manifests.map(|files| numbered(&names_of(files), ".json"));
        Ok((kept_of(&names_of(checkpoints), tags), manifests))
    }

    /// Makes `version` the oldest, so that those before it can be removed.
    pub fn truncate_before(&self, version: &Version) -> Result<()> {
        self.write_checkpoint(version)?;
        let found = self.read_checkpoint(version.number).unwrap_or(None);
        if !found.is_some_and(|found| found == *version && found.origin.manifest == version.origin.manifest) {
            // Replaces a damaged checkpoint, which was harmless while the deltas before it existed.
            let (path, bytes) = self.checkpoint_of(version)?;
            self.blobs.replace(&path, &bytes)?;
        }

        self.blobs.replace(&self.oldest_path(version.number), &[])?;
        for older in numbered(&self.blobs.list(&self.checkpoint_directory())?, OLDEST) {
            if older < version.number {
                self.blobs.delete(&self.oldest_path(older))?;
            }
        }
        Ok(())
    }

    pub(crate) fn oldest_path(&self, number: u64) -> String {
        format!("{}/{number:020}{OLDEST}", self.checkpoint_directory())
    }

    /// Writes a checkpoint of `version`, which must have a manifest.
    pub(crate) fn write_checkpoint(&self, version: &Version) -> Result<()> {
        let (path, bytes) = self.checkpoint_of(version)?;
        // Another process may have written the same checkpoint.
        self.blobs.create_new(&path, &bytes)?;
        Ok(())
    }

    pub(crate) fn checkpoint_of(&self, version: &Version) -> Result<(String, Vec<u8>)> {
        let path = self.checkpoint_path(version.number);
        match manifest::encode_checkpoint(version, &version.origin.manifest) {
            Ok(bytes) => Ok((path, bytes)),
            Err(reason) => Err(StoreError::Manifest { path, reason }),
        }
    }

    /// The version of a checkpoint, from `files` if they have it; `None` if it is missing or damaged.
    pub(super) fn checkpointed_of(&self, files: &HashMap<String, Bytes>, number: u64) -> Option<Version> {
        let read = match files.get(&self.checkpoint_path(number)) {
            Some(bytes) => self.decode_checkpoint(bytes, number).map(Some),
            None => self.read_checkpoint(number),
        };
        match read {
            Ok(version) => version,
            Err(error) => {
                tracing::warn!(%error, "a checkpoint cannot be used; the deltas before it are read instead");
                None
            }
        }
    }

    /// The version of a checkpoint; `None` if it does not exist.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn read_checkpoint(&self, number: u64) -> Result<Option<Version>> {
        let path = self.checkpoint_path(number);
        let Some(bytes) = self.blobs.read(&path)? else { return Ok(None) };
        self.decode_checkpoint(&bytes, number).map(Some)
    }

    fn decode_checkpoint(&self, bytes: &[u8], number: u64) -> Result<Version> {
        let decoded = manifest::decode_checkpoint(bytes, number);
        let (version, checksum) =
            decoded.map_err(|reason| StoreError::Manifest { path: self.checkpoint_path(number), reason })?;
        Ok(Version { origin: Origin { manifest: checksum, checkpoint: number }, ..version })
    }

    /// Failing to write a checkpoint does not fail the commit: the next one tries again.
    pub(crate) fn checkpoint_if_due(&self, version: &mut Version) {
        if version.number - version.origin.checkpoint < CHECKPOINT_EVERY {
            return;
        }
        match self.write_checkpoint(version) {
            Ok(()) => {
                version.origin.checkpoint = version.number;
                let reason = "a reader would read many deltas";
                tracing::debug!(table = self.table, version = version.number, reason, "checkpoint");
            }
            Err(error) => tracing::warn!(%error, "cannot write a checkpoint; the next commit tries again"),
        }
    }

    /// The small files of a copy of the table that begins with `version`, by path inside the store. Only the SSTs are
    /// missing.
    ///
    /// # Errors
    /// If its manifest cannot be read.
    pub(crate) fn metadata_files(&self, version: &Version) -> Result<Vec<(String, Vec<u8>)>> {
        let number = version.number;
        let path = self.path(number);
        let Some(bytes) = self.blobs.read(&path)? else { return Err(self.missing(number)) };
        manifest::read(&bytes, number).map_err(|reason| StoreError::Manifest { path: path.clone(), reason })?;
        let (checkpoint, whole) = self.checkpoint_of(version)?;
        Ok(vec![(path, bytes.to_vec()), (checkpoint, whole), (self.oldest_path(number), Vec::new())])
    }
}

/// Adds the entity tags of the files of a directory, by path.
fn add_tags(tags: &mut HashMap<String, ETag>, directory: &str, files: &[Listed]) {
    for file in files {
        if let Some(tag) = &file.e_tag {
            tags.insert(format!("{directory}/{}", file.name), tag.clone());
        }
    }
}

fn names_of(files: Vec<Listed>) -> Vec<String> {
    files.into_iter().map(|file| file.name).collect()
}
