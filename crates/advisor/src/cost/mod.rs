//! What a layout costs, by a file of prices and capacities.

mod estimate;
mod limits;
mod prices;
mod score;

pub(crate) use estimate::KIB;
pub use estimate::{Cost, Costing, QueryLoad, Unservable, cost};
pub use limits::{Bound, Limits};
pub use prices::{GIB, Prices};
pub(crate) use score::{ALIKE, BUSY_ALIKE, LEAST_BUSY, sorted_alike};
pub use score::{Criterion, Score, criterion, score, winner};
