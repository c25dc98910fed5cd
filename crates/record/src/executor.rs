//! What a process on another machine did for a run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The units that an executor did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutorRecord {
    /// Name of the executor that did units of the run.
    pub executor: String,
    /// Units by kind, such as `load`.
    pub units: BTreeMap<String, u64>,
    /// Rows that it read or published.
    pub rows: u64,
    /// Bytes of inputs that it read.
    pub bytes: u64,
    /// How long its units took, in seconds, summed over those at a time.
    pub seconds: f64,
}
