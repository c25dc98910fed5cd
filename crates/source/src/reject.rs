//! Rejected rows: where they are, why, and their text, from which they can be repaired.

use chrono_tz::Tz;
use tidetable_layout::FieldType;

use crate::column_diff::ColumnDiff;

/// The longest [`Rejected::raw`], in bytes: 1 MiB.
pub(crate) const RAW_LIMIT: usize = 1 << 20;
/// The longest text on a screen, in characters.
const SHOWN_LIMIT: usize = 240;
/// The shortest run of NUL bytes that is named instead of shown.
const FEWEST_NULS: usize = 4;
/// The longest quotation in a reason, in bytes.
const QUOTED_LIMIT: usize = 80;

/// A row that cannot be read as the source declares it. Other rows of its file are loaded all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejected {
    /// Text: the physical line the record starts on, from 1. Else: the number of the row, from 1.
    pub line: u64,
    /// The lines that it takes away: more than 1 if the record goes over several.
    pub lines: u64,
    /// The declared column at fault; `None` if the whole row is.
    pub column: Option<String>,
    /// Why the row is rejected, for the log and the summary of a run.
    pub reason: RejectReason,
    /// The raw row, truncated at 1 MiB; invalid UTF-8 is replaced.
    pub raw: String,
}

/// Why a row is rejected. Messages name the value, and the declaration that it does not fit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum RejectReason {
    /// The row has fewer or more fields than the header, or the declaration of a file without one.
    #[error("expected {expected} columns, found {found}")]
    ColumnCount { expected: usize, found: usize },
    /// The file has other columns than the source declares, and the source rejects such files.
    #[error("the columns of the file are not the declared ones: it {0}")]
    Columns(ColumnDiff),
    /// The line is not one JSON object.
    #[error("not JSON at byte {byte} of the line: {what}")]
    NotJson {
        what: &'static str,
        /// Byte of the line, from 1; of the event, if the line is a batch of several.
        byte: u64,
    },
    /// A record has a declared value twice.
    #[error("the key {key:?} is there twice")]
    KeyTwice { key: String },
    /// A record lacks a list whose elements are events.
    #[error("there is no list {list:?}, which `each` names")]
    NoList { list: String },
    /// Lists that `each` reads side by side have different numbers of elements.
    #[error("the lists of `each` have different lengths: {least} and {most}")]
    UnequalLists { least: usize, most: usize },
    /// A row of a dump without a row key, which a row of Bigtable always has.
    #[error("there is no row key")]
    NoRowKey,
    /// A row of a dump, or a cell of it, that lacks a part.
    #[error("there is no `{part}`")]
    NoPart { part: &'static str },
    /// A cell of a dump with microseconds, for a table of milliseconds.
    #[error(
        "the timestamp {timestamp} has microseconds, and the table keeps milliseconds: write `granularity = \"micros\"`"
    )]
    NotMillis { timestamp: i64 },
    /// A cell of a family of integers that is no integer.
    #[error("a cell of family {family} has {bytes} bytes, not the 8 of an integer")]
    NotEightBytes { family: String, bytes: usize },
    /// A row of a dump that the layout by which it is read cannot have written.
    #[error("{reason}")]
    NotOfLayout { reason: String },
    /// The row has bytes that are not UTF-8.
    #[error("not UTF-8")]
    InvalidUtf8,
    /// A quote that is not closed by the end of the file, nor within 16 MiB of its record or on its own line; or only with text
    /// behind its closing quote, on a later line.
    #[error("the quote opened on line {line} is never closed; reading goes on with the line after it")]
    UnterminatedQuote { line: u64 },
    /// Not a number of the declared type.
    #[error("{text:?} is no {kind}")]
    NotANumber { kind: FieldType, text: String },
    /// A number the declared type cannot hold.
    #[error("{text:?} is out of range for {kind}")]
    OutOfRange { kind: FieldType, text: String },
    /// A decimal that would have to be rounded.
    #[error("{text:?} has more than {scale} digits after the point")]
    TooManyDigits {
        /// Digits behind the point that the declared type has.
        scale: u8,
        text: String,
    },
    /// NaN or infinite, which is not useful as a cell's text.
    #[error("{text:?} is not a finite number")]
    NotFinite { text: String },
    /// The field is none of the words that stand for true or false.
    #[error("{text:?} is no bool (true, false, t, f, yes, no, 1, 0)")]
    NotABool { text: String },
    /// A time or date that does not match the declared format, or is not in the calendar.
    #[error("{text:?} is no time of the form {format}")]
    BadTime { format: String, text: String },
    /// A time that queries cannot work with.
    #[error("{text:?} is outside the years 1 to 9999, whose times queries can work with")]
    TimeRange { text: String },
    /// A local time that a clock change skips.
    #[error("{text:?} does not exist in {zone}: the clocks go forward over it")]
    SkippedTime { zone: Tz, text: String },
}

/// A field for a message: lossy, truncated, runs of NUL bytes named.
pub(crate) fn quoted(text: &[u8]) -> String {
    match text.windows(FEWEST_NULS).any(|bytes| bytes.iter().all(|byte| *byte == 0)) {
        true => cut(with_named_nuls(&String::from_utf8_lossy(text)).as_bytes(), QUOTED_LIMIT),
        false => cut(text, QUOTED_LIMIT),
    }
}

/// A row, or a value, for a screen: runs of NUL bytes are named, and what is longer than a few lines is cut.
pub fn shown_text(text: &str) -> String {
    let named = with_named_nuls(text);
    let end = named.char_indices().nth(SHOWN_LIMIT).map_or(named.len(), |(end, _)| end);
    match named.get(end..) {
        None | Some("") => named,
        Some(rest) => format!("{} .. ({} more characters)", named.get(..end).unwrap_or_default(), rest.chars().count()),
    }
}

/// A text with `(100000 NUL bytes)` for runs of them.
fn with_named_nuls(text: &str) -> String {
    let mut named = String::with_capacity(text.len().min(2 * SHOWN_LIMIT));
    let mut rest = text;
    while let Some(at) = rest.find('\0') {
        let (before, nuls) = rest.split_at(at);
        let behind = nuls.trim_start_matches('\0');
        let count = nuls.len() - behind.len();
        named.push_str(before);
        match count < FEWEST_NULS {
            true => named.push_str(nuls.get(..count).unwrap_or_default()),
            false => named.push_str(&format!("({count} NUL bytes)")),
        }
        rest = behind;
    }
    named + rest
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_nul_bytes_are_named_and_long_texts_cut() {
        let nuls = "\0".repeat(100_000);
        assert_eq!(shown_text(&format!("1,{nuls}")), "1,(100000 NUL bytes)");
        assert_eq!(quoted(nuls.as_bytes()), "(100000 NUL bytes)");
        assert_eq!((shown_text("a\0b"), quoted(b"a\0b")), ("a\0b".to_owned(), "a\0b".to_owned()));
        let cut = shown_text(&"ä".repeat(1000));
        assert!(cut.ends_with("ä .. (760 more characters)") && cut.chars().count() < 300, "{cut}");
    }
}
