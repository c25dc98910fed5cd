//! Options of writers: compression effort, and limits of stripes.

/// The effort of compression, which trades the speed of writing for size. All levels are read alike.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// For loads: PFOR, pco level 4, zstd level 1.
    #[default]
    Fresh,
    /// For compactions, whose output is read many times: pco level 8, zstd level 7.
    Dense,
}

impl Compression {
    pub(crate) fn pco_level(self) -> usize {
        match self {
            Self::Fresh => 4,
            Self::Dense => 8,
        }
    }

    pub(crate) fn zstd_level(self) -> i32 {
        match self {
            Self::Fresh => 1,
            Self::Dense => 7,
        }
    }
}

/// Limits of a stripe. A stripe holds at least one row, even if that exceeds a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StripeLimits {
    /// The most records of any one group, about as many as cells of a column.
    pub cells: usize,
    /// The most bytes of keys and values before encoding.
    pub bytes: usize,
    /// The most rows, whatever their size.
    pub rows: usize,
}

impl Default for StripeLimits {
    fn default() -> Self {
        Self { cells: 65_536, bytes: 8 << 20, rows: 65_536 }
    }
}

/// Options of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteOptions {
    /// The file's unique id, random. Checksums depend on it, so that parts of other files are detected.
    pub uid: u128,
    /// Compression effort of pages, heads and meta.
    pub level: Compression,
    /// Limits of a stripe, for callers that split blocks with [`stripe_splits`](crate::stripe_splits).
    pub stripe: StripeLimits,
}

impl WriteOptions {
    /// The options of a file that a load writes: fast compression, stripes of the default size.
    pub fn new(uid: u128) -> Self {
        Self { uid, level: Compression::default(), stripe: StripeLimits::default() }
    }
}
