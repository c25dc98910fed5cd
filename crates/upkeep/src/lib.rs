//! Upkeep of a table: compaction, vacuum, verification, repair, health, pins.
//!
//! Each plans first, from manifests alone where that suffices, and then writes files and commits an edit or removes what no
//! version names. Nothing here reads an input.

pub mod compaction;
mod health;
mod pins;
mod repair;
mod vacuum;
mod verify;

pub use health::{DamagedFile, TableHealth};
pub use pins::{Pins, pinned};
pub use repair::{RepairDone, RepairPlan};
pub use vacuum::{Removal, RemovalKind, VacuumDone, VacuumOptions, VacuumPlan, leftovers};
pub use verify::{SstReport, TableReport, VerifyOptions, verify};
