//! Why a file shows too little for a declaration of its columns.

use crate::error::SourceError;
use crate::format::conversion;
use crate::reject::Rejected;

/// Why nothing can be said of a file's columns. Each message says what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum SampleError {
    /// The file cannot be read, by the same reader as that of a load.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The file has no rows from which types could be told.
    #[error("{path}: there are no rows; give a file that has some, below a header line if it is CSV")]
    Empty { path: String },
    /// One row is not enough to distinguish entities from measurements.
    #[error("{path}: there is one row only, which does not tell names from measurements; give a file with more rows")]
    OneRow { path: String },
    /// No delimiter that is tried separates columns.
    #[error("{path}: the first line has one column only; separate columns by a comma, semicolon, tab or `|`")]
    OneColumn { path: String },
    /// Values without times, below the time of the first and their rate.
    #[error(
        "{path}: the first line is a time, the second a rate, and each other a value; write the time of each before it first: \
         {command}"
    )]
    StartAndRate {
        path: String,
        /// A command that writes a file with times.
        command: String,
    },
    /// Runs of blanks separate columns.
    #[error("{path}: runs of blanks separate the columns, which {rule}; separate them by commas first: {command}")]
    Blanks {
        path: String,
        /// How the columns are told apart.
        rule: &'static str,
        /// A command that writes a file with delimiters.
        command: String,
    },
    /// Points in InfluxDB's line protocol.
    #[error(
        "{path}: it holds points in InfluxDB's line protocol, which is not read; export them as CSV, as in: influx query --raw"
    )]
    LineProtocol { path: String },
    /// Lines of one form without a header, none of whose values is a time or a number.
    #[error(
        "{path}: the first line has the form of the others, and no column holds times or numbers, as in a log; make a table \
         of it first, with a header and a delimiter between the time and the values"
    )]
    Log { path: String },
    /// The text has another encoding than UTF-8.
    #[error(
        "{path}, line {line}: not UTF-8; convert the file first, as in: {}",
        conversion(path, &format!("iconv -f {encoding} -t utf-8"), true)
    )]
    NotUtf8 {
        path: String,
        line: u64,
        /// What the encoding most likely is, as `iconv` calls it.
        encoding: &'static str,
    },
    /// Lines of another kind before the header.
    #[error("{path}: the {start} on line {line}{what}; give a file that begins with it: {command}")]
    Preamble {
        path: String,
        line: u64,
        /// What is on that line, with its verb.
        start: &'static str,
        /// What kind of file it is, if that is known.
        what: &'static str,
        /// A command that writes a file without these lines.
        command: String,
    },
    /// Rows with more values than the header has names.
    #[error("{path}: the header has {names} names, and line {line} has {values} values; {hint}")]
    MoreValues {
        path: String,
        names: usize,
        values: usize,
        line: u64,
        /// Why that may be, and what to do.
        hint: String,
    },
    /// Rows that do not fit the header.
    #[error("{path}, {first}; so it is with {odd} of {rows} rows: {way}")]
    Odd {
        path: String,
        /// The first of the rejected rows.
        first: Box<Rejected>,
        odd: u64,
        rows: u64,
        /// What to do with the file.
        way: String,
    },
    /// One object of JSON that holds all rows, not in a list.
    #[error("{path}: {what}; make an object a line of it first: {command}")]
    Keyed {
        path: String,
        /// Where the rows are.
        what: String,
        /// A command that writes lines of JSON.
        command: String,
    },
}
