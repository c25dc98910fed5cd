//! Simulated disks and buckets with fault injection.

mod bucket;
mod disk;
mod flaky;
mod platter;
mod shelf;
mod stop;

pub use bucket::FaultyBucket;
pub use disk::{Boundary, Call, Fault, FaultKind, SimDisk};
pub use flaky::Flaky;
pub use platter::{Loss, Platter};
pub use shelf::Shelf;
pub use stop::{Stop, StopDisk, places};
