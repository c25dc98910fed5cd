//! `PrepareQuery` and `ExecuteQuery`: GoogleSQL over rows, answered by the SQL engine.

#[cfg(test)]
mod documented;
mod execute;
mod parameters;
mod prepare;
mod queries;
mod token;
mod types;
mod values;

pub(crate) use queries::{Queries, check_execute};
