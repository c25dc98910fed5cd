//! What brings units to other processes and their answers back.

use std::fmt::Debug;

use crate::fault::stop::Stop;
use crate::fault::unit_failure::CarryError;
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
