//! Locks of jobs: who holds one, as a file or as a lease of a bucket, and what that says of its run.

pub(crate) mod holder;
pub(crate) mod lease;
pub(crate) mod state;
