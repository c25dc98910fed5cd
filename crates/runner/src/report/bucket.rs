//! Tries whether a bucket can be the root of a store: it is reached, its conditional writes are conditional, and its clock.

use tidetable_blobs::Blobs;
use tidetable_layout::time::MINUTE;

use crate::fault::error::RunError;
use crate::fault::threads::joined;

/// Difference of clocks that is survived, microseconds.
pub const SKEW: i64 = 10 * MINUTE;

/// A bucket that can be the root of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BucketCheck {
    /// How far its clock is ahead of ours, microseconds, to a second or so; `None` if it does not tell.
    pub ahead: Option<i64>,
}

/// Tries a bucket by writing, comparing and removing an object whose name has `id`, which is new. Nothing else is touched.
///
/// # Errors
/// [`RunError::Unconditional`] if the bucket overwrites what it should not, or if it cannot be reached or written.
pub fn check_bucket(blobs: &dyn Blobs, id: &str, clock: fn() -> i64) -> Result<BucketCheck, RunError> {
    let (new, changed) = (format!("checks/{id}-new"), format!("checks/{id}-changed"));

    let (kept, ahead, removed) = std::thread::scope(|scope| {
        // At a time: each reply of a bucket takes tens of milliseconds.
        let kept = scope.spawn(|| (keeps(blobs, &new), blobs.delete(&new)));
        let (ahead, removed) = (compares(blobs, &changed, clock), blobs.delete(&changed));
        let (kept, removed_new) = joined(kept);
        (kept, ahead, removed.and(removed_new))
    });
    kept?;

    let check = BucketCheck { ahead: ahead? };
    removed?;
    Ok(check)
}

/// Whether an object is created only if it is absent.
fn keeps(blobs: &dyn Blobs, path: &str) -> Result<(), RunError> {
    created(blobs, path)?;
    if blobs.create_new(path, b"second")? || blobs.read(path)?.as_deref() != Some(b"first") {
        return refused(blobs, "an object was overwritten that was to be created only if absent (If-None-Match)");
    }
    Ok(())
}

/// Whether an object is replaced only if it has not changed; returns how far the clock of the bucket is ahead.
fn compares(blobs: &dyn Blobs, path: &str, clock: fn() -> i64) -> Result<Option<i64>, RunError> {
    let before = clock();
    created(blobs, path)?;
    let after = clock();
    let (bytes, first) = blobs.read_tagged(path)?.unwrap_or_default();
    if bytes != b"first".as_slice() {
        return refused(blobs, "an object was not there after it was written");
    }

    let Some(first) = first else { return refused(blobs, "its objects have no tags (ETag) to compare") };
    let Some(second) = blobs.replace_if(path, b"second", &first)? else {
        return refused(blobs, "it refused to replace an object that had not changed (If-Match)");
    };

    let is_replaced = blobs.replace_if(path, b"third", &first)?.is_some();

    let (bytes, found) = std::thread::scope(|scope| {
        let found = scope.spawn(|| blobs.stat(path));
        (blobs.read(path), joined(found))
    });
    if is_replaced || bytes?.as_deref() != Some(b"second") || first == second {
        return refused(blobs, "an object was overwritten that had changed (If-Match)");
    }

    // Its time is that of the second write, which came after both times of ours, or of the first.
    let modified = found?.and_then(|found| found.modified);
    let now = clock();
    Ok(modified.map(|modified| match modified {
        late if late > now => late - now,
        early if early < before.min(after) => early - before.min(after),
        _ => 0,
    }))
}

fn created(blobs: &dyn Blobs, path: &str) -> Result<(), RunError> {
    if blobs.create_new(path, b"first")? { Ok(()) } else { refused(blobs, "it refused to create a new object") }
}

fn refused<T>(blobs: &dyn Blobs, what: &'static str) -> Result<T, RunError> {
    Err(RunError::Unconditional { root: blobs.display(), what })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use object_store::memory::InMemory;
    use tidetable_blobs::{BucketBlobs, LocalBlobs};

    use super::*;

    #[test]
    fn a_bucket_that_compares_is_right_and_one_that_does_not_is_refused() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let store = Arc::new(InMemory::new());
        let bucket = BucketBlobs::new(store, "root".into(), runtime.handle().clone(), "memory".to_owned());
        let bucket: &dyn Blobs = &bucket;
        let now = || chrono::Utc::now().timestamp_micros();
        assert_eq!(check_bucket(bucket, "1", now).unwrap(), BucketCheck { ahead: Some(0) });
        let late = check_bucket(bucket, "2", || 0).unwrap().ahead.unwrap();
        assert!(late > SKEW, "{late}");
        assert!(bucket.list("").unwrap().is_empty());
        // A directory has no tags.
        let root = tempfile::tempdir().unwrap();
        let directory: &dyn Blobs = &LocalBlobs::new(root.path().to_owned());
        let refused = check_bucket(directory, "1", || 0).unwrap_err();
        assert!(matches!(refused, RunError::Unconditional { .. }), "{refused}");
        assert!(directory.list("checks").unwrap().is_empty());
    }
}
