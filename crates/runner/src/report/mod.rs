//! Reports on a store, without running anything: status of jobs, a job at a glance, lineage, removable files,
//! damage, and buckets.

pub(crate) mod bucket;
pub(crate) mod clean;
pub(crate) mod days;
pub(crate) mod doctor;
pub(crate) mod input_places;
pub(crate) mod lineage;
pub(crate) mod lost_lists;
pub(crate) mod overview;
pub(crate) mod reject_files;
pub(crate) mod status;

use tidetable_layout::time::HOUR;

pub use bucket::{BucketCheck, SKEW, check_bucket};
pub use clean::{CleanOptions, CleanPlan, Cleaned, CleanedKind};
pub use doctor::{Diagnosis, Finding, FindingKind};
pub use input_places::InputPlaces;
pub use lineage::{Lineage, Link, LinkKind};
pub use lost_lists::lost_lists;
pub use overview::{DayOf, DayState, Overview, Place, PlaceKind, RuleValue, RuleValues, Step};
pub use reject_files::{RejectDamage, RejectFile, reject_files};
pub use status::{DaysOf, OwedOf, PushedTable, Status, Statuses, statuses};

/// Minimum age of a half-written file, and of a file that a running process may be about to name; microseconds.
pub(crate) const MIN_AGE: i64 = HOUR;

/// Directory of damaged files that `doctor --fix` moved away.
pub(crate) const QUARANTINE: &str = "quarantine";
