//! Layouts side by side.

mod answers;
mod compare;

pub(crate) use answers::value_columns;
pub use answers::{Answer, Economy, economy};
pub use compare::{Compared, Comparison, HottestRow, compare};
