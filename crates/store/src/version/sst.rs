//! An SST as a version describes it.

use serde::{Deserialize, Serialize};

use crate::version::multi_window::MultiWindow;

/// An SST of a version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sst {
    /// File name without directory and extension: the file's uid as a ULID.
    pub id: String,
    /// Sequence number: among equal cells the one with the greatest wins. SSTs of the same number share no key.
    #[serde(rename = "order")]
    pub seqno: u64,
    /// 0 for an SST of a load, more for those of compactions.
    pub level: u8,
    /// Length of the file.
    pub bytes: u64,
    /// xxh3-128 of the file, hexadecimal.
    pub checksum: String,
    /// Number of rows in the file.
    pub rows: u64,
    /// Number of cells in the file, with hidden and expired ones.
    pub cells: u64,
    /// First row key; hexadecimal in the manifest.
    #[serde(with = "hex::serde")]
    pub first_key: Vec<u8>,
    /// Last row key; hexadecimal in the manifest.
    #[serde(with = "hex::serde")]
    pub last_key: Vec<u8>,
    /// Least stored timestamp, microseconds; `None` if it holds only cells at 0.
    pub min_timestamp: Option<i64>,
    /// Greatest stored timestamp, microseconds.
    pub max_timestamp: Option<i64>,
    /// The windows of a multi-window file; `None` if it holds only the window that lists it.
    #[serde(default, rename = "joined", skip_serializing_if = "Option::is_none")]
    pub multi_window: Option<MultiWindow>,
    /// Upper bounds of its rows and sums; `None` if an older build wrote it.
    #[serde(default, rename = "largest", skip_serializing_if = "Option::is_none")]
    pub bounds: Option<SstBounds>,
    /// Whether it may hold rows without cells, kept for the timestamp of the upsert that emptied them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub emptied: bool,
}

impl Sst {
    /// Whether the key ranges of two SSTs overlap.
    pub fn shares_keys(&self, other: &Self) -> bool {
        self.first_key <= other.last_key && other.first_key <= self.last_key
    }
}

/// Upper bounds of the rows and cells of an SST, so that most commits check limits without opening files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SstBounds {
    /// Bytes of cells of the largest row, at most.
    pub row: u64,
    /// Greatest absolute value of a cell of a sum family, at most.
    pub sum: u64,
}

impl SstBounds {
    /// The bounds of two files that share no row.
    pub(crate) fn max(self, other: Self) -> Self {
        Self { row: self.row.max(other.row), sum: self.sum.max(other.sum) }
    }
}
