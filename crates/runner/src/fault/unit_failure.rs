//! The failure of a unit, as it comes back, and of the way there.

use serde::{Deserialize, Serialize};

/// Why a unit failed in another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} (on {executor})")]
pub struct UnitFailure {
    /// The error, in words.
    pub message: String,
    /// Who ran it.
    pub executor: String,
    /// Whether a retry may succeed.
    pub transient: bool,
    /// Whether it is the executor that does not fit the run, as one of another root: others may do the unit.
    pub unfit: bool,
}

/// Why units were not all answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CarryError {
    /// The run was asked to stop.
    #[error("stopped by signal {signal}")]
    Stopped {
        /// The signal.
        signal: u8,
    },
    /// No scheduler.
    #[error(
        "the scheduler at {place} cannot be reached: {reason}; start it with `tidetable scheduler`, or correct the address. \
         What is committed stays: run the job again"
    )]
    Unreachable {
        /// Its address.
        place: String,
        /// The cause.
        reason: String,
    },
    /// The scheduler refused.
    #[error("the scheduler at {place} refused: {reason}")]
    Refused {
        /// Its address.
        place: String,
        /// The cause.
        reason: String,
    },
    /// Some units were sent several times without an answer.
    #[error(
        "{missing} of {all} units were not done, although they were sent {times} times: {reason}; see the logs of the \
         executors. What is committed stays: run the job again"
    )]
    Unanswered {
        /// Units without an answer.
        missing: usize,
        /// All units.
        all: usize,
        /// How often they were sent.
        times: u32,
        /// The last failure.
        reason: String,
    },
}
