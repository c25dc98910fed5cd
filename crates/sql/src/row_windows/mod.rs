//! Window functions over frames of rows, evaluated batch by batch where DataFusion asks once a row.

pub(crate) mod exec;
mod function;
mod state;
