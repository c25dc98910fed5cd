//! Inputs of a load: what is new of them, and their rows.

pub(crate) mod feed;
pub(crate) mod plan;
pub(crate) mod prepare;
pub(crate) mod read;
