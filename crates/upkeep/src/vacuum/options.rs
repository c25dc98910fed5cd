//! Options of a vacuum.

/// Options of a vacuum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VacuumOptions {
    /// Removes only versions replaced, and files written, before this instant; microseconds since the epoch.
    pub before: i64,
    /// Removes only unfinished files last written before this instant, at least an hour ago. Their writer may still
    /// be at work, and would finish another writer's file of the same name.
    pub half_written_before: i64,
    /// Number of newest versions to keep, at least one. Versions that vacuum itself commits are not counted.
    pub keep_versions: u64,
}
