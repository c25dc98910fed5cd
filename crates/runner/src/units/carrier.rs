//! What brings units to other processes and their answers back.

use std::fmt::Debug;

use crate::run::Stop;
use crate::units::wire::{Answer, Unit};

/// Brings units to other processes. One carrier serves a whole run.
pub trait UnitCarrier: Debug + Send + Sync {
    /// Has `units` run, each at least once, and passes the answers to `take` with the index of the unit: in any order, from
    /// any thread, and one at least for each unit unless an error is returned. `take` returns whether to go on.
    ///
    /// # Errors
    /// [`CarryError`]; the answers that were taken stay valid.
    fn carry(
        &self,
        units: &[Unit],
        stop: &Stop,
        take: &(dyn Fn(usize, Answer) -> bool + Sync),
        note: &(dyn Fn(String) + Sync),
    ) -> Result<Carried, CarryError>;

    /// Where the units go, for people.
    fn place(&self) -> String;
}

/// How units were carried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Carried {
    /// Units that were sent again because their answers did not come.
    pub resent: usize,
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
