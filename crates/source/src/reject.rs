//! Why a row is not in the batch.

use chrono_tz::Tz;
use tidetable_layout::FieldType;

use crate::columns::ColumnDiff;

/// Longest [`Rejected::raw`], in bytes.
pub(crate) const RAW_LIMIT: usize = 4096;
/// Longest quotation inside a reason, in bytes.
const QUOTED_LIMIT: usize = 80;

/// A row that was read and not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// CSV: the physical line the record starts on, from 1. Parquet: the number of the row, from 1.
    pub line: u64,
    /// The column at fault, if one is.
    pub column: Option<String>,
    /// What is wrong.
    pub reason: RejectReason,
    /// The row as it stood, cut at 4 KiB; bytes that are not UTF-8 are replaced.
    pub raw: String,
}

/// What is wrong with a row.
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
    /// The row is not UTF-8.
    #[error("not UTF-8")]
    InvalidUtf8,
    /// A quote without its partner, up to the end of the file or for 256 MiB.
    #[error("the quote opened on line {line} is never closed; reading goes on with the line after it")]
    UnterminatedQuote {
        /// Line of the quote, from 1.
        line: u64,
    },
    /// Not a number of the declared type.
    #[error("{text:?} is no {}", kind_name(*.kind))]
    NotANumber {
        /// Declared type.
        kind: FieldType,
        /// The field.
        text: String,
    },
    /// A number the declared type cannot hold.
    #[error("{text:?} is out of range for {}", kind_name(*.kind))]
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
    /// Not a number, or infinite: neither has a use as the text of a cell.
    #[error("{text:?} is not a finite number")]
    NotFinite {
        /// The field.
        text: String,
    },
    /// Not one of the words for true and false.
    #[error("{text:?} is no bool (true, false, t, f, yes, no, 1, 0)")]
    NotABool {
        /// The field.
        text: String,
    },
    /// A time or date that is not written as declared, or not in the calendar.
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

fn kind_name(kind: FieldType) -> String {
    match kind {
        FieldType::UInt64 => "uint64".to_owned(),
        FieldType::Int64 => "int64".to_owned(),
        FieldType::Float64 => "float64".to_owned(),
        FieldType::Decimal { precision, scale } => format!("decimal({precision},{scale})"),
        FieldType::Text => "text".to_owned(),
        FieldType::Bool => "bool".to_owned(),
        FieldType::Timestamp => "timestamp".to_owned(),
        FieldType::Date => "date".to_owned(),
    }
}

/// A field for a message: lossy, and short.
pub(crate) fn quoted(text: &[u8]) -> String {
    cut(text, QUOTED_LIMIT)
}

/// A row for a message: lossy, and at most 4 KiB.
pub(crate) fn raw(text: &[u8]) -> String {
    cut(text, RAW_LIMIT)
}

fn cut(text: &[u8], limit: usize) -> String {
    let mut shown = String::from_utf8_lossy(text.get(..limit).unwrap_or(text)).into_owned();
    // Replacing a broken byte makes three of it, and the cut may split a character.
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
