//! Layouts proposed for a workload: generated, measured, and ranked by what they cost.

mod advise;
mod generate;
mod pairs;

pub use advise::{Advice, Asking, advise};
pub use generate::{Proposed, job_with, proposals};
pub use pairs::{Pair, pairs};
