//! Delimited text: record boundaries, fields, and two equivalent row parsers, fast and general.

#[cfg(any(test, fuzzing))]
mod both_paths;
mod dialect;
mod later_header;
mod notes;
mod rows;
#[cfg(test)]
mod tests;
mod unnamed;

#[cfg(fuzzing)]
pub use both_paths::Outcome;
#[cfg(any(test, fuzzing))]
pub(crate) use both_paths::both_paths;
pub(crate) use dialect::{Dialect, Scan, Seam, Span, is_separator_line, split};
pub(crate) use later_header::{CsvHeader, LaterHeader, LaterHeaders};
pub use notes::{Counted, TextNotes};
pub(crate) use rows::{Block, CsvPlan, Parsed, is_annotation, parse};
pub(crate) use unnamed::{name_again, name_by_place, name_wanted_again};
