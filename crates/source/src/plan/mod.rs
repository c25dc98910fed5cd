//! Plans of declared columns, and the mapping from the columns of a file to them.

mod compile;
mod matching;
mod path_values;

pub(crate) use compile::column_plans;
pub(crate) use matching::{Declaration, Matched, match_columns};
pub use path_values::folder_values;
pub(crate) use path_values::{PathColumn, path_columns, path_values};
