//! `time_bucket_gapfill`: groups by buckets of time, with the buckets that no row lies in.
//!
//! A logical rule (`rule`) replaces the function by `time_bucket`, and puts a node (`node`) above the aggregation, which adds the
//! missing buckets of each group (`exec`, `fill`).

pub(crate) mod exec;
mod fill;
mod filling;
pub(crate) mod node;
pub(crate) mod physical;
pub(crate) mod rule;
