//! Cache of the newest versions.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidetable_blobs::{ETag, Stat};

use crate::manifest::kept::Listing;
use crate::version::Version;

/// Cache of the newest version of each table. A committed version never changes; one of many windows is slow to read,
/// and a run asks for it a dozen times.
#[derive(Debug, Default)]
pub(crate) struct VersionCache {
    versions: Arc<Mutex<HashMap<String, Cached>>>,
    /// What a store that follows its own commits knows of each table; `None` if the store does not.
    followed: Option<Mutex<Followed>>,
}

/// What a store that follows its own commits knows.
#[derive(Debug, Default)]
struct Followed {
    /// The newest version of each table that it has asked for.
    newest: HashMap<String, Option<Version>>,
    /// The names of all tables, once it has listed them.
    names: Option<Vec<String>>,
    /// Lists of versions that it has asked for only to learn whether there are any: the first reader of the table uses them.
    listings: HashMap<String, Listing>,
}

/// A version, and by what its manifest is recognised.
#[derive(Debug)]
struct Cached {
    version: Version,
    /// File metadata of its manifest, taken before the manifest was read.
    file: Option<Stat>,
    /// In a bucket, the tag of its manifest.
    tag: Option<ETag>,
}

impl VersionCache {
    /// The same cache for a store that follows its own commits.
    pub(crate) fn following(&self) -> Self {
        Self { versions: Arc::clone(&self.versions), followed: Some(Mutex::default()) }
    }

    fn versions(&self) -> MutexGuard<'_, HashMap<String, Cached>> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn followed(&self) -> Option<MutexGuard<'_, Followed>> {
        Some(self.followed.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The cached version of `table`, if its manifest has this number and checksum.
    pub(crate) fn get(&self, table: &str, number: u64, manifest: &str) -> Option<Version> {
        self.cached(table, number, |cached| cached.version.origin.manifest == manifest)
    }

    /// The cached version of `table`, if its manifest file is unchanged. Saves reading a long full manifest, too.
    pub(crate) fn of_file(&self, table: &str, number: u64, manifest: Stat) -> Option<Version> {
        self.cached(table, number, |cached| cached.file == Some(manifest))
    }

    /// The cached version of `table`, if its manifest still has this tag.
    pub(crate) fn of_tag(&self, table: &str, number: u64, tag: &ETag) -> Option<Version> {
        self.cached(table, number, |cached| cached.tag.as_ref() == Some(tag))
    }

    fn cached(&self, table: &str, number: u64, is_same: impl Fn(&Cached) -> bool) -> Option<Version> {
        let versions = self.versions();
        let cached = versions.get(table).filter(|cached| cached.version.number == number && is_same(cached))?;
        Some(cached.version.clone())
    }

    /// Whether version `number` of `table` is cached.
    pub(crate) fn has(&self, table: &str, number: u64) -> bool {
        self.versions().get(table).is_some_and(|cached| cached.version.number == number)
    }

    pub(crate) fn put(&self, table: &str, version: &Version, file: Option<Stat>, tag: Option<ETag>) {
        self.versions().insert(table.to_owned(), Cached { version: version.clone(), file, tag });
    }

    /// The newest version of `table` as a store that follows its own commits knows it; `Some(None)`: there is none.
    pub(crate) fn known(&self, table: &str) -> Option<Option<Version>> {
        self.followed()?.newest.get(table).cloned()
    }

    /// The tables that such a store knows to have a version.
    pub(crate) fn known_tables(&self) -> HashSet<String> {
        let Some(followed) = self.followed() else { return HashSet::new() };
        followed.newest.iter().filter(|(_, version)| version.is_some()).map(|(table, _)| table.clone()).collect()
    }

    /// The names of all tables as such a store has listed them.
    pub(crate) fn known_names(&self) -> Option<Vec<String>> {
        self.followed()?.names.clone()
    }

    /// Notes the names of all tables, just listed.
    pub(crate) fn listed(&self, names: &[String]) {
        if let Some(mut followed) = self.followed() {
            followed.names = Some(names.to_vec());
        }
    }

    /// Keeps a list of the versions of `table` for the first who reads it.
    pub(crate) fn keep_listing(&self, table: &str, listing: Listing) {
        if let Some(mut followed) = self.followed() {
            followed.listings.insert(table.to_owned(), listing);
        }
    }

    /// Takes such a list.
    pub(crate) fn take_listing(&self, table: &str) -> Option<Listing> {
        self.followed()?.listings.remove(table)
    }

    /// Notes the newest version of `table`, just read or committed.
    pub(crate) fn follow(&self, table: &str, version: Option<&Version>) {
        if let Some(mut followed) = self.followed() {
            followed.newest.insert(table.to_owned(), version.cloned());
            // A new table is listed the next time.
            followed.names.take_if(|names| version.is_some() && !names.iter().any(|name| name == table));
        }
    }

    /// Forgets all that such a store knows.
    pub(crate) fn forget_all(&self) {
        if let Some(mut followed) = self.followed() {
            *followed = Followed::default();
        }
    }

    /// Forgets what is known of `table`.
    pub(crate) fn forget(&self, table: &str) {
        if let Some(mut followed) = self.followed() {
            followed.newest.remove(table);
            followed.listings.remove(table);
        }
    }
}
