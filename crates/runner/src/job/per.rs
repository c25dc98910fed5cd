//! What one part of an export covers.

/// What one published table covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Per {
    /// A day of the job's time zone.
    #[default]
    Day,
    /// An hour of UTC.
    Hour,
    /// A month of the job's time zone.
    Month,
    /// All that the query returns.
    Query,
}
