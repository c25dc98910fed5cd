//! A lease: the lock of a job whose root is in a bucket, `locks/<job>.lock`.
//!
//! The holder writes it again at intervals, each time with other bytes. Another run may take it after it has watched it
//! unchanged for as long as it says, by its own clock: no two clocks are compared.

use serde::{Deserialize, Serialize};
use tidetable_blobs::{BlobError, Blobs, Tag};
use tidetable_store::StoreError;

use crate::lock::holder::{Holder, lock_name};

/// Allowance for the clocks of machines where nothing but times tells whether a holder lives, seconds.
const CLOCK_SKEW: i64 = 600;

/// The content of a lock in a bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Lease {
    /// Who holds the lease, or held it last.
    #[serde(flatten)]
    pub holder: Holder,
    /// How long it holds without being renewed, seconds.
    pub seconds: u64,
    /// A text that differs with each write, by which others see that the holder lives.
    pub renewal: String,
    /// Whether the holder gave it back.
    pub free: bool,
}

impl Lease {
    /// The lease of `job` and its tag; `None` if there never was one. A damaged one counts as held.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn load(blobs: &dyn Blobs, job: &str) -> Result<Option<(Self, Option<Tag>)>, StoreError> {
        let Some((bytes, tag)) = blobs.read_tagged(&lock_name(job))? else { return Ok(None) };
        Ok(Some((serde_json::from_slice(&bytes).unwrap_or_default(), tag)))
    }

    /// The bytes of the lock of `job`.
    ///
    /// # Errors
    /// If JSON cannot represent it.
    pub fn encode(&self, job: &str) -> Result<Vec<u8>, StoreError> {
        let mut bytes = serde_json::to_vec(self).map_err(|error| {
            let (path, source) = (lock_name(job), std::io::Error::other(error));
            StoreError::Blob(BlobError::Io { action: "write", path, source })
        })?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Whether it was not renewed for so long that its holder is dead, whatever the clocks: `modified` is the time of its
    /// last write by the clock of the store, `clock` the time by ours, both in microseconds.
    pub fn is_abandoned(&self, modified: i64, clock: i64) -> bool {
        let seconds = i64::try_from(self.seconds).unwrap_or(i64::MAX).saturating_add(CLOCK_SKEW);
        clock.saturating_sub(modified) > seconds.saturating_mul(1_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_reads_back_and_a_damaged_one_is_held() {
        let root = tempfile::tempdir().unwrap();
        let blobs = tidetable_blobs::LocalBlobs::new(root.path().to_owned());
        let holder = Holder { run: "01A".to_owned(), process: 7, ..Holder::default() };
        let lease = Lease { holder, seconds: 60, renewal: "01A-1".to_owned(), free: true };
        blobs.replace("locks/j.lock", &lease.encode("j").unwrap()).unwrap();
        assert_eq!(Lease::load(&blobs, "j").unwrap(), Some((lease, None)));
        blobs.replace("locks/j.lock", b"{").unwrap();
        assert_eq!(Lease::load(&blobs, "j").unwrap(), Some((Lease::default(), None)));
        assert_eq!(Lease::load(&blobs, "k").unwrap(), None);
    }

    #[test]
    fn clocks_that_differ_by_ten_minutes_abandon_no_lease() {
        let lease = Lease { seconds: 60, ..Lease::default() };
        let minute = 60_000_000;
        assert!(!lease.is_abandoned(0, 11 * minute) && lease.is_abandoned(0, 11 * minute + 1));
        assert!(!lease.is_abandoned(10 * minute, 0) && !lease.is_abandoned(0, i64::MIN));
    }
}
