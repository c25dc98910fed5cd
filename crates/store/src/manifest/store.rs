//! Manifest store: the sequence of versions of a table, and reading one of them.
//!
//! Manifest numbers have no gaps, from the oldest version that vacuum has left to the newest. Checkpoints save
//! reading many deltas; a missing or damaged checkpoint costs time, never a version.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::Bytes;
use tidetable_blobs::{Blobs, ETag, ReadBytes};

use crate::error::{Result, StoreError};
use crate::ids::TABLES;
use crate::manifest;
use crate::manifest::kept::{Kept, Listing, numbered};
use crate::manifest::newest::VersionCache;
use crate::manifest::{Manifest, ManifestDelta};
use crate::version::{Origin, Version, invariants};

/// Attempts to read the newest version while vacuums remove older ones.
const ATTEMPTS: usize = 5;

/// Manifests read at a time where they are walked in a bucket.
const WALK_AHEAD: u64 = 64;

/// The manifests and checkpoints of a table.
#[derive(Debug, Clone)]
pub struct ManifestStore {
    pub(super) blobs: Arc<dyn Blobs>,
    pub(super) table: String,
    newest: Arc<VersionCache>,
}

impl ManifestStore {
    pub(crate) fn new(blobs: Arc<dyn Blobs>, table: String, newest: Arc<VersionCache>) -> Self {
        Self { blobs, table, newest }
    }

    /// Directory of the manifests, inside the store.
    pub fn directory(&self) -> String {
        format!("{TABLES}/{}/manifest", self.table)
    }

    /// Path of the manifest of a version, inside the store.
    pub fn path(&self, number: u64) -> String {
        format!("{}/{number:020}.json", self.directory())
    }

    /// Number of the newest version; 0 if there is none.
    ///
    /// # Errors
    /// If the manifests cannot be listed, or one is missing.
    pub(crate) fn latest_number(&self) -> Result<u64> {
        let (kept, numbers) = self.kept_and_numbers()?;
        let newest = self.newest_number(&kept, numbers.clone())?;
        self.newest.keep_listing(&self.table, (kept, numbers));
        Ok(newest)
    }

    /// Number of the newest version; 0 if there is none.
    fn newest_number(&self, kept: &Kept, numbers: Option<Vec<u64>>) -> Result<u64> {
        // The directory of checkpoints stays small; that of manifests is listed only without checkpoints.
        let Some(mut number) = kept.checkpoints.last().copied() else {
            let mut numbers = numbers.map_or_else(|| self.file_numbers(&self.directory()), Ok)?;
            numbers.retain(|number| *number >= kept.oldest);
            return Ok(numbers.last().copied().unwrap_or(0));
        };

        // In a bucket the names after it are listed in one request, where each test of a name would be one.
        let mut listed = numbers;
        if listed.is_none() && self.blobs.capabilities().round_trips {
            let files = self.blobs.list_after(&self.directory(), &format!("{number:020}.json"))?;
            let names: Vec<String> = files.into_iter().map(|file| file.name).collect();
            listed = Some(numbered(&names, ".json"));
        }
        let has = |number: u64| match &listed {
            Some(numbers) => Ok(numbers.binary_search(&number).is_ok()),
            None => self.has(number),
        };

        while has(number + 1)? {
            number += 1;
        }
        // Committing after a gap would discard the versions beyond it.
        if has(number + 2)? {
            return Err(self.missing(number + 1));
        }
        Ok(number)
    }

    /// Numbers of all versions, ascending.
    ///
    /// # Errors
    /// If the manifests cannot be listed.
    pub fn version_numbers(&self) -> Result<Vec<u64>> {
        let oldest = self.kept()?.oldest;
        let mut numbers = self.file_numbers(&self.directory())?;
        numbers.retain(|number| *number >= oldest);
        Ok(numbers)
    }

    /// Numbers of the files in a directory of manifests or checkpoints, valid or not; ascending.
    pub fn file_numbers(&self, directory: &str) -> Result<Vec<u64>> {
        Ok(numbered(&self.blobs.list(directory)?, ".json"))
    }

    pub(crate) fn has(&self, number: u64) -> Result<bool> {
        Ok(self.blobs.stat(&self.path(number))?.is_some())
    }

    /// The newest version; `None` if the table does not exist. A store that [follows its own
    /// commits](crate::Store::following_own_commits) gives the one it knows.
    ///
    /// # Errors
    /// If its manifest cannot be read.
    pub(crate) fn latest(&self) -> Result<Option<Version>> {
        if let Some(known) = self.newest.known(&self.table) {
            return Ok(known);
        }
        self.read_latest(self.newest.take_listing(&self.table))
    }

    /// The newest version that the storage has.
    ///
    /// # Errors
    /// As [`Self::latest`].
    pub(crate) fn latest_now(&self) -> Result<Option<Version>> {
        self.newest.forget(&self.table);
        self.read_latest(None)
    }

    /// Forgets which version is the newest, after a commit failed.
    pub(crate) fn forget_latest(&self) {
        self.newest.forget(&self.table);
    }

    /// Notes a version that this store has committed.
    pub(crate) fn committed(&self, version: &Version) {
        self.newest.follow(&self.table, Some(version));
    }

    /// The newest version, by a list that was asked for before if there is one.
    fn read_latest(&self, listing: Option<Listing>) -> Result<Option<Version>> {
        let mut latest = self.try_read_latest(listing);
        for _ in 1..ATTEMPTS {
            match latest {
                // A vacuum may have removed files between listing and reading; damage persists across attempts.
                Err(StoreError::Vacuumed { .. } | StoreError::NoVersion { .. } | StoreError::Manifest { .. }) => {
                    latest = self.try_read_latest(None);
                }
                Ok(latest) => {
                    self.newest.follow(&self.table, latest.as_ref());
                    return Ok(latest);
                }
                error => return error,
            }
        }

        latest
    }

    fn try_read_latest(&self, listing: Option<Listing>) -> Result<Option<Version>> {
        let (kept, numbers) = listing.map_or_else(|| self.kept_and_numbers(), Ok)?;
        match self.newest_number(&kept, numbers)? {
            0 => Ok(None),
            number => self.newest_version(number, &kept).map(Some),
        }
    }

    /// Version `number`, the newest, from the cache if possible.
    fn newest_version(&self, number: u64, kept: &Kept) -> Result<Version> {
        // In a bucket the metadata would take a request, as does the manifest.
        let file = match self.blobs.capabilities().round_trips {
            true => None,
            false => self.blobs.stat(&self.path(number))?.filter(|file| file.modified.is_some()),
        };
        if let Some(version) = file.and_then(|file| self.newest.of_file(&self.table, number, file)) {
            return Ok(version);
        }

        let tag = kept.tags.get(&self.path(number));
        if let Some(version) = tag.and_then(|tag| self.newest.of_tag(&self.table, number, tag)) {
            return Ok(version);
        }

        if self.newest.has(&self.table, number)
            && let Some(manifest) = self.checksum(number)?
            && let Some(version) = self.newest.get(&self.table, number, &manifest)
        {
            return Ok(version);
        }

        let (version, is_listed) = self.version_as_listed(number, kept)?;
        self.newest.put(&self.table, &version, file, tag.filter(|_| is_listed).cloned());
        Ok(version)
    }

    /// Version `number`.
    ///
    /// # Errors
    /// [`StoreError::Vacuumed`] or [`StoreError::NoVersion`] if it does not exist; or if its manifest, or one that it
    /// is based on, cannot be read.
    pub fn version(&self, number: u64) -> Result<Version> {
        self.version_with(number, &self.kept()?)
    }

    fn version_with(&self, number: u64, kept: &Kept) -> Result<Version> {
        self.version_as_listed(number, kept).map(|(version, _)| version)
    }

    /// Version `number`, and whether its manifest surely is the one whose tag `kept` has.
    fn version_as_listed(&self, number: u64, kept: &Kept) -> Result<(Version, bool)> {
        if number < kept.oldest {
            return Err(StoreError::Vacuumed { table: self.table.clone(), number, oldest: kept.oldest });
        }

        let first = kept.checkpoints.iter().rev().find(|checkpoint| **checkpoint <= number).copied();
        let files = self.read_ahead(first, first.unwrap_or(kept.oldest)..=number, &kept.tags)?;
        let is_listed = files.get(&self.path(number)).is_some_and(|read| read.is_listed);
        let files = files.into_iter().map(|(path, read)| (path, read.bytes)).collect();
        Ok((self.version_of(&files, number, &kept.checkpoints)?, is_listed))
    }

    /// Version `number`, from `files` as far as they have its manifests and checkpoints.
    fn version_of(&self, files: &HashMap<String, Bytes>, number: u64, checkpoints: &[u64]) -> Result<Version> {
        let (delta, checksum) = match self.read_of(files, number)? {
            (Manifest::Full(version), checksum) => return self.checked(*version, checksum, number),
            (Manifest::Delta(delta), checksum) => (*delta, checksum),
        };

        // Reads deltas back to a checkpoint or full manifest.
        let mut deltas = vec![(delta, checksum)];
        let mut at = number;
        let mut version = loop {
            if checkpoints.binary_search(&at).is_ok()
                && let Some(version) = self.checkpointed_of(files, at)
            {
                break version;
            }
            at -= 1;
            match self.read_of(files, at)? {
                (Manifest::Full(version), checksum) => {
                    break Version { origin: Origin { manifest: checksum, checkpoint: at }, ..*version };
                }
                (Manifest::Delta(delta), checksum) => deltas.push((*delta, checksum)),
            }
        };

        let checkpoint = version.number;
        while let Some((delta, checksum)) = deltas.pop() {
            // The manifest of the checkpointed version.
            if delta.number == checkpoint {
                self.follows(&checksum, &version.origin.manifest, checkpoint)?;
                continue;
            }
            let number = delta.number;
            self.follows(&delta.before, &version.origin.manifest, number)?;
            version = delta.apply(version).map_err(|reason| self.broken(number, reason))?;
            version.origin = Origin { manifest: checksum, checkpoint };
        }

        let checksum = version.origin.manifest.clone();
        self.checked(version, checksum, checkpoint)
    }

    /// Passes the versions from `first` to `last` to `take`, ascending.
    ///
    /// # Errors
    /// As [`Self::version`], and those of `take`.
    pub fn walk(&self, first: u64, last: u64, mut take: impl FnMut(&Version) -> Result<()>) -> Result<()> {
        let mut version = self.version(first)?;
        take(&version)?;

        let mut files = HashMap::new();
        for number in first + 1..=last {
            if self.blobs.capabilities().round_trips && !files.contains_key(&self.path(number)) {
                let read = self.read_ahead(None, number..=last.min(number + WALK_AHEAD), &HashMap::new())?;
                files = read.into_iter().map(|(path, read)| (path, read.bytes)).collect();
            }

            version = match self.read_of(&files, number)? {
                (Manifest::Full(version), checksum) => self.checked(*version, checksum, number)?,
                (Manifest::Delta(delta), checksum) => {
                    self.follows(&delta.before, &version.origin.manifest, number)?;
                    let checkpoint = version.origin.checkpoint;
                    let next = delta.apply(version).map_err(|reason| self.broken(number, reason))?;
                    Version { origin: Origin { manifest: checksum, checkpoint }, ..next }
                }
            };
            take(&version)?;
        }
        Ok(())
    }

    /// The newest version with a logical time of at most `time` (microseconds).
    ///
    /// # Errors
    /// [`StoreError::NoVersionAt`] if there is none, or if a manifest cannot be read.
    pub(crate) fn version_at(&self, time: i64) -> Result<Version> {
        let (newest, first) = (self.latest_number()?, self.kept()?.oldest);
        let mut oldest = None;
        // Logical times need not ascend.
        for number in (first..=newest).rev() {
            if number < newest && !self.has(number)? {
                break;
            }
            let now = match self.read(number)?.0 {
                Manifest::Full(version) => version.now,
                Manifest::Delta(delta) => delta.now(),
            };
            if now <= time {
                return self.version(number);
            }
            oldest = Some((number, now));
        }
        let (oldest, now) = oldest.unwrap_or_default();
        Err(StoreError::NoVersionAt { table: self.table.clone(), oldest, now })
    }

    /// Manifest `number`, and its checksum.
    pub(crate) fn read(&self, number: u64) -> Result<(Manifest, String)> {
        let path = self.path(number);
        let Some(bytes) = self.blobs.read(&path)? else { return Err(self.gone(number)?) };
        manifest::read(&bytes, number).map_err(|reason| StoreError::Manifest { path, reason })
    }

    /// In a bucket, the files that a version is read from, fetched at once: `manifests`, and its checkpoint. Elsewhere
    /// nothing.
    fn read_ahead(
        &self,
        checkpoint: Option<u64>,
        manifests: RangeInclusive<u64>,
        tags: &HashMap<String, ETag>,
    ) -> Result<HashMap<String, ReadBytes>> {
        if !self.blobs.capabilities().round_trips {
            return Ok(HashMap::new());
        }

        let manifests = manifests.map(|number| self.path(number));
        let paths = manifests.chain(checkpoint.map(|number| self.checkpoint_path(number)));
        let files: Vec<(String, Option<ETag>)> = paths.map(|path| (path.clone(), tags.get(&path).cloned())).collect();
        let found = self.blobs.read_listed(&files)?;
        Ok(files.into_iter().zip(found).filter_map(|((path, _), read)| Some((path, read?))).collect())
    }

    /// Manifest `number` and its checksum, from `files` if they have it.
    fn read_of(&self, files: &HashMap<String, Bytes>, number: u64) -> Result<(Manifest, String)> {
        let path = self.path(number);
        let Some(bytes) = files.get(&path) else { return self.read(number) };
        manifest::read(bytes, number).map_err(|reason| StoreError::Manifest { path, reason })
    }

    /// Checksum of manifest `number`, if it exists.
    pub(crate) fn checksum(&self, number: u64) -> Result<Option<String>> {
        let path = self.path(number);
        let Some(bytes) = self.blobs.read(&path)? else { return Ok(None) };
        manifest::checksum_of(&bytes).map(Some).map_err(|reason| StoreError::Manifest { path, reason })
    }

    /// The delta of manifest `number`, if it exists and is one.
    pub fn delta(&self, number: u64) -> Result<Option<(ManifestDelta, String)>> {
        let path = self.path(number);
        let Some(bytes) = self.blobs.read(&path)? else { return Ok(None) };
        match manifest::read(&bytes, number).map_err(|reason| StoreError::Manifest { path, reason })? {
            (Manifest::Delta(delta), checksum) => Ok(Some((*delta, checksum))),
            (Manifest::Full(_), _) => Ok(None),
        }
    }

    /// The error for the missing manifest `number`.
    fn gone(&self, number: u64) -> Result<StoreError> {
        let numbers = self.version_numbers()?;
        let table = self.table.clone();
        Ok(match (numbers.first(), numbers.last()) {
            (Some(oldest), _) if number < *oldest => StoreError::Vacuumed { table, number, oldest: *oldest },
            (_, Some(newest)) if number < *newest => self.missing(number),
            (_, newest) => StoreError::NoVersion { table, number, newest: newest.copied().unwrap_or(0) },
        })
    }

    /// The error for a manifest that is missing between others.
    pub fn missing(&self, number: u64) -> StoreError {
        self.broken(number, "it is missing, and later ones are there".to_owned())
    }

    pub(super) fn broken(&self, number: u64, reason: String) -> StoreError {
        StoreError::Manifest { path: self.path(number), reason }
    }

    /// Checks that manifest `number` states the checksum of the manifest before it.
    fn follows(&self, stated: &str, found: &str, number: u64) -> Result<()> {
        let reason = "it does not follow the manifest before it: one of them is of another table or time";
        if stated == found { Ok(()) } else { Err(self.broken(number, reason.to_owned())) }
    }

    /// The version with its origin, if it keeps the invariants.
    fn checked(&self, version: Version, manifest: String, checkpoint: u64) -> Result<Version> {
        invariants::check(&version).map_err(|rule| self.broken(version.number, rule))?;
        Ok(Version { origin: Origin { manifest, checkpoint }, ..version })
    }
}
