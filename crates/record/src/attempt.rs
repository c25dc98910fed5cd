//! Record of a failed attempt that was retried.

use serde::{Deserialize, Serialize};

/// An attempt that failed with a transient error and was retried.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttemptRecord {
    /// The stage, such as `load`.
    pub stage: String,
    /// The subject: a table, a directory of an export, or the sources of the job.
    pub name: String,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// When it failed by the clock, microseconds since the epoch.
    pub failed: i64,
    /// The error that ended the attempt.
    pub error: String,
    /// Wait after it, in seconds.
    pub wait: u64,
}
