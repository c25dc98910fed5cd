//! Layouts side by side.

mod answers;
mod compare;

pub use answers::{Answer, Economy, economy};
pub use compare::{Compared, Comparison, HottestRow, compare};
