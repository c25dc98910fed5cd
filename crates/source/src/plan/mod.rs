//! Plans of declared columns, and the mapping from the columns of a file to them.

mod column_diff;
mod column_plan;
mod compile;
mod matching;

pub use column_diff::ColumnDiff;
pub(crate) use column_plan::ColumnPlan;
pub(crate) use compile::column_plans;
pub(crate) use matching::{Matched, match_columns};
