//! Checks: rules that a part must satisfy before it is published.

pub(crate) mod checker;
pub(crate) mod on_demand;
pub(crate) mod presence;
