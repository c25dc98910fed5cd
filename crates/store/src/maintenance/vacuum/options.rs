//! What a vacuum may remove.

/// What vacuum may remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VacuumOptions {
    /// Only versions that were replaced, and files that were written, before this: microseconds since the epoch.
    pub before: i64,
    /// Only half-written files that were last written before this. Their writer may be at it still, and would finish
    /// another's file if that got the name: an hour is the least to leave them.
    pub half_written_before: i64,
    /// The newest versions, so many, stay in any case; one at least. Those that vacuum itself commits do not count: they
    /// hold what the one before them does.
    pub keep_versions: u64,
}
