//! Reserve file: space that vacuum frees when the disk is full.
//!
//! Vacuum must write before it can free space: it commits which files may be gone. So the root keeps a file without
//! content, created while there is space; when the disk is full, vacuum removes it and tries again.

use std::io::ErrorKind;

use tidetable_blobs::{BlobError, free_bytes};

use crate::error::{Result, StoreError};
use crate::store::Store;

/// Hidden, so that no listing shows it.
const PATH: &str = ".reserve";
/// Enough for the manifests and checkpoints of several large tables.
const BYTES: usize = 4 << 20;
/// Of a small disk, the reserve is this part of what is free, but at least [`LEAST`].
const SHARE: u64 = 8;
/// Enough for the manifests of small tables.
const LEAST: usize = 64 << 10;
const ABOUT: &[u8] = b"Room that tidetable vacuum gives up when the disk is full. It holds nothing.\n";

impl Store {
    /// Creates the reserve file, if it does not exist and the store is on a disk.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_reserve(&self) -> Result<()> {
        if !self.blobs().capabilities().fills || self.blobs().stat(PATH)?.is_some() {
            return Ok(());
        }
        let share = self.free_bytes().and_then(|free| usize::try_from(free / SHARE).ok());
        let size = share.map_or(BYTES, |share| share.clamp(LEAST, BYTES));
        // A compressing file system would not allocate zeros.
        let mut bytes = Vec::with_capacity(size + 8);
        bytes.extend_from_slice(ABOUT);
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        while bytes.len() < size {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.extend_from_slice(&state.to_le_bytes());
        }
        self.blobs().create_new(PATH, &bytes)?;
        Ok(())
    }

    /// The size of the reserve file; 0 if there is none.
    ///
    /// # Errors
    /// If it cannot be looked at.
    pub fn reserve_bytes(&self) -> Result<u64> {
        Ok(self.blobs().stat(PATH)?.map_or(0, |found| found.bytes))
    }

    /// Removes the reserve file if less is free than it holds: then it is worth more as room than as a reserve. Returns whether
    /// it did.
    ///
    /// # Errors
    /// If it cannot be looked at or removed.
    pub fn free_reserve(&self) -> Result<bool> {
        let reserve = self.reserve_bytes()?;
        let is_worth_more = reserve > 0 && self.free_bytes().is_some_and(|free| free < reserve);
        if is_worth_more {
            self.blobs().delete(PATH)?;
        }
        Ok(is_worth_more)
    }

    /// Bytes that are free on the disk of the root for this user; `None` in a bucket, or if they are not known.
    pub fn free_bytes(&self) -> Option<u64> {
        free_bytes(self.blobs().directory()?)
    }

    /// Runs `work`; if the disk is full, removes the reserve and runs it again.
    pub fn with_room<T>(&self, work: impl Fn() -> Result<T>) -> Result<T> {
        match work() {
            Err(error) if is_full(&error) && self.blobs().stat(PATH)?.is_some() => {
                self.blobs().delete(PATH)?;
                work()
            }
            done => done,
        }
    }
}

fn is_full(error: &StoreError) -> bool {
    let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
    matches!(error, StoreError::Blob(BlobError::Io { source, .. }) if full.contains(&source.kind()))
}
