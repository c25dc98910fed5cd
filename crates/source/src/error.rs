//! What stops a file or a source, as opposed to what rejects one row.

use std::io;

use arrow::error::ArrowError;
use object_store::Error as StoreError;
use parquet::errors::ParquetError;
use tidetable_layout::FieldType;

use crate::bucket_error::{BucketError, BucketFault};
use crate::format::Foreign;
use crate::location::LocationError;
use crate::panics::{Panicked, catch};
use crate::time::FormatFault;

/// A fault of a source or of one of its files. Each message says what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum SourceError {
    /// A pattern of `files` matches nothing.
    #[error(
        "source {name}: no file matches {pattern:?} below {root}; correct `files`, or create the file first{}",
        notes.iter().map(|note| format!("\n  {note}")).collect::<String>()
    )]
    NoMatch {
        name: String,
        pattern: String,
        /// The directory or prefix in which relative patterns start.
        root: String,
        /// Notes on names that the patterns reach and that are not read.
        notes: Vec<String>,
    },
    /// A pattern of `files` that the glob parser does not understand.
    #[error("{pattern:?} is not a pattern of files: {source}; write special letters in brackets, as in [*]")]
    BadPattern { pattern: String, source: globset::Error },
    /// A `{day:...}` that cannot name a day.
    #[error("{pattern:?}: a day needs its year, month and day, as in {{day:%Y-%m-%d}} (%Y %y %m %d %F and plain text)")]
    DayPattern { pattern: String },
    /// A file that matches a pattern, and holds no day of the calendar.
    #[error("{path}: the digits in its name are no day of the calendar ({pattern:?}); rename or move the file")]
    DayInPath { path: String, pattern: String },
    /// Neither the job nor the file extension determines the format.
    #[error("{path}: the ending does not say what it holds; set `format` to \"csv\" or \"parquet\"")]
    UnknownFormat { path: String },
    /// A list of a pull that a later build wrote.
    #[error(
        "{path}: format {format} of lists of pulls is newer than this build; use a newer one, or pull again with --replace"
    )]
    PullFormat { path: String, format: u32 },
    /// An address that is opened as that of a bucket, and names none or is no URL.
    #[error("{url}: use a path, file://, s3://, gs:// or az://")]
    UnsupportedUrl { url: String },
    /// A place that is neither a path nor a URL that can be used.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// An address of a service that is not a URL.
    #[error("the setting {name} of the object store {problem}")]
    Endpoint {
        name: String,
        /// What is wrong, and what to write.
        problem: String,
    },
    /// A library panicked on a file or on the settings of its store.
    #[error("{path}: {panicked}")]
    Panicked { path: String, panicked: Panicked },
    /// A remote file where no runtime was given.
    #[error("{url}: remote files need a runtime; give one to Storage::new")]
    NoRuntime { url: String },
    /// The operating system refused to open, read or list.
    #[error("{path}: {source}; check that the file is there and may be read")]
    Io { path: String, source: io::Error },
    /// An input that is no file was to be read as one: a fault of the caller.
    #[error("{path} is no file: its rows come from elsewhere")]
    NoFile { path: String },
    /// Another process named a file that no pattern of the source matches.
    #[error("{path} matches no pattern of source \"{name}\": use the same job file on every machine")]
    NotOfSource { name: String, path: String },
    /// The object store refused a request, or did not answer.
    #[error("{path}: {source}{}", advice(source))]
    Store { path: String, source: Box<BucketError> },
    /// Settings from which no client of an object store can be made.
    #[error("{url}: {source}; check the address and the settings in `storage`")]
    StoreSettings { url: String, source: StoreError },
    /// A declared column that the file does not have.
    #[error("{path}: no column {column:?}; the file has {}{}", names(header), way_to_column(column, header, hint.as_deref()))]
    MissingColumn {
        path: String,
        column: String,
        header: Vec<String>,
        /// The name in the file of which the declared one is most likely a typo.
        hint: Option<String>,
    },
    /// A file without a header, of a source whose files have one.
    #[error(
        "{path}: it has no header: its first line holds values ({}); put the names of the columns before it, or read such \
         files by a source of their own with `csv.header = false`",
        names(first)
    )]
    NoHeader { path: String, first: Vec<String> },
    /// A header inside a file that lacks a declared column.
    #[error(
        "{path}, line {line}: this line is a header without column {column:?}: it has {}; put the file right, or split it \
         there; with schema = \"evolve\" the column is null below that line",
        names(header)
    )]
    LaterHeader { path: String, line: u64, column: String, header: Vec<String> },
    /// A folder whose value is none of the type of its column.
    #[error("{path}: column {column:?} is named by the path: {reason}; declare another type, or rename the folder")]
    PathValue { path: String, column: String, reason: String },
    /// A declared column that the file has twice.
    #[error(
        "{path}: column {column:?} is there twice; rename one of them in the file, or declare the second as `{column}_2`"
    )]
    DuplicateColumn { path: String, column: String },
    /// A column that the job declares twice.
    #[error("source {name}: column {column:?} is declared twice; remove one")]
    DeclaredTwice { name: String, column: String },
    /// A list of `each` that the file does not have.
    #[error("{path}: no record has the list {list:?} that `each` names; the file has {}", names(header))]
    MissingList { path: String, list: String, header: Vec<String> },
    /// More lists than are read side by side.
    #[error("source {name}: `each` names more than {most} lists; name fewer")]
    TooManyLists { name: String, most: usize },
    /// A header whose quotes do not close.
    #[error("{path}: a quote in the header is never closed; correct the file, or set csv.quote")]
    HeaderQuote { path: String },
    /// A format that is not read, told by the first bytes of the file.
    #[error("{path}: this is {format}, which is not read; {}", format.way_on(path))]
    Foreign { path: String, format: Foreign },
    /// A header with a CR in it, in a file whose lines end with LF.
    #[error(
        "{path}, line {line}: a carriage return (CR) follows {name:?} in the header, where no line ends; end all lines alike, as `tr '\\r' '\\n'` does"
    )]
    HeaderReturn {
        path: String,
        line: u64,
        /// The text of the header before the CR.
        name: String,
    },
    /// A compressed file that does not decompress.
    #[error("{path}: {source} while decompressing {codec}; {}", damage(source))]
    Compression { path: String, codec: &'static str, source: io::Error },
    /// A zip archive whose text cannot be read.
    #[error("{path}: {fault}")]
    Archive { path: String, fault: ArchiveFault },
    /// A compressed file of a format whose files are decompressed as a whole.
    #[error(
        "{path}: it has more than {limit} bytes without its compression, and is held in memory; decompress it first"
    )]
    TooLarge { path: String, limit: usize },
    /// An ending that promises a compression the bytes do not have.
    #[error("{path}: the ending says {codec}, the first bytes do not; rename the file or copy it again")]
    NotCompressed { path: String, codec: &'static str },
    /// A record with no end in sight.
    #[error("{path}, line {line}: no line end within {bytes} bytes; check that this is a text file, and csv.quote")]
    RecordTooLong {
        path: String,
        /// Line the record starts on, from 1.
        line: u64,
        bytes: usize,
    },
    /// A Parquet file without its end, where its footer is.
    #[error(
        "{path}: the end of the Parquet file is missing; it is still being written, or was cut short: copy it again"
    )]
    ParquetUnfinished { path: String },
    /// A file of blocks without its end.
    #[error(
        "{path}: the end of the {format} file is missing; it is still being written, or was cut short: copy it again"
    )]
    BlockUnfinished { path: String, format: &'static str },
    /// A block of Arrow or Avro that cannot be read.
    #[error(
        "{path}, block {block} at byte {byte} (record {record} and those after it): {problem}; the file is damaged: copy it again"
    )]
    DamagedBlock {
        path: String,
        /// Number of the block, from 1; 0 for the header of the file.
        block: u64,
        /// Its offset in the file, without its compression.
        byte: u64,
        /// Number of its first record, from 1.
        record: u64,
        problem: String,
    },
    /// An Avro file whose blocks are compressed in a way that is not read.
    #[error(
        "{path}: its blocks are compressed by {codec}, which is not read; write it with deflate, snappy, zstandard or null"
    )]
    AvroCodec { path: String, codec: String },
    /// A file without the columns of a dump of Bigtable.
    #[error(
        "{path}: this is no dump of Bigtable: it has {}; a dump has `key` and `cells` with family, qualifier, timestamp and \
         value, in CSV a line of families and one of qualifiers: write `format = \"{format}\"` if it has columns",
        names(found)
    )]
    NotDump {
        path: String,
        found: Vec<String>,
        /// The format of such a file with columns, as job files name it.
        format: &'static str,
    },
    /// A dump of Bigtable that a source reads as a file of columns.
    #[error("{path}: this is a dump of Bigtable, and the source reads columns: write `format = \"{format}\"`")]
    DumpAsColumns { path: String, format: &'static str },
    /// A column of a dump whose type is no such one.
    #[error(
        "{path}: column {column} is {found}, and dumps of Bigtable have {wanted} there; write the dump again with that type"
    )]
    DumpColumn { path: String, column: String, found: String, wanted: &'static str },
    /// A timestamp of a dump that is no timestamp of Bigtable.
    #[error("{path}: column cells.timestamp has {time}, which {problem}; write the dump again in microseconds")]
    DumpTime { path: String, time: String, problem: &'static str },
    /// Cells of a dump that no column takes.
    #[error(
        "{path}: it has cells of family {family:?}, which no column holds: add a column, such as value_{} = \"text\", to `columns`, \
         `families` and the table; or declare `value`, which holds the cells of all families",
        column_word(family)
    )]
    DumpFamily { path: String, family: String },
    /// A dump of which files are missing.
    #[error(
        "{dump}: {} of its {count} files {} missing ({}); the dump is still being written, or was copied in part: it is not loaded",
        missing.len(), if missing.len() == 1 { "is" } else { "are" }, names(missing)
    )]
    DumpIncomplete { dump: String, count: usize, missing: Vec<String> },
    /// Files of more than one dump under one name.
    #[error(
        "{dump}: files of several dumps lie together, such as {first} and {last}: none is loaded. Keep each dump in a folder of its own"
    )]
    DumpsMixed { dump: String, first: String, last: String },
    /// A line of a CSV for `cbt` that cannot be read.
    #[error("{path}, line {line}: {problem}; the file is damaged: copy it again")]
    DumpLine { path: String, line: u64, problem: String },
    /// A Parquet file that does not read.
    #[error("{path}: {source}; check that the file is whole Parquet, and write it again if not")]
    Parquet { path: String, source: ParquetError },
    /// Arrow refused to build or change a column.
    #[error("{path}: {source}; please report this file, its columns should have been refused earlier")]
    Arrow { path: String, source: ArrowError },
    /// A Parquet column whose type has no way to the declared one.
    #[error("{path}: column {column:?} is {found}, which does not become {wanted}; declare another type")]
    ColumnType { path: String, column: String, found: String, wanted: FieldType },
    /// A time format that cannot be read with.
    #[error("column {column:?}: format {format:?}: {fault}")]
    TimeFormat { column: String, format: String, fault: FormatFault },
    /// A delimiter, quote or comment byte that cannot work.
    #[error("source {name}: csv.{option} cannot be {byte:?}; choose distinct ASCII characters, no line ends")]
    CsvOption {
        name: String,
        /// Which option: delimiter, quote, escape or comment.
        option: &'static str,
        byte: char,
    },
    /// A file changed while it was read.
    #[error("{path}: changed while it was read; run again when nothing writes to it")]
    Changed { path: String },
    /// Rows got lost or doubled: a fault of this crate.
    #[error("{path}: read {read} rows, but {accepted} accepted and {rejected} rejected; please report this file")]
    RowCount { path: String, read: u64, accepted: u64, rejected: u64 },
    /// A limit of rejected rows that is neither a count nor a share.
    #[error("{text:?} is no limit of rejected rows; write a count (100) or a share (0.1%)")]
    BadMaxRejected { text: String },
    /// A content hash that is not 32 hex digits.
    #[error("{text:?} is no content hash; write its 32 hex digits")]
    BadHash { text: String },
}

impl SourceError {
    /// The file, if all that is wrong with it is that its end is missing: it may still be being written.
    pub fn unfinished(&self) -> Option<&str> {
        match self {
            Self::ParquetUnfinished { path }
            | Self::BlockUnfinished { path, .. }
            | Self::Archive { path, fault: ArchiveFault::Unfinished } => Some(path),
            Self::Compression { path, source, .. } if source.kind() == io::ErrorKind::UnexpectedEof => Some(path),
            _ => None,
        }
    }

    /// Whether the columns of a file are not those that a source declares.
    pub(crate) fn is_of_columns(&self) -> bool {
        use SourceError as E;
        matches!(
            self,
            E::MissingColumn { .. }
                | E::ColumnType { .. }
                | E::MissingList { .. }
                | E::DuplicateColumn { .. }
                | E::NoHeader { .. }
        )
    }

    /// Whether it says that a dump of Bigtable lacks files, or has files of several.
    pub fn is_of_incomplete_dump(&self) -> bool {
        matches!(self, Self::DumpIncomplete { .. } | Self::DumpsMixed { .. })
    }
}

/// What became of a file that a codec cannot read.
fn damage(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => "the file is still being written, or was cut short: copy it again",
        _ => "the file is damaged: copy it again",
    }
}

/// Does `work` on the file at `path`; a panic of a library is an error of that file.
pub(crate) fn at_boundary<T>(path: &str, work: impl FnOnce() -> Result<T, SourceError>) -> Result<T, SourceError> {
    catch(work).unwrap_or_else(|panicked| Err(SourceError::Panicked { path: path.to_owned(), panicked }))
}

/// A family as part of the name of a column.
fn column_word(family: &str) -> String {
    family.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect()
}

fn names(header: &[String]) -> String {
    const SHOWN: usize = 40;
    let mut text = header.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if header.len() > SHOWN {
        text.push_str(&format!(" and {} more", header.len() - SHOWN));
    }
    text
}

/// What to look at where the cause of a failure is not known.
fn advice(error: &BucketError) -> &'static str {
    match error.fault() {
        BucketFault::Other => {
            "; check the address, the credentials (`storage` of the source, or the environment), and the network"
        }
        _ => "",
    }
}

/// What to do about a column that a file lacks.
fn way_to_column(column: &str, header: &[String], hint: Option<&str>) -> String {
    if let Some(delimiter) = other_delimiter(column, header) {
        return format!(
            "; its delimiter is {delimiter:?}: set csv.delimiter, or read such files by a source of their own"
        );
    }
    match hint {
        Some(hint) => format!("; did you mean {hint:?}?"),
        None => "; correct `columns` or the file, or move a file of another kind out of the pattern of `files`; with schema = \
                 \"evolve\" the column is null there"
            .to_owned(),
    }
}

/// The delimiter by which the only name of a header would be several, `column` among them.
fn other_delimiter(column: &str, header: &[String]) -> Option<char> {
    let [header] = header else { return None };
    let has_column = |delimiter: &char| {
        let mut names = header.split(*delimiter).map(|name| name.trim().trim_matches('"'));
        header.contains(*delimiter) && names.any(|name| name == column)
    };
    [',', ';', '\t', '|'].into_iter().find(has_column)
}

/// The name in `header` that `wanted` is most likely a typo of.
pub(crate) fn nearest(wanted: &str, header: &[String]) -> Option<String> {
    let wanted = folded(wanted);
    header
        .iter()
        .map(|name| (strsim::osa_distance(&wanted, &folded(name)), name))
        .filter(|(distance, name)| *distance <= 1.max(wanted.chars().count().max(name.chars().count()) / 3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name.clone())
}

fn folded(name: &str) -> String {
    name.trim().to_lowercase()
}

/// Why the text of a zip archive cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArchiveFault {
    /// It holds no text file or several; all names in it are listed.
    #[error("it holds {}; pack one .csv, .tsv or .txt file alone, or unpack it and name the files", holds(.0))]
    NotOne(Vec<String>),
    /// A file that is packed in another way than deflate.
    #[error("{0} is packed in a way that is not read; pack it with deflate, or unpack it")]
    Method(String),
    /// A file that is encrypted, and so needs a password.
    #[error("{0} is encrypted; unpack it first")]
    Encrypted(String),
    /// Unpacked, the file has more bytes than are held in memory: its limit.
    #[error("it has more than {0} bytes, and an archive is held in memory; unpack it, or pack it as .gz")]
    TooLarge(u64),
    /// An archive without its directory, which is written last.
    #[error("the end of the archive is missing; it is still being written, or was cut short: copy it again")]
    Unfinished,
    /// No archive, or not all of one.
    #[error("{0}; the file is damaged: copy it again")]
    Broken(String),
}

fn holds(names: &[String]) -> String {
    const SHOWN: usize = 5;
    match names.len() {
        0 => "no file".to_owned(),
        count => {
            let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
            format!("{count} files ({shown}{})", if count > SHOWN { ", .." } else { "" })
        }
    }
}
