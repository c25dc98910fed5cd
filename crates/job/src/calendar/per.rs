//! What one part of an export covers.

/// What one part of an export covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Per {
    /// A day of the job's time zone.
    #[default]
    Day,
    /// An hour of UTC.
    Hour,
    /// A month of the job's time zone.
    Month,
    /// All rows of the query.
    Query,
}
