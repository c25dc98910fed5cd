//! Layouts side by side.

mod answers;
mod compare;
mod compared;
mod observe;
mod scaled;

pub use answers::{Answer, Economy, Turn, economy};
pub(crate) use answers::{demand_of, economy_at, value_columns};
pub use compare::{Comparison, compare};
pub use compared::{Compared, HottestRow};
pub use observe::Extent;
pub(crate) use scaled::scaled;
