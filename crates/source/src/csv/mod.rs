//! Delimited text: where records end, which column is which, and two ways to read rows that mean the same.

#[cfg(any(test, fuzzing))]
mod both;
mod dialect;
mod fields;
mod rows;
#[cfg(test)]
mod tests;

#[cfg(fuzzing)]
pub use both::Outcome;
#[cfg(any(test, fuzzing))]
pub(crate) use both::both_ways;
pub(crate) use dialect::{Dialect, Scan, Span, body, split};
pub(crate) use fields::Slices;
pub(crate) use rows::{Block, CsvPlan, parse};
