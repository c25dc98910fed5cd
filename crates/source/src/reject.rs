//! Rejected rows.

use chrono_tz::Tz;
use tidetable_layout::FieldType;

use crate::column_diff::ColumnDiff;

/// The longest [`Rejected::raw`], in bytes.
pub(crate) const RAW_LIMIT: usize = 1 << 20;
/// The longest quotation in a reason, in bytes.
const QUOTED_LIMIT: usize = 80;

/// A rejected row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Text: the physical line the record starts on, from 1. Else: the number of the row, from 1.
    pub line: u64,
    /// The lines that it takes away: more than 1 if the record goes over several.
    pub lines: u64,
    /// The column at fault, if any.
    pub column: Option<String>,
    /// Why it is rejected.
    pub reason: RejectReason,
    /// The raw row, truncated at 1 MiB; invalid UTF-8 is replaced.
    pub raw: String,
}

/// Why a row is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RejectReason {
    /// Too few or too many fields.
    #[error("expected {expected} columns, found {found}")]
    ColumnCount {
        /// Fields of the header.
        expected: usize,
        /// Fields of the row.
        found: usize,
    },
    /// The file has other columns than the source declares, and the source rejects such files.
    #[error("the columns of the file are not the declared ones: it {0}")]
    Columns(ColumnDiff),
    /// The line is not one JSON object.
    #[error("not JSON at byte {byte} of the line: {what}")]
    NotJson {
        /// What is wrong there.
        what: &'static str,
        /// Byte of the line, from 1; of the event, if the line is a batch of several.
        byte: u64,
    },
    /// A record has a declared value twice.
    #[error("the key {key:?} is there twice")]
    KeyTwice {
        /// Name of the column.
        key: String,
    },
    /// A record lacks a list whose elements are events.
    #[error("there is no list {list:?}, which `each` names")]
    NoList {
        /// Name of the list.
        list: String,
    },
    /// Lists that `each` reads side by side have different numbers of elements.
    #[error("the lists of `each` have different lengths: {least} and {most}")]
    UnequalLists {
        /// The least number of elements.
        least: usize,
        /// The greatest.
        most: usize,
    },
    /// The row is not UTF-8.
    #[error("not UTF-8")]
    InvalidUtf8,
    /// A quote that is not closed by the end of the file, nor within 16 MiB of its record or on its own line; or only with text
    /// behind its closing quote, on a later line.
    #[error("the quote opened on line {line} is never closed; reading goes on with the line after it")]
    UnterminatedQuote {
        /// Line of the quote, from 1.
        line: u64,
    },
    /// Not a number of the declared type.
    #[error("{text:?} is no {kind}")]
    NotANumber {
        /// Declared type.
        kind: FieldType,
        /// The field.
        text: String,
    },
    /// A number the declared type cannot hold.
    #[error("{text:?} is out of range for {kind}")]
    OutOfRange {
        /// Declared type.
        kind: FieldType,
        /// The field.
        text: String,
    },
    /// A decimal that would have to be rounded.
    #[error("{text:?} has more than {scale} digits after the point")]
    TooManyDigits {
        /// Digits the type has.
        scale: u8,
        /// The field.
        text: String,
    },
    /// NaN or infinite, which is not useful as a cell's text.
    #[error("{text:?} is not a finite number")]
    NotFinite {
        /// The field.
        text: String,
    },
    /// Not a boolean literal.
    #[error("{text:?} is no bool (true, false, t, f, yes, no, 1, 0)")]
    NotABool {
        /// The field.
        text: String,
    },
    /// A time or date that does not match the declared format, or is not in the calendar.
    #[error("{text:?} is no time of the form {format}")]
    BadTime {
        /// Declared format.
        format: String,
        /// The field.
        text: String,
    },
    /// A time that queries cannot work with.
    #[error("{text:?} is outside the years 1 to 9999, whose times queries can work with")]
    TimeRange {
        /// The field.
        text: String,
    },
    /// A local time that a clock change skips.
    #[error("{text:?} does not exist in {zone}: the clocks go forward over it")]
    SkippedTime {
        /// Zone of the column.
        zone: Tz,
        /// The field.
        text: String,
    },
}

/// A field for a message: lossy, truncated.
pub(crate) fn quoted(text: &[u8]) -> String {
    cut(text, QUOTED_LIMIT)
}

/// A row for a log, from which it can be repaired: lossy, truncated at 1 MiB.
pub(crate) fn raw(text: &[u8]) -> String {
    cut(text, RAW_LIMIT)
}

fn cut(text: &[u8], limit: usize) -> String {
    let mut shown = String::from_utf8_lossy(text.get(..limit).unwrap_or(text)).into_owned();
    // Replacement characters take three bytes, and truncation may split a character.
    let end = shown.floor_char_boundary(limit);
    shown.truncate(end);
    shown
}

impl std::fmt::Display for Rejected {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "line {}", self.line)?;
        if let Some(column) = &self.column {
            write!(out, ", {column}")?;
        }
        write!(out, ": {}", self.reason)
    }
}
