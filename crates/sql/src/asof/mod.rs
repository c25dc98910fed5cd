//! `ASOF JOIN`: joins each row with the row of the other side that is next to it in time.
//!
//! The parser's joins are put in parentheses (`syntax`), planned as a node of our own (`planner`, `node`), and executed by merging
//! inputs sorted by keys and time (`exec`, `merge`).

pub(crate) mod exec;
pub(crate) mod merge;
pub(crate) mod node;
pub(crate) mod physical;
pub(crate) mod planner;
pub(crate) mod sorted;
pub(crate) mod syntax;
