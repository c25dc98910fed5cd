//! Lines of JSON: where values are, the columns that they are of, lists of events, and batches of OpenTelemetry.

mod keyed;
mod lists;
mod names;
mod otel;
mod paths;
mod rows;
mod scan;
#[cfg(test)]
mod tests;

pub(crate) use keyed::Keyed;
pub(crate) use names::{Names, Wanted, is_otel, likely_lists};
pub(crate) use paths::Paths;
pub(crate) use rows::{JsonPlan, parse};
