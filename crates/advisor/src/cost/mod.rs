//! What a layout costs, by a file of prices and capacities.

mod estimate;
mod limits;
mod prices;
mod score;

pub use estimate::{Cost, Demand, GIB, QueryLoad, Ranges, Unservable, cost, declared_rate};
pub use limits::{Bound, Limits};
pub use prices::Prices;
pub use score::{Score, score, winner};
