//! Maintenance of a table: vacuum, verify, repair, health, size limits, pins.

pub(crate) mod health;
pub(crate) mod left_out;
pub(crate) mod pins;
pub(crate) mod repair;
pub(crate) mod size;
pub(crate) mod vacuum;
pub(crate) mod verify;

pub use health::{DamagedFile, TableHealth};
pub use left_out::{leave_out, unreadable};
pub use pins::Pins;
pub use repair::{RepairDone, RepairPlan};
pub use vacuum::{Removal, RemovalKind, VacuumDone, VacuumOptions, VacuumPlan};
pub use verify::{SstReport, TableReport, VerifyOptions};
