//! Versions of the rules by which files are read.

use serde::{Deserialize, Serialize};

/// The version of the reading rules of an input: where its records end, and which values its fields have.
///
/// A table keeps it for each input, so that a new build changes nothing that is loaded: an input that grows, or that is
/// read again to rebuild a window, goes on under the rules by which it was loaded. New and changed inputs, and those of a
/// rebuild, are read by [`Self::CURRENT`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReaderVersion(u32);

impl ReaderVersion {
    /// The rules before versions were kept: that of a record without a version.
    pub const FIRST: Self = Self(0);
    /// The rules by which this build reads new and changed inputs.
    pub const CURRENT: Self = Self::SECOND;

    /// The rules of release 0.2: see the methods below.
    const SECOND: Self = Self(1);

    /// Whether this is the version of records without one, which is not written.
    pub fn is_first(&self) -> bool {
        *self == Self::FIRST
    }

    /// Whether these rules are older than those of this build.
    pub fn is_older(self) -> bool {
        self < Self::CURRENT
    }

    /// Whether a quoted field over several lines must end at a delimiter or a line end, CRs before LF belong to the line
    /// end, CRs end the lines of a file without LF, and a repeated header is skipped.
    pub(crate) fn has_strict_records(self) -> bool {
        self >= Self::SECOND
    }

    /// Whether values are read by the wider rules: NaN in float columns of Parquet is null, null markers compare as
    /// numbers and hold for Parquet, INT96 keeps its range, all blanks of Unicode are trimmed, U+2212 is a minus, 24:00 is
    /// the next midnight, seconds may be left out, epoch numbers may have a fraction, and months have names in nine
    /// languages.
    pub(crate) fn reads_more_values(self) -> bool {
        self >= Self::SECOND
    }

    /// Whether a declared column that a file lacks is read from the folders of its path.
    pub(crate) fn reads_folders(self) -> bool {
        self >= Self::SECOND
    }
}
