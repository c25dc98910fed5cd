//! What one part of an export covers.

/// What one part of an export covers, and so what is published and checked as one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Per {
    /// A day of the job's time zone, which has 23 or 25 hours where clocks change.
    #[default]
    Day,
    /// An hour of UTC, whatever the time zone of the job.
    Hour,
    /// A month of the job's time zone, from the start of its first day.
    Month,
    /// All rows of the query, as one part that is published when any of them may have changed.
    Query,
}
