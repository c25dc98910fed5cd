//! What a writer may choose.

/// How hard the codecs try.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compression {
    /// For loads: integers in frames, pco level 4, zstd level 1.
    #[default]
    Fresh,
    /// For compactions: pco level 8, zstd level 7.
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

/// Where a stripe ends. A stripe holds at least one row, however large that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StripeLimits {
    /// Most records of the group that has most: the values of a hot column.
    pub cells: usize,
    /// Most bytes of keys and values before encoding.
    pub bytes: usize,
    /// Most rows.
    pub rows: usize,
}

impl Default for StripeLimits {
    fn default() -> Self {
        Self { cells: 65_536, bytes: 8 << 20, rows: 65_536 }
    }
}

/// How to write a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteOptions {
    /// The file's identity, never used twice.
    pub uid: u128,
    /// How hard the codecs try.
    pub level: Compression,
    /// Where a stripe ends.
    pub stripe: StripeLimits,
}

impl WriteOptions {
    /// The choices for a fresh load.
    pub fn new(uid: u128) -> Self {
        Self { uid, level: Compression::default(), stripe: StripeLimits::default() }
    }
}
