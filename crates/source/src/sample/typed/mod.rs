//! Files that have columns with their types: what is declared of them, and what their values say besides.

pub mod dump;
mod footer;
mod values;

pub(super) use footer::{TypedColumns, columns};
pub(super) use values::refine;
