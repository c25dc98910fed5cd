//! Tombstones: the deletes of a table, and the SSTs and inputs to which they apply.
//!
//! A tombstone is an entry in the manifest, as a range tombstone of RocksDB is one of an SST. It hides cells of every older SST
//! when that is read ([`TombstoneFilter`](crate::tombstone::TombstoneFilter)), and of every input first seen before it when that
//! is read again by a load: a rebuilt window or table is the same as if the delete had been made at its original time.
//! Compaction removes the hidden cells.
//!
//! Cells that differ in what they hold but not in row, column and timestamp are hidden together, so it
//! makes no difference whether cells are hidden before or after they are merged. Rows that are replaced
//! whole (`upsert`) are the exception: see [`DeletePlan`](crate::DeletePlan).

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use tidetable_layout::schema::QualifierKind;
use tidetable_layout::{Group, KeyRange};

use crate::version::sst::Sst;

/// Target of a delete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DeleteTarget {
    /// All rows whose keys have this prefix.
    Prefix {
        /// The prefix, not empty.
        #[serde(with = "hex::serde")]
        prefix: Vec<u8>,
    },
    /// All cells of one row.
    Row {
        /// Key of the row, not empty.
        #[serde(with = "hex::serde")]
        key: Vec<u8>,
    },
    /// The cells of a family in one row.
    Family {
        /// Key of the row.
        #[serde(with = "hex::serde")]
        key: Vec<u8>,
        /// Name of the family.
        family: String,
    },
    /// The cells of a column in one row.
    Column {
        /// Key of the row.
        #[serde(with = "hex::serde")]
        key: Vec<u8>,
        /// Name of its family.
        family: String,
        /// Qualifier of the column; hexadecimal in the manifest.
        #[serde(with = "hex::serde")]
        qualifier: Vec<u8>,
        /// Only cells with a timestamp in this range, microseconds, half-open.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        times: Option<Range<i64>>,
    },
}

/// A tombstone of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// What it hides.
    pub target: DeleteTarget,
    /// Applies to inputs with lower sequence numbers, which were first seen before it.
    #[serde(rename = "sequence")]
    pub input_seqno: u64,
    /// Applies to SSTs with lower sequence numbers, which were written before it.
    #[serde(rename = "order")]
    pub seqno: u64,
    /// The version that added it.
    pub version: u64,
    /// Logical time of that version, microseconds since the epoch.
    pub now: i64,
}

impl Tombstone {
    /// Whether it is newer than `sst` and their key ranges overlap.
    pub(crate) fn may_hide(&self, sst: &Sst) -> bool {
        sst.seqno < self.seqno && overlaps(&self.target.keys(), &sst.first_key, &sst.last_key)
    }
}

impl DeleteTarget {
    /// The range of its row keys.
    pub fn keys(&self) -> KeyRange {
        match self {
            Self::Prefix { prefix } => KeyRange::prefix(prefix),
            Self::Row { key } | Self::Family { key, .. } | Self::Column { key, .. } => KeyRange::of_key(key),
        }
    }

    /// Whether it hides whole rows.
    pub fn takes_rows(&self) -> bool {
        matches!(self, Self::Prefix { .. } | Self::Row { .. })
    }

    /// Whether older cells may show in place of the hidden ones. Only if it selects timestamps; otherwise all
    /// versions are hidden.
    pub(crate) fn may_uncover(&self) -> bool {
        matches!(self, Self::Column { times: Some(_), .. })
    }

    /// Whether it has no row key, or would hide the whole table.
    pub(crate) fn names_no_row(&self) -> bool {
        match self {
            Self::Prefix { prefix: key } | Self::Row { key } | Self::Family { key, .. } | Self::Column { key, .. } => {
                key.is_empty()
            }
        }
    }

    /// Whether it hides the cell in `column` of a record of `group`, in a row that matches. `qualifier` is that of
    /// the record, if the group is dynamic.
    pub fn hides(&self, group: &Group, column: usize, qualifier: &[u8], timestamp: i64) -> bool {
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
                // A cell of several events has timestamp 0.
                let timestamp = if group.keeps_duplicates() { 0 } else { timestamp };
                dropped == family && qualifier == own && times.as_ref().is_none_or(|times| times.contains(&timestamp))
            }
        }
    }

    /// Whether it may hide cells of `group`.
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

/// Whether two key ranges overlap; `first` and `last` are inclusive.
pub fn overlaps(keys: &KeyRange, first: &[u8], last: &[u8]) -> bool {
    last >= keys.start.as_slice() && keys.end.as_ref().is_none_or(|end| first < end.as_slice())
}
