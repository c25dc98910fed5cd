//! The line of versions of a table: which there are, and reading one of them.
//!
//! Manifests follow each other without a gap, from the oldest that vacuum has left to the newest. Every
//! so many commits a checkpoint saves reading the steps before it; what is missing or damaged of the
//! checkpoints costs time, never a version.

use crate::error::{Result, StoreError};
use crate::manifest;
use crate::manifest::{Manifest, Step};
use crate::table::Table;
use crate::version::{Origin, Version, invariants};

/// Commits between checkpoints: a reader reads as many steps at most, and a commit bears that part of a checkpoint.
pub(crate) const CHECKPOINT_EVERY: u64 = 32;

/// Ending of the file that is named after the oldest version.
const OLDEST: &str = ".oldest";

/// Attempts to read the newest version while others remove what is before it.
const ATTEMPTS: usize = 5;

/// What is kept of a table.
pub(crate) struct Kept {
    /// Number of the oldest version; nothing is known of its manifest.
    pub(crate) oldest: u64,
    /// Numbers of the versions from there on that have a checkpoint, ascending.
    pub(crate) checkpoints: Vec<u64>,
}

impl Table {
    /// Number of the newest version; 0 if there is none.
    ///
    /// # Errors
    /// If the manifests cannot be listed, or one is missing among them.
    pub fn latest_number(&self) -> Result<u64> {
        // The folder of checkpoints stays small; that of manifests is listed only where there are none.
        let Some(mut number) = self.kept()?.checkpoints.last().copied() else {
            return Ok(self.version_numbers()?.last().copied().unwrap_or(0));
        };
        while self.has_manifest(number + 1)? {
            number += 1;
        }
        // Going on behind a manifest that was lost would take back what is in those after it.
        if self.has_manifest(number + 2)? {
            return Err(self.missing(number + 1));
        }
        Ok(number)
    }

    /// Numbers of all versions that are there, ascending.
    ///
    /// # Errors
    /// If the manifests cannot be listed.
    pub fn version_numbers(&self) -> Result<Vec<u64>> {
        let oldest = self.kept()?.oldest;
        let mut numbers = self.numbers(&self.manifest_folder())?;
        numbers.retain(|number| *number >= oldest);
        Ok(numbers)
    }

    /// Where the line of versions begins, and its checkpoints.
    pub(crate) fn kept(&self) -> Result<Kept> {
        let names = self.blobs().list(&self.checkpoint_folder())?;
        let oldest = numbered(&names, OLDEST).last().copied().unwrap_or(1);
        let checkpoints = numbered(&names, ".json").into_iter().filter(|number| *number >= oldest).collect();
        Ok(Kept { oldest, checkpoints })
    }

    /// Numbers of the files of a folder of manifests or checkpoints, whether they are of the line or not; ascending.
    pub(crate) fn numbers(&self, folder: &str) -> Result<Vec<u64>> {
        Ok(numbered(&self.blobs().list(folder)?, ".json"))
    }

    /// Makes `version` the oldest of the line, so that those before it can go.
    pub(crate) fn keep_from(&self, version: &Version) -> Result<()> {
        self.write_checkpoint(version)?;
        let is_whole = |found: Version| found == *version && found.origin.manifest == version.origin.manifest;
        if !self.read_checkpoint(version.number).is_ok_and(|found| found.is_some_and(is_whole)) {
            // What has its name was damaged meanwhile, which did no harm while there were steps to read instead.
            let (path, bytes) = self.checkpoint_of(version)?;
            self.blobs().replace(&path, &bytes)?;
        }
        self.blobs().replace(&self.oldest_path(version.number), &[])?;
        for older in numbered(&self.blobs().list(&self.checkpoint_folder())?, OLDEST) {
            if older < version.number {
                self.blobs().delete(&self.oldest_path(older))?;
            }
        }
        Ok(())
    }

    pub(crate) fn oldest_path(&self, number: u64) -> String {
        format!("{}/{number:020}{OLDEST}", self.checkpoint_folder())
    }

    pub(crate) fn has_manifest(&self, number: u64) -> Result<bool> {
        Ok(self.blobs().stat(&self.manifest_path(number))?.is_some())
    }

    /// The newest version; `None` if the table was never made.
    ///
    /// # Errors
    /// If its manifest cannot be read.
    pub fn latest(&self) -> Result<Option<Version>> {
        let read = || {
            let number = self.latest_number()?;
            if number == 0 { Ok(None) } else { self.newest_version(number).map(Some) }
        };
        let mut latest = read();
        for _ in 1..ATTEMPTS {
            match latest {
                // A vacuum may have removed what was found before it was read; what is damaged stays so.
                Err(StoreError::Vacuumed { .. } | StoreError::NoVersion { .. } | StoreError::Manifest { .. }) => {
                    latest = read();
                }
                latest => return latest,
            }
        }
        latest
    }

    /// Version `number`, the newest, as it was read before if it was.
    fn newest_version(&self, number: u64) -> Result<Version> {
        let file = self.blobs().stat(&self.manifest_path(number))?.filter(|file| file.modified.is_some());
        if let Some(version) = file.and_then(|file| self.newest().of_file(self.name(), number, file)) {
            return Ok(version);
        }
        if self.newest().has(self.name(), number)
            && let Some(manifest) = self.checksum(number)?
            && let Some(version) = self.newest().get(self.name(), number, &manifest)
        {
            return Ok(version);
        }
        let version = self.version(number)?;
        self.newest().put(self.name(), &version, file);
        Ok(version)
    }

    /// Version `number`.
    ///
    /// # Errors
    /// [`StoreError::Vacuumed`] or [`StoreError::NoVersion`] if there is none; or if its manifest, or one that
    /// it goes upon, cannot be read.
    pub fn version(&self, number: u64) -> Result<Version> {
        let Kept { oldest, checkpoints } = self.kept()?;
        if number < oldest {
            return Err(StoreError::Vacuumed { table: self.name().to_owned(), number, oldest });
        }
        let (step, checksum) = match self.manifest(number)? {
            (Manifest::Whole(version), checksum) => return self.checked(*version, checksum, number),
            (Manifest::Step(step), checksum) => (*step, checksum),
        };
        // From there back to a version that is written out.
        let mut steps = vec![(step, checksum)];
        let mut at = number;
        let mut version = loop {
            if checkpoints.binary_search(&at).is_ok()
                && let Some(version) = self.checkpointed(at)
            {
                break version;
            }
            at -= 1;
            match self.manifest(at)? {
                (Manifest::Whole(version), checksum) => {
                    break Version { origin: Origin { manifest: checksum, checkpoint: at }, ..*version };
                }
                (Manifest::Step(step), checksum) => steps.push((*step, checksum)),
            }
        };
        let checkpoint = version.number;
        while let Some((step, checksum)) = steps.pop() {
            // The manifest of the checkpoint itself.
            if step.number == checkpoint {
                self.follows(&checksum, &version.origin.manifest, checkpoint)?;
                continue;
            }
            let number = step.number;
            self.follows(&step.before, &version.origin.manifest, number)?;
            version = step.apply(version).map_err(|reason| self.broken(number, reason))?;
            version.origin = Origin { manifest: checksum, checkpoint };
        }
        let checksum = version.origin.manifest.clone();
        self.checked(version, checksum, checkpoint)
    }

    /// Hands over the versions from `first` to `last`, ascending.
    ///
    /// # Errors
    /// As [`Self::version`], and those of `take`.
    pub(crate) fn walk(&self, first: u64, last: u64, mut take: impl FnMut(&Version) -> Result<()>) -> Result<()> {
        let mut version = self.version(first)?;
        take(&version)?;
        for number in first + 1..=last {
            version = match self.manifest(number)? {
                (Manifest::Whole(version), checksum) => self.checked(*version, checksum, number)?,
                (Manifest::Step(step), checksum) => {
                    self.follows(&step.before, &version.origin.manifest, number)?;
                    let checkpoint = version.origin.checkpoint;
                    let next = step.apply(version).map_err(|reason| self.broken(number, reason))?;
                    Version { origin: Origin { manifest: checksum, checkpoint }, ..next }
                }
            };
            take(&version)?;
        }
        Ok(())
    }

    /// The newest version whose commit has a logical time of `time` (microseconds) or before it.
    ///
    /// # Errors
    /// [`StoreError::NoVersionAt`] if there is none, or if a manifest cannot be read.
    pub fn version_at(&self, time: i64) -> Result<Version> {
        let (newest, first) = (self.latest_number()?, self.kept()?.oldest);
        let mut oldest = None;
        // Logical times need not ascend.
        for number in (first..=newest).rev() {
            if number < newest && !self.has_manifest(number)? {
                break;
            }
            let now = match self.manifest(number)?.0 {
                Manifest::Whole(version) => version.now,
                Manifest::Step(step) => step.now(),
            };
            if now <= time {
                return self.version(number);
            }
            oldest = Some((number, now));
        }
        let (oldest, now) = oldest.unwrap_or_default();
        Err(StoreError::NoVersionAt { table: self.name().to_owned(), oldest, now })
    }

    /// Writes a checkpoint of `version`, which was committed or read.
    pub(crate) fn write_checkpoint(&self, version: &Version) -> Result<()> {
        let (path, bytes) = self.checkpoint_of(version)?;
        // Another may have written the same.
        self.blobs().create_new(&path, &bytes).map(|_| ())
    }

    pub(crate) fn checkpoint_of(&self, version: &Version) -> Result<(String, Vec<u8>)> {
        let path = self.checkpoint_path(version.number);
        match manifest::encode_checkpoint(version, &version.origin.manifest) {
            Ok(bytes) => Ok((path, bytes)),
            Err(reason) => Err(StoreError::Manifest { path, reason }),
        }
    }

    /// The version of a checkpoint; `None` if it is not to be used.
    fn checkpointed(&self, number: u64) -> Option<Version> {
        match self.read_checkpoint(number) {
            Ok(version) => version,
            Err(error) => {
                tracing::warn!(%error, "the steps before it are read");
                None
            }
        }
    }

    /// The version of a checkpoint; `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn read_checkpoint(&self, number: u64) -> Result<Option<Version>> {
        let path = self.checkpoint_path(number);
        let Some(bytes) = self.blobs().read(&path)? else { return Ok(None) };
        let decoded = manifest::decode_checkpoint(&bytes, number);
        let (version, checksum) = decoded.map_err(|reason| StoreError::Manifest { path, reason })?;
        Ok(Some(Version { origin: Origin { manifest: checksum, checkpoint: number }, ..version }))
    }

    /// Manifest `number`, and its checksum.
    pub(crate) fn manifest(&self, number: u64) -> Result<(Manifest, String)> {
        let path = self.manifest_path(number);
        let Some(bytes) = self.blobs().read(&path)? else { return Err(self.gone(number)?) };
        manifest::read(&bytes, number).map_err(|reason| StoreError::Manifest { path, reason })
    }

    /// Checksum of manifest `number`, if it is there.
    pub(crate) fn checksum(&self, number: u64) -> Result<Option<String>> {
        let path = self.manifest_path(number);
        let Some(bytes) = self.blobs().read(&path)? else { return Ok(None) };
        manifest::checksum_of(&bytes).map(Some).map_err(|reason| StoreError::Manifest { path, reason })
    }

    /// The step of manifest `number`, if it is one and there.
    pub(crate) fn step(&self, number: u64) -> Result<Option<(Step, String)>> {
        let path = self.manifest_path(number);
        let Some(bytes) = self.blobs().read(&path)? else { return Ok(None) };
        match manifest::read(&bytes, number).map_err(|reason| StoreError::Manifest { path, reason })? {
            (Manifest::Step(step), checksum) => Ok(Some((*step, checksum))),
            (Manifest::Whole(_), _) => Ok(None),
        }
    }

    /// Why there is no manifest `number`.
    fn gone(&self, number: u64) -> Result<StoreError> {
        let numbers = self.version_numbers()?;
        let table = self.name().to_owned();
        Ok(match (numbers.first(), numbers.last()) {
            (Some(oldest), _) if number < *oldest => StoreError::Vacuumed { table, number, oldest: *oldest },
            (_, Some(newest)) if number < *newest => self.missing(number),
            (_, newest) => StoreError::NoVersion { table, number, newest: newest.copied().unwrap_or(0) },
        })
    }

    pub(crate) fn missing(&self, number: u64) -> StoreError {
        self.broken(number, "it is missing, and later ones are there".to_owned())
    }

    fn broken(&self, number: u64, reason: String) -> StoreError {
        StoreError::Manifest { path: self.manifest_path(number), reason }
    }

    /// Whether the checksum of a manifest is the one that manifest `number` follows.
    fn follows(&self, stated: &str, found: &str, number: u64) -> Result<()> {
        let reason = "it does not follow the manifest before it: one of them is of another table or time";
        if stated == found { Ok(()) } else { Err(self.broken(number, reason.to_owned())) }
    }

    fn checked(&self, version: Version, manifest: String, checkpoint: u64) -> Result<Version> {
        invariants::check(&version).map_err(|rule| self.broken(version.number, rule))?;
        Ok(Version { origin: Origin { manifest, checkpoint }, ..version })
    }
}

/// The numbers that the names with this ending begin with, ascending.
fn numbered(names: &[String], ending: &str) -> Vec<u64> {
    let mut numbers: Vec<u64> = names.iter().filter_map(|name| name.strip_suffix(ending)?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}
