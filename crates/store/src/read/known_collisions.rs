//! The collisions that earlier scans of a version found. Its files do not change, so neither do they.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidetable_layout::KeyRange;

use crate::error::Result;
use crate::read::row_identity::Identity;
use crate::read::sst_source::SstSource;

/// Row keys, ascending, each once.
pub(crate) type RowKeys = Arc<[Vec<u8>]>;

/// Greatest number of bytes of keys that are kept; further searches are repeated.
const MAX_BYTES: usize = 8 << 20;
/// What a search takes beside its keys, about.
const OVERHEAD: usize = 256;

/// Paths of the files by run, key range, and what distinguishes records.
type Place = (Vec<Vec<String>>, KeyRange, Identity);

/// Results of searches for collisions, shared by all views of a version.
#[derive(Debug, Default)]
pub struct KnownCollisions {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    found: HashMap<Place, Option<RowKeys>>,
    bytes: usize,
}

impl KnownCollisions {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The result of an earlier search with these arguments, or that of `search`.
    ///
    /// # Errors
    /// Those of `search`; they are not kept.
    pub(super) fn or_search(
        &self,
        runs: &[(u64, Vec<SstSource>)],
        keys: &KeyRange,
        identity: &Identity,
        search: impl FnOnce() -> Result<Option<RowKeys>>,
    ) -> Result<Option<RowKeys>> {
        let runs = runs.iter().map(|(_, run)| run.iter().map(|source| source.path.clone()).collect());
        let place: Place = (runs.collect(), keys.clone(), identity.clone());
        if let Some(found) = self.known().found.get(&place) {
            return Ok(found.clone());
        }

        // No lock is held meanwhile: two threads may search at a time.
        let found = search()?;
        let of_keys: usize = found.iter().flat_map(|keys| keys.iter()).map(|key| key.len() + size_of_val(key)).sum();
        let of_place: usize = place.0.iter().flatten().map(String::len).sum();

        let mut known = self.known();
        known.bytes += of_keys + of_place + OVERHEAD;
        if known.bytes <= MAX_BYTES {
            known.found.insert(place, found.clone());
        }
        Ok(found)
    }
}
