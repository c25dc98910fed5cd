//! Looking back, without running anything: how jobs stand, what came from what, and what may be cleaned away.

mod clean;
mod days;
mod lineage;
mod status;

pub use clean::{CleanOptions, CleanPlan, Cleaned, CleanedKind};
pub use lineage::{Lineage, Link, LinkKind};
pub use status::{DaysOf, Status, Statuses, statuses};
