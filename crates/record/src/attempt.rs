//! What a run tried in vain, and then again.

use serde::{Deserialize, Serialize};

/// An attempt that failed for a reason that may pass, after which the run tried again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptRecord {
    /// The stage, such as `load`.
    pub stage: String,
    /// What it was about: a table, a folder of an export, or the sources of the job.
    pub name: String,
    /// Which attempt it was, from 1.
    pub attempt: u32,
    /// When it failed by the clock of the machine, microseconds since the epoch.
    pub failed: i64,
    /// Why.
    pub error: String,
    /// How long the run waited after it, in seconds.
    pub wait: u64,
}
