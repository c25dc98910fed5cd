//! `PrepareQuery` and `ExecuteQuery`: GoogleSQL over rows, answered by the SQL engine.

mod execute;
mod parameters;
mod prepare;
mod queries;
#[cfg(test)]
mod tests;
mod token;
mod types;
mod values;

pub(crate) use queries::{Queries, check_execute};
