//! A source as its job declares it.

use std::fmt;

use chrono_tz::Tz;
use tidetable_layout::{Field, FieldType, SourceSchema};

use crate::error::SourceError;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Delimited text, possibly gzip or zstd.
    Csv,
    /// Apache Parquet.
    Parquet,
}

/// How delimited text is written. Delimiter, quote and comment are ASCII.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvOptions {
    /// Byte between two fields; `,` by default.
    pub delimiter: u8,
    /// Byte around a field that holds delimiters or line ends; `"` by default. It matters only as the first byte of a
    /// field, and is doubled to stand for itself.
    pub quote: Option<u8>,
    /// The first record names the columns; true by default. Otherwise declared columns go by position, and a row has
    /// exactly as many fields.
    pub header: bool,
    /// Fields that mean null; the empty field by default. In text columns they are compared as they are and a quoted
    /// field is never null; elsewhere blanks around them and quotes do not count.
    pub null: Vec<String>,
    /// A record that starts with this byte is skipped up to its line end; none by default.
    pub comment: Option<u8>,
    /// `,` in place of `.` in numbers.
    pub decimal_comma: bool,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self {
            delimiter: b',',
            quote: Some(b'"'),
            header: true,
            null: vec![String::new()],
            comment: None,
            decimal_comma: false,
        }
    }
}

/// One declared column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Name in the file, case and all.
    pub name: String,
    /// Type it becomes.
    pub kind: FieldType,
    /// How times and dates are written: strftime items, or `s`, `ms`, `us`, `ns` for epoch integers. RFC 3339 (a blank
    /// may stand for the T, the offset may be missing) and `%Y-%m-%d` by default.
    pub format: Option<String>,
    /// Zone of times written without an offset; UTC by default. Of a local time that comes twice the earlier is
    /// meant; one that a clock change skips rejects its row.
    pub timezone: Option<Tz>,
}

impl ColumnSpec {
    /// A column with nothing said about format or zone.
    pub fn new(name: impl Into<String>, kind: FieldType) -> Self {
        Self { name: name.into(), kind, format: None, timezone: None }
    }
}

/// How many rejected rows a run tolerates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MaxRejected {
    /// At most so many rows.
    Count(u64),
    /// At most so many percent of the rows read.
    Percent(f64),
}

impl Default for MaxRejected {
    fn default() -> Self {
        Self::Percent(0.1)
    }
}

impl fmt::Display for MaxRejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

impl MaxRejected {
    /// Reads `100` or `0.1%`.
    ///
    /// # Errors
    /// [`SourceError::BadMaxRejected`] for anything else, and for shares outside 0 to 100.
    pub fn parse(text: &str) -> Result<Self, SourceError> {
        let bad = || SourceError::BadMaxRejected { text: text.to_owned() };
        match text.trim().strip_suffix('%') {
            Some(share) => match share.trim_end().parse::<f64>() {
                Ok(share) if (0.0..=100.0).contains(&share) => Ok(Self::Percent(share)),
                _ => Err(bad()),
            },
            None => text.trim().parse().map(Self::Count).map_err(|_| bad()),
        }
    }

    /// Whether `rejected` of `read` rows are too many.
    pub fn exceeded(&self, rejected: u64, read: u64) -> bool {
        match *self {
            Self::Count(limit) => rejected > limit,
            // A hair of slack: 57 of 10,000 is 0.57 %, though not in binary.
            Self::Percent(limit) => rejected as f64 * 100.0 > limit * read as f64 * (1.0 + 1e-12),
        }
    }
}

/// What becomes of a file whose columns are not the declared ones. Their order never matters where they have names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SchemaMode {
    /// A declared column that a file lacks is an error; what is not declared is not read.
    #[default]
    Freeze,
    /// A declared column that a file lacks is null in all its rows, but for the event time; what is not declared is not
    /// read.
    Evolve,
    /// Every row of such a file is rejected.
    Reject,
}

/// A source of a job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SourceSpec {
    /// Name in the job file.
    pub name: String,
    /// Patterns of files, in order. See [`Storage::discover`](crate::Storage::discover).
    pub files: Vec<String>,
    /// What all files hold; by their ending when not said.
    pub format: Option<Format>,
    /// How delimited text is written.
    pub csv: CsvOptions,
    /// Declared columns; others of a file are not read.
    pub columns: Vec<ColumnSpec>,
    /// Name of the event time.
    pub time: String,
    /// Tolerated rejects.
    pub max_rejected: MaxRejected,
    /// What becomes of files with other columns.
    pub mode: SchemaMode,
}

impl SourceSpec {
    /// The columns of every batch of this source. `time` is one past the last column when none is named so, because a
    /// later `derive` makes it.
    pub fn schema(&self) -> SourceSchema {
        let fields: Vec<Field> =
            self.columns.iter().map(|column| Field { name: column.name.clone(), kind: column.kind }).collect();
        let time = fields.iter().position(|field| field.name == self.time).unwrap_or(fields.len());
        SourceSchema { fields, time }
    }

    /// Looks for what can be known to be wrong before a file is opened.
    ///
    /// # Errors
    /// [`SourceError::DeclaredTwice`], [`SourceError::CsvOption`] or [`SourceError::TimeFormat`].
    pub fn check(&self) -> Result<(), SourceError> {
        for (index, column) in self.columns.iter().enumerate() {
            if self.columns.iter().take(index).any(|earlier| earlier.name == column.name) {
                return Err(SourceError::DeclaredTwice { name: self.name.clone(), column: column.name.clone() });
            }
        }
        let CsvOptions { delimiter, quote, comment, .. } = self.csv;
        let wrong =
            |option, byte: u8| SourceError::CsvOption { name: self.name.clone(), option, byte: char::from(byte) };
        let usable = |byte: u8| byte.is_ascii() && byte != b'\n' && byte != b'\r';
        if !usable(delimiter) {
            return Err(wrong("delimiter", delimiter));
        }
        if let Some(quote) = quote.filter(|&quote| !usable(quote) || quote == delimiter) {
            return Err(wrong("quote", quote));
        }
        if let Some(comment) =
            comment.filter(|&comment| !usable(comment) || comment == delimiter || Some(comment) == quote)
        {
            return Err(wrong("comment", comment));
        }
        crate::plan::plans(self).map(drop)
    }
}
