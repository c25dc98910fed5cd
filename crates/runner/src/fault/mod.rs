//! How a run fails or is stopped: its errors, which of them are transient, and the request to stop.

pub(crate) mod catalog_failure;
pub(crate) mod error;
pub(crate) mod lost_store;
pub(crate) mod push_failure;
pub(crate) mod stop;
pub(crate) mod threads;
pub(crate) mod transient;
pub(crate) mod unit_failure;
