//! Columns of Arrow, from files that have columns, to the declared ones.
//! `columns` says where they are, `event_lists` which lists are events, of which `explode` makes rows, and `coerce` chooses the way to a declared type, by
//! `numbers`, `times` and `json_text`. `plan` holds all of it for one file.

mod coerce;
mod coerced;
mod columns;
mod event_lists;
mod explode;
mod int96;
mod json_text;
mod numbers;
mod plan;
#[cfg(test)]
mod tests;
mod times;
mod type_words;

pub(crate) use columns::{FileColumn, columns, in_micros};
pub(crate) use explode::Lists;
pub(crate) use int96::{Leaf, read as read_int96};
pub(crate) use plan::{ColumnarPlan, Int96Values, Parsed};
pub(crate) use type_words::{type_words, unit_words};
