//! What the logs of tables share, of whichever kind: the files of the list, their statistics, the ids of columns.

pub(crate) mod column_ids;
pub(crate) mod footer;
pub(crate) mod listed;

use std::collections::{BTreeMap, BTreeSet};

use tidetable_store::published::Published;

/// The log that is kept beside the files of an export, so that other engines see each run as one snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableLog {
    /// Entries of JSON in `_delta_log`.
    Delta,
    /// Metadata of an Iceberg table, version 2, in `metadata`.
    Iceberg,
}

/// When a run writes, and how long replaced files stay.
#[derive(Debug, Clone, Copy)]
pub struct LogTimes {
    /// Logical time of the run, microseconds.
    pub now: i64,
    /// The time, microseconds: from here on removed files are kept.
    pub clock: i64,
    /// How long removed files stay for readers of older versions, microseconds.
    pub retention: i64,
}

/// Snapshots that a run does not take out of the log, whatever their age: readers of a catalog may still be at them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pinned {
    /// All: which ones the catalog names is not known.
    All,
    /// Those with these ids; none without a catalog.
    Ids(BTreeSet<i64>),
}

impl Default for Pinned {
    fn default() -> Self {
        Self::Ids(BTreeSet::new())
    }
}

/// Retention of a table that says none: the default of Delta, microseconds.
pub const SNAPSHOT_RETENTION: i64 = 7 * 24 * 60 * 60 * 1_000_000;

/// The least retention, microseconds: readers may take as long for one query.
pub const LEAST_SNAPSHOT_RETENTION: i64 = 60 * 60 * 1_000_000;

/// How often a version is made again when another writer has taken its number.
pub(crate) const TRIES: usize = 3;

impl TableLog {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Delta, Self::Iceberg];

    /// Name of its directory, beside the files.
    pub fn directory(self) -> &'static str {
        match self {
            Self::Delta => "_delta_log",
            Self::Iceberg => "metadata",
        }
    }

    /// Its key in a job file.
    pub fn key(self) -> &'static str {
        match self {
            Self::Delta => "delta",
            Self::Iceberg => "iceberg",
        }
    }

    /// What the log is called.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Delta => "Delta log",
            Self::Iceberg => "Iceberg metadata",
        }
    }

    /// What the table is called, with its article.
    pub fn table(self) -> &'static str {
        match self {
            Self::Delta => "a Delta table",
            Self::Iceberg => "an Iceberg table",
        }
    }

    /// Path inside the store of the log of the table in `folder`.
    pub fn path(self, folder: &str) -> String {
        format!("exports/{folder}/{}", self.directory())
    }

    /// Whether the export of a list may have such a log: one that tells columns by id leaves ids in the list.
    pub(crate) fn may_be_of(self, published: &Published) -> bool {
        match self {
            Self::Delta => true,
            Self::Iceberg => published.column_ids.is_some(),
        }
    }

    /// Whether its paths are relative, so that it is of use beside a copy of the files. Iceberg's are not: the next run in
    /// a copy writes new metadata.
    pub fn moves_with_files(self) -> bool {
        self == Self::Delta
    }
}

/// The files that the newest version of a log has.
#[derive(Debug, Default)]
pub(crate) struct LoggedFiles {
    /// Paths below the directory of the table.
    pub(crate) files: BTreeSet<String>,
    /// What is wrong with the log besides.
    pub(crate) damage: Option<String>,
}

/// What a log tells of files that are no longer needed.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Paths below the directory of the table of files that stay.
    pub(crate) kept: BTreeSet<String>,
    /// When files were removed, microseconds.
    pub(crate) removed: BTreeMap<String, i64>,
    /// Files of the log itself that may go.
    pub(crate) own: Vec<String>,
    /// How long removed files stay, microseconds; `None` if the log does not say.
    pub(crate) retention: Option<i64>,
}
