//! Pushes a table into Bigtable: its families, and its cells or what changed of them.
//!
//! A [`Push`] makes a [`PushPlan`], then runs it. Ranges of keys are read and written in parallel; cells have explicit
//! timestamps, so a request that is sent again changes nothing. Cells of aggregate families are merged once.

mod batch;
mod merge;
mod pace;
mod plan;
mod produce;
mod run;
mod schema;
mod send;
mod split;
mod wire;

pub use plan::{PushChoices, PushPlan};
pub use run::Push;
pub use schema::{FamilyDifference, FamilySchema, TableSchema};
pub(crate) use split::{equal_splits, ranges, thinned, weights};
