//! What units do, and what they return. Plain data.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};
use tidetable_export::ParkedDraft;
use tidetable_ingest::{LoadUnit, LoadUnitDone};
use tidetable_record::{CheckRecord, FailingRow};
use tidetable_store::published::{ColumnIds, Part as ListedPart};
use tidetable_upkeep::compaction::{MergePlan, Merged};

use crate::units::columns::DifferingFiles;
use crate::units::rejects::CarriedRejects;

/// Some inputs to load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoadWork {
    pub(crate) from: LoadFrom,
    /// The tables, in the order of the unit.
    pub(crate) tables: Vec<String>,
    pub(crate) unit: LoadUnit,
}

/// Where the rows of a load come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum LoadFrom {
    /// The source of this name.
    Source(String),
    /// The query of the table.
    Query {
        /// The versions of the tables that it reads.
        versions: Versions,
        /// Event times of its inputs, microseconds, half-open.
        times: HashMap<String, (i64, i64)>,
    },
}

/// Versions of tables: number, and the id of its commit, which no other root has.
pub(crate) type Versions = BTreeMap<String, (u64, String)>;

/// What a unit of a load returns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoadAnswer {
    pub(crate) done: LoadUnitDone,
    pub(crate) rejected: CarriedRejects,
    pub(crate) others: Vec<DifferingFiles>,
}

/// A part to publish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PublishWork {
    pub(crate) export: String,
    pub(crate) label: String,
    /// Name of its directory.
    pub(crate) folder: String,
    /// Fingerprint of the query and its settings.
    pub(crate) query: String,
    /// For each table, the last version that changed the part.
    pub(crate) sources: BTreeMap<String, u64>,
    /// The part as listed before.
    pub(crate) previous: Option<ListedPart>,
    /// The versions to read of the tables that the export reads.
    pub(crate) versions: Versions,
    /// The ids of columns so far, if files have ids.
    #[serde(default)]
    pub(crate) column_ids: Option<ColumnIds>,
}

/// A part that was checked and, if it may be published, written, as an answer has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ParkedPart {
    pub(crate) checks: Vec<CheckRecord>,
    /// A sample of the rows that broke rules.
    pub(crate) failing: Vec<FailingRow>,
    pub(crate) draft: Option<ParkedDraft>,
    /// Rows of the part.
    pub(crate) rows: u64,
}

/// Some merges of a version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CompactWork {
    pub(crate) table: String,
    /// Number, and the id of its commit.
    pub(crate) version: (u64, String),
    /// Logical time at which rules are applied.
    pub(crate) now: i64,
    pub(crate) merges: Vec<MergePlan>,
}

/// The result of each merge; a failed one with its error and whether rows exceed a limit.
pub(crate) type CompactAnswer = Vec<Result<Merged, (String, bool)>>;
