//! One file for each section of a job file.

pub(crate) mod allowance;
pub(crate) mod catch_up;
pub(crate) mod checks;
pub(crate) mod declared_table;
pub(crate) mod dump;
pub(crate) mod export;
pub(crate) mod messages;
pub(crate) mod push;
pub(crate) mod reporting;
pub(crate) mod root;
pub(crate) mod source;
pub(crate) mod stages;
pub(crate) mod storage;
pub(crate) mod table;
pub(crate) mod table_input;
