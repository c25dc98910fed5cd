//! A source as its job declares it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use chrono_tz::Tz;
use tidetable_layout::read_back::RowDecoder;
use tidetable_layout::{Field, FieldType, SourceSchema};

use crate::error::SourceError;
use crate::format::Format;
use crate::time::Ambiguous;

/// The dialect of delimited text. Delimiter, quote and comment are ASCII.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvOptions {
    /// Byte between two fields; `,` by default.
    pub delimiter: u8,
    /// Byte that quotes fields with delimiters or line ends; `"` by default. It is special only as the first byte of a field,
    /// and is escaped by doubling.
    pub quote: Option<u8>,
    /// Byte that escapes a quote, or itself, in a quoted field, such as `\`; none by default. Doubled quotes are read too.
    pub escape: Option<u8>,
    /// Lines before the header, or before the first record, that are not read; 0 by default.
    pub skip: u64,
    /// Whether the first record is a header; true by default. Otherwise declared columns are matched by position, and a row
    /// has exactly as many fields.
    pub header: bool,
    /// Null markers; the empty field by default. In text columns they are compared exactly and a quoted field is never null;
    /// in other columns surrounding blanks and quotes are ignored, and in columns of numbers a marker that is a number stands
    /// for every equal number: `-9999` also for `-9999.0`. In Parquet they hold for columns that are not text.
    pub null: Vec<String>,
    /// A record that starts with this byte is skipped up to its line end; none by default.
    pub comment: Option<u8>,
    /// Whether `,` is the decimal separator of columns that do not say; false by default.
    pub decimal_comma: bool,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self {
            delimiter: b',',
            quote: Some(b'"'),
            escape: None,
            skip: 0,
            header: true,
            null: vec![String::new()],
            comment: None,
            decimal_comma: false,
        }
    }
}

/// A program whose files have a shape that is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preset {
    /// The file exporter of the OpenTelemetry collector, in JSON: data points, log records and spans are events.
    Otel,
    /// VictoriaMetrics' `/api/v1/export`: the elements of `values` and `timestamps` are events.
    VictoriaMetrics,
}

impl Preset {
    /// All presets, in the order in which the reference lists them.
    pub const ALL: [Self; 2] = [Self::Otel, Self::VictoriaMetrics];
    /// What `preset` of a source may be in a job file, in the order of [`Self::ALL`].
    pub const KEYS: [&'static str; 2] = [Self::Otel.key(), Self::VictoriaMetrics.key()];

    /// The preset as job files name it, one of [`Self::KEYS`].
    pub const fn key(self) -> &'static str {
        match self {
            Self::Otel => "otel",
            Self::VictoriaMetrics => "victoriametrics",
        }
    }
}

/// What separates groups of three digits in numbers, as spreadsheets and offices write them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Thousands {
    /// A comma, as in `1,025`.
    Comma,
    /// A point, as in `1.025`, where the decimal separator is another.
    Point,
    /// A blank, as in `1 025`, also a no-break or thin one.
    Blank,
    /// An apostrophe, as in `1'025`, also a typographic one.
    Apostrophe,
}

impl Thousands {
    /// The separator as job files name it.
    pub fn written(self) -> &'static str {
        match self {
            Self::Comma => ",",
            Self::Point => ".",
            Self::Blank => " ",
            Self::Apostrophe => "'",
        }
    }

    /// All separators, in the order in which the reference lists them.
    pub const ALL: [Self; 4] = [Self::Comma, Self::Point, Self::Blank, Self::Apostrophe];

    /// Whether a character is this separator, in any of its forms.
    pub(crate) fn is(self, letter: char) -> bool {
        match self {
            Self::Comma => letter == ',',
            Self::Point => letter == '.',
            Self::Blank => matches!(letter, ' ' | '\u{A0}' | '\u{202F}' | '\u{2009}'),
            Self::Apostrophe => matches!(letter, '\'' | '\u{2019}'),
        }
    }
}

/// One declared column: its name in files, its type, and how its values are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnSpec {
    /// Name in the file, case-sensitive; dotted for members of objects and fields of structs.
    pub name: String,
    /// The type that values are read as; one that does not fit rejects its row.
    pub kind: FieldType,
    /// Format of times and dates: strftime items, or `s`, `ms`, `us`, `ns` for epoch numbers, `excel` for
    /// days since 1899-12-30. By default RFC 3339 (a blank is accepted for the T; seconds and offset are optional) and
    /// `%Y-%m-%d`.
    pub format: Option<String>,
    /// Zone of times without an offset; UTC by default. A local time that does not exist rejects its row.
    pub timezone: Option<Tz>,
    /// Which instant a local time is that occurs twice.
    pub ambiguous: Ambiguous,
    /// Whether `,` is the decimal separator of numbers; as the source's by default.
    pub decimal_comma: Option<bool>,
    /// What separates groups of three digits; nothing by default.
    pub thousands: Option<Thousands>,
    /// Null markers of this column, instead of those of the source. They mean the same there.
    pub null: Option<Vec<String>>,
}

impl ColumnSpec {
    /// A column with the default format and zone.
    pub fn new(name: impl Into<String>, kind: FieldType) -> Self {
        Self {
            name: name.into(),
            kind,
            format: None,
            timezone: None,
            ambiguous: Ambiguous::Earlier,
            decimal_comma: None,
            thousands: None,
            null: None,
        }
    }
}

/// The rejected rows that a run tolerates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MaxRejected {
    /// The most rows of a run, whatever its size.
    Count(u64),
    /// The greatest percentage of the rows read.
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
        let limit = match text.trim().strip_suffix('%') {
            Some(share) => {
                share.trim_end().parse().ok().filter(|share| (0.0..=100.0).contains(share)).map(Self::Percent)
            }
            None => text.trim().parse().ok().map(Self::Count),
        };
        limit.ok_or_else(|| SourceError::BadMaxRejected { text: text.to_owned() })
    }

    /// Whether `rejected` of `read` rows are too many.
    pub fn exceeded(&self, rejected: u64, read: u64) -> bool {
        match *self {
            Self::Count(limit) => rejected > limit,
            // Tolerates rounding: 57 of 10,000 is 0.57 %, but not in binary.
            Self::Percent(limit) => rejected as f64 * 100.0 > limit * read as f64 * (1.0 + 1e-12),
        }
    }
}

/// How a file whose columns differ from the declaration is handled. Order does not matter for named columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SchemaMode {
    /// A missing column is an error; undeclared columns are ignored.
    #[default]
    Freeze,
    /// A missing column is null in all rows, except the event time; undeclared columns are ignored.
    Evolve,
    /// All rows of such a file are rejected.
    Reject,
}

/// What the rows of a dump become.
#[derive(Debug, Clone, PartialEq)]
pub enum DumpForm {
    /// A row for each cell, with `row_key`, `family`, `qualifier`, `timestamp` and `value`; bytes are hexadecimal text.
    Cells {
        /// Columns that hold the values of one family, each with the id of the family.
        families: BTreeMap<String, String>,
        /// Whether all tables of the source keep microseconds. Otherwise a cell with some is rejected: cells of a millisecond would
        /// replace each other.
        keeps_micros: bool,
    },
    /// Records that a layout reads from keys, qualifiers and values.
    Records(DumpLayout),
}

impl Default for DumpForm {
    fn default() -> Self {
        Self::Cells { families: BTreeMap::new(), keeps_micros: true }
    }
}

/// The layout by which rows of a dump are read. Two are equal if they read alike.
#[derive(Debug, Clone)]
pub struct DumpLayout {
    decoder: Arc<RowDecoder>,
    fingerprint: String,
}

impl DumpLayout {
    /// By a decoder of the rows of a table.
    pub fn new(decoder: RowDecoder) -> Self {
        let fingerprint = decoder.layout().fingerprint();
        Self { decoder: Arc::new(decoder), fingerprint }
    }

    /// The decoder of rows.
    pub fn decoder(&self) -> &RowDecoder {
        &self.decoder
    }

    /// Changes with the layout and the columns that it is compiled for.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

impl PartialEq for DumpLayout {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

/// A source of a job: files of one kind, and how their rows are read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SourceSpec {
    /// Its name in the job file, by which tables refer to it.
    pub name: String,
    /// Patterns of files, in order. See [`Storage::discover`](crate::storage::Storage::discover).
    pub files: Vec<String>,
    /// Format of all files; by file extension if `None`.
    pub format: Option<Format>,
    /// Paths of lists: each of their elements is an event, which has the values outside of the list too. Several are read
    /// side by side.
    pub each: Vec<String>,
    /// What the rows of a dump of Bigtable become; unused for other formats.
    pub dump: DumpForm,
    /// What writes the files, if their records have a shape that is known.
    pub preset: Option<Preset>,
    /// Dialect of delimited text, unused for other formats.
    pub csv: CsvOptions,
    /// Declared columns; other columns of a file are ignored.
    pub columns: Vec<ColumnSpec>,
    /// Name of the column with the event time, which determines the window of a row.
    pub time: String,
    /// How many rejected rows a run tolerates before it fails.
    pub max_rejected: MaxRejected,
    /// Rows that may be rejected whatever the share of `max_rejected`, if no input loses more than half of its rows; 0 by
    /// default.
    pub rejected_floor: u64,
    /// How a file whose columns differ from the declared ones is handled.
    pub mode: SchemaMode,
    /// Whether NaN in a float column of Parquet rejects its row; it is null by default.
    pub rejects_nan: bool,
    /// The columns whose values tell series apart, such as `meter`: times are in order within each. Used by columns that are
    /// [`Ambiguous::ByOrder`].
    pub series: Vec<String>,
}

impl SourceSpec {
    /// The lists whose elements are events: those of `each`, or of the preset.
    pub(crate) fn lists(&self) -> Vec<String> {
        match self.preset {
            Some(Preset::VictoriaMetrics) if self.each.is_empty() => ["values", "timestamps"].map(str::to_owned).into(),
            _ => self.each.clone(),
        }
    }

    /// The columns of every batch of this source. `time` is one past the last column when none is named so, because a
    /// later `derive` makes it.
    pub fn schema(&self) -> SourceSchema {
        let fields: Vec<Field> =
            self.columns.iter().map(|column| Field { name: column.name.clone(), kind: column.kind }).collect();
        let time = fields.iter().position(|field| field.name == self.time).unwrap_or(fields.len());
        SourceSchema { fields, time }
    }
}
