//! A little room that is given up when the disk is full.
//!
//! What frees space must be able to write: a vacuum commits which files may be gone before it removes them. So a root
//! keeps a file that holds nothing, made while there is room; a vacuum that finds the disk full removes it and tries again.

use std::io::ErrorKind;

use crate::error::{Result, StoreError};
use crate::store::Store;

/// Hidden, so that no listing shows it.
const PATH: &str = ".reserve";
/// As much as the manifests and checkpoints of some large tables take.
const BYTES: usize = 4 << 20;
const ABOUT: &[u8] = b"Room that tidetable vacuum gives up when the disk is full. It holds nothing.\n";

impl Store {
    /// Makes the file, if it is not there and the store is on a disk.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_reserve(&self) -> Result<()> {
        if !self.blobs().can_be_full() || self.blobs().stat(PATH)?.is_some() {
            return Ok(());
        }
        // A disk that compresses keeps no room for zeros.
        let mut bytes = Vec::with_capacity(BYTES + 8);
        bytes.extend_from_slice(ABOUT);
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        while bytes.len() < BYTES {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            bytes.extend_from_slice(&state.to_le_bytes());
        }
        self.blobs().create_new(PATH, &bytes).map(|_| ())
    }

    /// Does `work`, which may be done twice: if the disk is full, once more without the reserve.
    pub(crate) fn with_room<T>(&self, work: impl Fn() -> Result<T>) -> Result<T> {
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
    matches!(error, StoreError::Io { source, .. } if full.contains(&source.kind()))
}
