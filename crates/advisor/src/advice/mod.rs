//! Layouts proposed for a workload: generated, measured, and ranked by what they cost.

mod advise;
mod advised;
mod apart;
mod explain;
mod generate;
mod job_text;
mod keys;
mod pairs;
mod pass;
mod refused;
#[cfg(test)]
mod tests;
mod wants;

pub use advise::advise;
pub use advised::Advice;
pub use explain::Explanation;
pub use generate::Proposed;
pub use job_text::job_with;
pub use pairs::{Pair, Second, TableLoad};
pub use pass::Asking;
pub use refused::Refused;
