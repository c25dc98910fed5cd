//! Tools over whole files: inspection, verification, fuzzing, failpoints.

#[doc(hidden)]
pub mod failpoints;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod inspect;
mod verify;

pub use inspect::{ChunkInspection, Inspection, StripeInspection};
pub use verify::{Sweep, VerifySummary};
