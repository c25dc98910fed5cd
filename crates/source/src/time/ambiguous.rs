//! Local times that occur twice.

/// Which instant a local time is that occurs twice, because the clocks go back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Ambiguous {
    /// The earlier one.
    #[default]
    Earlier,
    /// The later one.
    Later,
    /// The one that follows the time before it in the file, of the same series: the first pass of the hour is the earlier one,
    /// the second the later one. See [`crate::SourceSpec::series`].
    ByOrder,
}

impl Ambiguous {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Earlier, Self::Later, Self::ByOrder];

    /// As it is written in a job file.
    pub fn key(self) -> &'static str {
        match self {
            Self::Earlier => "earlier",
            Self::Later => "later",
            Self::ByOrder => "by-order",
        }
    }
}
