//! Numbers of a column: how they are written, and the type that gives them back so.

pub(in crate::sample) mod codes;
pub(in crate::sample) mod forms;
pub(in crate::sample) mod missing;
pub(in crate::sample) mod notation;
pub(in crate::sample) mod unit;
