//! What writes tables into Bigtable: a run only says which, and when.

use std::fmt::Debug;

use tidetable_job::{Project, Push};
use tidetable_record::PushRecord;
use tidetable_store::Store;

use crate::fault::push_failure::PushFailure;
use crate::fault::stop::Stop;

/// Writes tables into Bigtable.
pub trait Pusher: Debug + Send + Sync {
    /// Brings the target of `push` up to the newest version of its table, in the run called `run`.
    ///
    /// # Errors
    /// What ended it; a later call goes on from there.
    fn push(
        &self,
        project: &Project,
        store: &Store,
        push: &Push,
        run: &str,
        stop: &Stop,
    ) -> Result<PushRecord, PushFailure>;
}
