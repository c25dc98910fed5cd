//! Cache of the newest versions.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::storage::blobs::Stat;
use crate::version::Version;

/// Cache of the newest version of each table. A committed version never changes; one of many windows is slow to read,
/// and a run asks for it a dozen times.
#[derive(Debug, Default)]
pub(crate) struct VersionCache {
    /// With the file metadata of its manifest, taken before the manifest was read.
    versions: Mutex<HashMap<String, (Version, Option<Stat>)>>,
}

impl VersionCache {
    /// The cached version of `table`, if its manifest has this number and checksum.
    pub(crate) fn get(&self, table: &str, number: u64, manifest: &str) -> Option<Version> {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let (version, _) = versions.get(table)?;
        (version.number == number && version.origin.manifest == manifest).then(|| version.clone())
    }

    /// The cached version of `table`, if its manifest file is unchanged. Saves reading a long full manifest, too.
    pub(crate) fn of_file(&self, table: &str, number: u64, manifest: Stat) -> Option<Version> {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        let (version, file) = versions.get(table)?;
        (version.number == number && *file == Some(manifest)).then(|| version.clone())
    }

    /// Whether version `number` of `table` is cached.
    pub(crate) fn has(&self, table: &str, number: u64) -> bool {
        let versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.get(table).is_some_and(|(version, _)| version.number == number)
    }

    pub(crate) fn put(&self, table: &str, version: &Version, file: Option<Stat>) {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.insert(table.to_owned(), (version.clone(), file));
    }
}
