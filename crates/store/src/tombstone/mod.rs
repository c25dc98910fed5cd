//! Drops: what was deleted of a table, and for which inputs it holds.
//!
//! A drop changes no file. It is an entry in the manifest that hides cells of every SST older than it
//! when they are read ([`TombstoneFilter`]), and of every input first seen before it when that is read again
//! ([`LoadMask`]): a window that is built anew, or a whole table, comes out as if the drop had been
//! made in its own place. A compaction takes the hidden cells out for good.
//!
//! Cells that differ in what they hold but not in row, column and timestamp are hidden together, so it
//! makes no difference whether cells are hidden before or after they are merged. Rows that are replaced
//! whole (`upsert`) are the exception: see [`DeletePlan`].

pub(crate) mod count;
pub(crate) mod filter;
pub(crate) mod load;
pub(crate) mod plan;
#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use tidetable_layout::schema::QualifierKind;
use tidetable_layout::{Group, KeyRange};

use crate::manifest::hex::hex_bytes;
use crate::version::Sst;
pub(crate) use count::cells_of;
pub(crate) use filter::TombstoneFilter;
pub(crate) use load::{Hidden, LoadMask};
pub use plan::DeletePlan;

/// What a drop hides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DeleteTarget {
    /// Every row whose key begins with this.
    Prefix {
        /// First bytes of the keys, never none.
        #[serde(with = "hex_bytes")]
        prefix: Vec<u8>,
    },
    /// One row.
    Row {
        /// Its key.
        #[serde(with = "hex_bytes")]
        key: Vec<u8>,
    },
    /// The cells of a family in one row.
    Family {
        /// Key of the row.
        #[serde(with = "hex_bytes")]
        key: Vec<u8>,
        /// The family.
        family: String,
    },
    /// The cells of a column in one row.
    Column {
        /// Key of the row.
        #[serde(with = "hex_bytes")]
        key: Vec<u8>,
        /// Its family.
        family: String,
        /// Its qualifier.
        #[serde(with = "hex_bytes")]
        qualifier: Vec<u8>,
        /// Only cells with a timestamp in this range, microseconds, half-open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        times: Option<Range<i64>>,
    },
}

/// A drop of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// What it hides.
    pub target: DeleteTarget,
    /// Inputs of a lower sequence were first seen before it.
    pub sequence: u64,
    /// SSTs of a lower order were written before it.
    pub order: u64,
    /// The version it came with.
    pub version: u64,
    /// Logical time of that version, microseconds since the epoch.
    pub now: i64,
}

impl Tombstone {
    /// Whether it is newer than `sst` and their key ranges overlap.
    pub(crate) fn may_hide(&self, sst: &Sst) -> bool {
        sst.order < self.order && overlaps(&self.target.keys(), &sst.first_key, &sst.last_key)
    }
}

impl DeleteTarget {
    /// The keys of the rows it is about.
    pub fn keys(&self) -> KeyRange {
        match self {
            Self::Prefix { prefix } => KeyRange::prefix(prefix),
            Self::Row { key } | Self::Family { key, .. } | Self::Column { key, .. } => KeyRange::of_key(key),
        }
    }

    /// Whether it hides rows as a whole.
    pub fn takes_rows(&self) -> bool {
        matches!(self, Self::Prefix { .. } | Self::Row { .. })
    }

    /// Whether rules may show older cells in the place of those it hides: others hide all cells that take the place of each
    /// other.
    pub(crate) fn may_uncover(&self) -> bool {
        matches!(self, Self::Column { times: Some(_), .. })
    }

    /// Whether it would hide a whole table, or names no row.
    pub(crate) fn names_no_row(&self) -> bool {
        match self {
            Self::Prefix { prefix: key } | Self::Row { key } | Self::Family { key, .. } | Self::Column { key, .. } => {
                key.is_empty()
            }
        }
    }

    /// Of a row it is about, whether it hides the cell that a record of `group` has in `column`.
    /// `qualifier` is the record's own, if the group is dynamic.
    pub(crate) fn hides(&self, group: &Group, column: usize, qualifier: &[u8], timestamp: i64) -> bool {
        let (family, constant) = match (&group.packed, group.columns.get(column)) {
            (Some(packed), _) => (&packed.family, &packed.qualifier),
            (None, Some(column)) => (&column.family, &column.qualifier),
            (None, None) => return false,
        };
        let own = if group.qualifier == QualifierKind::Dynamic { qualifier } else { constant };
        match self {
            Self::Prefix { .. } | Self::Row { .. } => true,
            Self::Family { family: dropped, .. } => dropped == family,
            Self::Column { family: dropped, qualifier, times, .. } => {
                // A cell of many events has timestamp 0, whatever the times of its events.
                let timestamp = if group.keeps_alike() { 0 } else { timestamp };
                dropped == family && qualifier == own && times.as_ref().is_none_or(|times| times.contains(&timestamp))
            }
        }
    }

    /// Whether it could hide a cell of `group`.
    pub(crate) fn concerns(&self, group: &Group) -> bool {
        let family = match self {
            Self::Prefix { .. } | Self::Row { .. } => return true,
            Self::Family { family, .. } | Self::Column { family, .. } => family,
        };
        group.columns.iter().any(|column| column.family == *family)
    }
}

impl fmt::Display for DeleteTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix { prefix } => write!(f, "rows that begin with {}", prefix.escape_ascii()),
            Self::Row { key } => write!(f, "row {}", key.escape_ascii()),
            Self::Family { key, family } => write!(f, "family {family} of row {}", key.escape_ascii()),
            Self::Column { key, family, qualifier, times } => {
                write!(f, "column {family}:{} of row {}", qualifier.escape_ascii(), key.escape_ascii())?;
                if times.is_some() { f.write_str(" in a range of time") } else { Ok(()) }
            }
        }
    }
}

/// Whether two ranges of keys share a key; the second has both ends in it.
pub(crate) fn overlaps(keys: &KeyRange, first: &[u8], last: &[u8]) -> bool {
    last >= keys.start.as_slice() && keys.end.as_ref().is_none_or(|end| first < end.as_slice())
}
