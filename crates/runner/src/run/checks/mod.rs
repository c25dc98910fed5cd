//! Checks: queries that count what must not be there.

pub(crate) mod measure;
pub(crate) mod on_demand;
pub(crate) mod presence;
