//! Corrections of joins.

pub(crate) mod long_join_chains;
pub mod merge_joins;
pub(crate) mod null_equal_keys;
pub(crate) mod yielding_joins;
