//! Checks: rules that a part must satisfy before it is published.

pub(crate) mod checker;
pub(crate) mod presence;
