//! Reports on a store, without running anything: status of jobs, lineage, removable files, and
//! damage.

pub(crate) mod clean;
pub(crate) mod days;
pub(crate) mod doctor;
pub(crate) mod lineage;
pub(crate) mod status;

pub use clean::{CleanOptions, CleanPlan, Cleaned, CleanedKind};
pub use doctor::{Diagnosis, Finding, FindingKind};
pub use lineage::{Lineage, Link, LinkKind};
pub use status::{DaysOf, Status, Statuses, statuses};
