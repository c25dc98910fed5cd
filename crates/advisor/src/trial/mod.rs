//! Trials: candidate layouts encoded in one pass over a job's inputs, in a temporary store.
//!
//! Each layout gets one more family that counts its source rows by row key and second, so that what the
//! cells do not tell (rows that replace each other, packed messages) is known exactly. It is left out of all numbers.

mod candidate;
mod counter;
mod draws;
mod entity;
mod kinds;
mod load;
mod prepare;
mod profile;
mod rejects;
mod repeats;
mod stored;
mod table;
mod visit;

pub use candidate::Candidate;
pub use draws::{Draw, DrawSpec};
pub(crate) use draws::{DrawCollector, time_literal};
pub use kinds::{Kind, Kinds};
pub use load::{Trial, TrialOptions};
pub use prepare::Sample;
pub use profile::{ColumnProfile, Outliers, PairProfile, Profile, ProfiledValue};
pub use rejects::TrialReject;
pub use stored::Overwritten;
pub(crate) use stored::Replaceable;
pub(crate) use table::TIMESTAMP_BYTES;
pub use table::{PartBytes, TrialTable};
pub use visit::{Row, Visitor, Write};
