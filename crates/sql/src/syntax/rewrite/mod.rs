//! Statements as parsed, rewritten into what DataFusion plans.

pub(crate) mod cast_labels;
pub(crate) mod file_functions;
pub(crate) mod float_values;
pub(crate) mod syntax;
pub(crate) mod tuple_members;
