//! Maintenance of a table: vacuum, verify, repair, health, size limits, pins.

pub(crate) mod health;
pub(crate) mod left_out;
pub(crate) mod pins;
pub(crate) mod repair;
pub(crate) mod size;
pub(crate) mod vacuum;
pub(crate) mod verify;
