//! Layouts side by side.

mod answers;
mod compare;
mod compared;
mod observe;

pub(crate) use answers::value_columns;
pub use answers::{Answer, Economy, Turn, economy};
pub use compare::{Comparison, compare};
pub use compared::{Compared, HottestRow};
pub(crate) use observe::{Extent, observe};
