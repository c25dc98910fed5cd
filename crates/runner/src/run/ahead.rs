//! What a run reads at its beginning. In a bucket it is asked for at a time: each reply takes as long as any other.

use tidetable_job::Job;
use tidetable_record::{Failures, RunRecord, Seen};
use tidetable_store::Store;

use super::RunError;
use crate::fault::threads::joined;

/// What a run knows before its stages begin.
pub(super) struct Ahead {
    /// Gone and copied inputs that the last run of the job saw.
    pub(super) seen: Seen,
    /// What is still to be done for the job; `None` if it is to be read when it is wanted.
    pub(super) failures: Option<Failures>,
}

impl Ahead {
    /// Writes the first record of a run, if the root is `fit`, and reads what the run needs. Of a `store` that follows its
    /// own commits, the newest versions of the job's tables are known then.
    ///
    /// # Errors
    /// If the root is not fit, or the record cannot be written. What cannot be read is read again, and reported, when it
    /// is wanted.
    pub(super) fn begin(
        store: &Store,
        job: &Job,
        record: &RunRecord,
        fit: impl FnOnce() -> Result<(), RunError> + Send,
    ) -> Result<Self, RunError> {
        let blobs = store.blobs().as_ref();
        if !blobs.capabilities().round_trips {
            fit()?;
            record.save(blobs)?;
            return Ok(Self { seen: Seen::load(blobs, &job.name), failures: None });
        }

        std::thread::scope(|scope| {
            let saved = scope.spawn(|| fit().and_then(|()| Ok(record.save(blobs)?)));
            let failures = scope.spawn(|| Failures::load(blobs, &job.name));
            for table in &job.tables {
                scope.spawn(move || store.table(&table.spec.name).latest());
            }
            scope.spawn(|| store.tables());
            let seen = Seen::load(blobs, &job.name);

            joined(saved)?;
            Ok(Self { seen, failures: failures.join().ok().and_then(Result::ok) })
        })
    }
}
