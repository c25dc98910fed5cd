//! Why a file shows too little.

use crate::error::SourceError;
use crate::reject::Rejected;

/// Why nothing can be said of a file's columns. Each message says what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SampleError {
    /// It cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// It has no rows.
    #[error("{path}: there are no rows; give a file that has some, below a header line if it is CSV")]
    Empty {
        /// File.
        path: String,
    },
    /// One row is not enough to distinguish entities from measurements.
    #[error("{path}: there is one row only, which does not tell names from measurements; give a file with more rows")]
    OneRow {
        /// File.
        path: String,
    },
    /// Nothing separates columns.
    #[error("{path}: the first line has one column only; separate columns by a comma, semicolon, tab or `|`")]
    OneColumn {
        /// File.
        path: String,
    },
    /// Another encoding.
    #[error(
        "{path}, line {line}: not UTF-8; convert the file first, as in: iconv -f {encoding} -t utf-8 {path} > NEW.csv"
    )]
    NotUtf8 {
        /// File.
        path: String,
        /// Line, from 1.
        line: u64,
        /// What the encoding most likely is, as `iconv` calls it.
        encoding: &'static str,
    },
    /// Lines of another kind before the header.
    #[error("{path}: the header is on line {line}{what}; give a file that begins with it: {command}")]
    Preamble {
        /// File.
        path: String,
        /// Line of the header, from 1.
        line: u64,
        /// What kind of file it is, if that is known.
        what: &'static str,
        /// A command that writes that file.
        command: String,
    },
    /// Rows that do not fit the header.
    #[error("{path}, {first}; so it is with {odd} of {rows} rows: correct the file first")]
    Odd {
        /// File.
        path: String,
        /// The first of them.
        first: Box<Rejected>,
        /// How many.
        odd: u64,
        /// Rows sampled.
        rows: u64,
    },
}
