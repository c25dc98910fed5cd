//! Rules of schema design, checked on the tables of a job file.
//!
//! [`lint`] runs every [`Rule`] of [`RULES`]. Rules that need only the job file always speak; those that need data do if
//! [`DataFacts`] are given. A [`Finding`] has its line, its reason, and where one change mends it, the changed line.
//! [`sarif()`] is the form that code review tools read.

mod check;
mod finding;
mod forms;
mod found;
pub(crate) mod limits;
mod rule;
mod rules;
mod sarif;
mod severity;
mod subject;
mod survey;
#[cfg(test)]
mod tests;
mod words;

pub use crate::facts::{
    CellFacts, DataFacts, FieldFacts, PairFacts, QueryFacts, Reads, RejectFacts, RejectKind, RowFacts, RowGrowth,
    ScaleFacts, TableFacts, ValueFacts, WriteFacts,
};
pub use check::{Report, lint, lint_apart};
pub use finding::{Change, Finding, Place};
pub(crate) use forms::is_domains;
pub use found::Measure;
pub use rule::{Needs, Rule, Severity};
pub use rules::RULES;
pub use sarif::sarif;
pub use survey::{survey, survey_compared};
pub(crate) use words::is_tenant;
