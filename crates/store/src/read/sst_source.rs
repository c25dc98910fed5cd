//! An SST as a source of a scan.

use std::sync::Arc;

use tidetable_layout::KeyRange;
use tidetable_sstable::{ReadError, Reader, StripeMeta};

use crate::error::StoreError;
use crate::log::SstPlace;
use crate::read::window_mask::WindowMask;
use crate::tombstone::TombstoneFilter;

/// An SST to merge.
#[derive(Debug, Clone)]
pub struct SstSource {
    /// Sequence number of the SST: among equal cells the greatest wins.
    pub seqno: u64,
    /// Path of the file inside the store, for messages.
    pub path: String,
    /// The open file, which all scans of the version share.
    pub reader: Reader,
    /// Tombstones that hide cells of it.
    pub tombstones: Option<TombstoneFilter>,
    /// Which of its windows are read; `None` for all.
    pub windows: Option<WindowMask>,
    /// Whether it may hold rows that an upsert emptied.
    pub emptied: bool,
    /// Where it lies, for the log; `None` if the log does not ask.
    pub place: Option<Arc<SstPlace>>,
}

impl SstSource {
    /// Whether its rows that are read have their cells as they are stored.
    pub fn is_as_stored(&self) -> bool {
        self.tombstones.is_none() && !self.emptied
    }

    /// The least row key; `None` if it has no rows.
    pub fn first_key(&self) -> Option<&[u8]> {
        self.reader.stripes().first().map(|stripe| &stripe.first_key[..])
    }

    /// Whether its row keys are all less than those of `other`.
    pub fn ends_before(&self, other: &Self) -> bool {
        let (last, first) = (self.reader.stripes().last(), other.reader.stripes().first());
        last.zip(first).is_some_and(|(last, first)| last.last_key < first.first_key)
    }

    /// Whether its key filter leaves it possible that it holds the row `key`.
    pub(crate) fn may_contain(&self, key: &[u8]) -> bool {
        let is_possible = self.reader.may_contain(key);
        if let Some(place) = self.place.as_ref().filter(|_| !is_possible) {
            place.log_ruled_out();
        }

        is_possible
    }

    /// The stripes that `keys` touches.
    pub fn stripes(&self, keys: &KeyRange) -> impl Iterator<Item = (usize, &StripeMeta)> {
        let within = self.reader.stripes_in(&keys.start, keys.end.as_deref());
        within.clone().zip(self.reader.stripes().get(within).unwrap_or_default())
    }

    /// Announces the stripes that `keys` touches.
    pub fn announce(&self, keys: &KeyRange) {
        self.reader.will_read(self.reader.stripes_in(&keys.start, keys.end.as_deref()));
    }

    /// Announces the stripes that `keys` touches, if they are few.
    pub fn announce_few(&self, keys: &KeyRange) {
        const FEW: usize = 4;
        let within = self.reader.stripes_in(&keys.start, keys.end.as_deref());
        if within.len() <= FEW {
            self.reader.will_read(within);
        }
    }

    /// An error of reading it.
    pub fn error(&self, source: ReadError) -> StoreError {
        StoreError::Sst { path: self.path.clone(), source }
    }
}
