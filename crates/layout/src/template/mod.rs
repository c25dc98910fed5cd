//! Templates of keys, qualifiers and values: parsed, bound to columns, printed and read back.

pub(crate) mod dependence;
pub(crate) mod form;
mod hex;
pub mod outline;
pub(crate) mod parse;
mod percent;
pub(crate) mod print;
pub(crate) mod segment;
pub(crate) mod time_format;
