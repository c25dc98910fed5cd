//! Mistakes in a job file, with their messages: each names its place and what to write instead.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use thiserror::Error;
use tidetable_export::TableLog;
use tidetable_layout::error::LayoutError;
use tidetable_source::{FormatFault, LocationError};
use tidetable_sql::{ExpressionError, QueryError};

use crate::calendar::template::TimeTemplateError;
use crate::file::keys::{Section, ValueShape};
use crate::file::names::Id;
use crate::file::words::{listed, nearest};
use crate::mask::masked;

/// An invalid file with all its mistakes. Rendered by miette with file, line, column and excerpt.
#[derive(Debug, Error)]
#[error("{} has {} mistake{}", .path.display(), .count, if *.count == 1 { "" } else { "s" })]
pub struct JobFileError {
    path: PathBuf,
    text: NamedSource<String>,
    problems: Vec<Problem>,
    count: usize,
}

impl JobFileError {
    /// The problems of a file with the text `text`; messages show it as `path`.
    pub(crate) fn new(path: &Path, text: String, problems: Vec<Problem>) -> Self {
        let text = NamedSource::new(path.display().to_string(), masked(&text));
        Self { path: path.to_owned(), text, count: problems.len(), problems }
    }

    /// The path of the file, as messages show it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text of the file when it was read.
    pub fn text(&self) -> &str {
        self.text.inner()
    }

    /// Keeps the first `most` mistakes, for messages with little room, and returns the others.
    pub fn keep_first(&mut self, most: usize) -> Vec<Problem> {
        self.problems.split_off(most.min(self.problems.len()))
    }

    /// The mistakes that were kept, in file order; at least one.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl Diagnostic for JobFileError {
    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.text)
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.problems.iter().map(|problem| problem as &dyn Diagnostic)))
    }
}

/// One mistake of a file with its byte range, without the file.
#[derive(Debug)]
pub struct Problem {
    mistake: Mistake,
    at: Range<usize>,
}

impl Problem {
    pub(crate) fn new(mistake: Mistake, at: Range<usize>) -> Self {
        Self { mistake, at }
    }

    /// Byte range of the mistake; empty and at the start for the file as a whole.
    pub fn at(&self) -> Range<usize> {
        self.at.clone()
    }

    /// Line and column in `text`, the text of the file: both from 1, the column in characters.
    pub fn line_column(&self, text: &str) -> (usize, usize) {
        let before = text.get(..self.at.start).unwrap_or(text);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
        (line, column)
    }

    /// What to write instead, in a sentence; `None` where the message says it.
    pub fn advice(&self) -> Option<String> {
        self.mistake.advice()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mistake.fmt(f)
    }
}

impl std::error::Error for Problem {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.mistake.source()
    }
}

impl Diagnostic for Problem {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.advice().map(|advice| Box::new(advice) as Box<dyn fmt::Display>)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = LabeledSpan::new_with_span(Some(self.mistake.label().to_owned()), self.at.clone());
        Some(Box::new(std::iter::once(label)))
    }
}

/// A kind of mistake, with what its message names.
#[derive(Debug, Error)]
pub(crate) enum Mistake {
    #[error("not TOML: {message}")]
    Syntax { message: String },
    #[error("unknown key `{key}` in {}", with_article(.section.noun))]
    UnknownKey { key: String, section: &'static Section, near: Option<String> },
    #[error("`{key}` takes {}, not {}", .shape.wanted(), with_article(.found))]
    WrongType { key: String, shape: ValueShape, found: &'static str },
    #[error("the {} has no `{key}`", .section.noun)]
    MissingKey { key: &'static str, section: &'static Section },
    #[error("`{key}` is empty")]
    Empty { key: &'static str },
    #[error("`catch_up_window` cannot be `{value}`")]
    CatchUpWindow { value: String },

    #[error("`{key}` cannot be `{value}`")]
    NotAChoice { key: &'static str, value: String, choices: Vec<&'static str>, near: Option<String> },

    #[error("`{key}` has another value than it may have")]
    Wanted { key: &'static str, wanted: &'static str },

    #[error("`{name}` cannot be the name of {}", with_article(.id.noun()))]
    BadName { id: Id, name: String },
    #[error("the job is called `{name}`, but its place says `{place}`")]
    NameElsewhere { name: String, place: String },
    #[error("the name `{name}` is used twice")]
    NameTwice { name: String, other: &'static str },
    #[error("the job has neither tables nor exports")]
    NothingToDo,

    #[error("`{value}` is not a time zone")]
    TimeZone { value: String, near: Option<String> },
    #[error("a schedule has five fields, this one has {found}")]
    CronCount { found: usize },
    #[error("`{text}` is not a {field} of a schedule")]
    CronField { field: &'static str, text: String, low: u32, high: u32 },

    #[error("`{value}` is not a type")]
    UnknownType { value: String, near: Option<String> },
    #[error("`{value}` is not a decimal type")]
    Decimal { value: String },
    #[error("{} column has no `{key}`", with_article(.kind))]
    KeyForType { key: &'static str, kind: String },
    #[error("`{value}` is not a time format: {fault}")]
    TimeFormat { value: String, fault: FormatFault },
    #[error("`{key}` takes one ASCII character, not `{value}`")]
    OneCharacter { key: &'static str, value: String },
    #[error("`{value}` serves both `{first}` and `{second}`")]
    SameCharacter { value: char, first: &'static str, second: &'static str },
    #[error("`rejected_floor` cannot be `{value}`")]
    RejectedFloor { value: i64 },
    #[error("`skip` cannot be `{value}`")]
    SkippedLines { value: i64 },
    #[error("`max_rejected` cannot be `{value}`")]
    MaxRejected { value: String },
    #[error("the source `{owner}` has no column `{name}`")]
    UnknownColumn { name: String, owner: String, known: Vec<String>, near: Option<String> },
    #[error("the time of a source is a timestamp, and `{name}` is {}", with_article(.kind))]
    TimeKind { name: String, kind: String },

    #[error("there is no source `{name}`")]
    UnknownSource { name: String, known: Vec<String>, near: Option<String> },
    #[error("the job has neither a table nor an export `{name}`")]
    UnknownTarget { name: String, known: Vec<String>, near: Option<String> },
    #[error("`{rule}` is silenced without a reason")]
    NoReason { rule: String },
    #[error("the check has no rule")]
    NoRule,
    #[error("neither `min` nor `max`")]
    NoLimit,
    #[error("a number of rows is a whole number")]
    RowLimits,
    #[error("`{key}` names no program")]
    NoProgram { key: &'static str },
    #[error("`{key}` is not a URL")]
    NoUrl { key: &'static str },
    #[error("events of runs go to one `url` or one `file`")]
    LineageTarget,
    #[error("`timeout` cannot be `{value}`")]
    Timeout { value: String },
    #[error("`retries` cannot be `{value}`")]
    Retries { value: i64, most: i64 },
    #[error("`wait` cannot be `{value}`")]
    Wait { value: String },
    #[error("`lease` cannot be `{value}`")]
    Lease { value: String },
    #[error("`{key}` without `{other}`")]
    WithoutOther { key: &'static str, other: &'static str },
    #[error("`{value}` is not the address of a scheduler")]
    SchedulerUrl { value: String },
    #[error("`{value}` is not a path of a file")]
    NoFileName { value: String },
    #[error("`{key}`: {error}")]
    Place { key: &'static str, error: LocationError },
    #[error("`{key}` cannot be {value:?}, which is not a URL of HTTP")]
    Address { key: &'static str, value: String },
    #[error("`storage` is for files in object stores, and the source has none there")]
    NoObjectStore,
    #[error("`{key}` is for {}, and the source has no such files", .places.join(", "))]
    ElsewhereOnly { key: &'static str, places: Vec<&'static str> },
    #[error("`{key}` is secret, and must not stand in a job file")]
    PlainSecret { key: &'static str },
    #[error("`{key}` names neither one variable nor one file")]
    EnvOrFile { key: &'static str },
    #[error("columns without a header have no names that `{mode}` could compare")]
    ModeWithoutHeader { mode: &'static str },
    #[error("`{key}` is for dumps of Bigtable")]
    DumpOnly { key: &'static str },
    #[error("column `{column}` holds a part of each cell, and cannot hold a family, too")]
    ColumnOfCells { column: String },
    #[error("family `{family}` has the column `{first}`: a second one would stay empty")]
    FamilyTwice { family: String, first: String },
    #[error("a dump becomes records by `layout`, or cells by `families`")]
    LayoutAndFamilies,
    #[error("rows of table `{table}` do not read back: column `{column}`: {reason}")]
    NoWayBack { table: String, column: String, reason: String },
    #[error("the job comes after itself")]
    AfterItself,
    #[error("which source is the table from?")]
    WhichSource { known: Vec<String> },
    #[error("the table has no source to read")]
    NoSource,
    #[error("`gc` wants {wanted} here")]
    Gc { wanted: &'static str },
    #[error(transparent)]
    Expression { error: ExpressionError },
    #[error("{}", said_of_query(error))]
    Query { error: QueryError },
    #[error("a cell of all events of a row has timestamp 0, so `maxage` would drop it at once")]
    AgeOfRepeated,
    #[error("which column of the query is the event time?")]
    QueryTime,
    #[error("a row of this table may lie in several windows, so its cells cannot have a timestamp of their own")]
    TimestampAcrossWindows,
    #[error("a newer event of a row may lie in another window, where it cannot replace the row")]
    UpsertAcrossWindows,
    #[error("cells of a family of kind {kind} are not text")]
    AggregateText { kind: &'static str },
    #[error("`timestamp` cannot be {value}")]
    Timestamp { value: String },
    #[error("`except` goes with `each` or `json`")]
    ExceptWithoutEach,
    #[error("a column holds one of `message`, `repeated` and `json`")]
    PackedTwice,
    #[error("there is no message `{name}`")]
    UnknownMessage { name: String, known: Vec<String>, near: Option<String> },
    #[error("a message has either `fields` or `proto`")]
    FieldsAndProto,
    #[error("`{name}` cannot be a name in a `.proto`")]
    ProtoName { name: String },
    #[error("this cannot be the number of the field `{field}`")]
    FieldNumber { field: String },
    #[error("`{field}` and `{other}` have one number, {number}")]
    SameFieldNumber { field: String, other: String, number: u32 },
    #[error("there is no file `{}`", .path.display())]
    NoProtoFile { path: PathBuf },
    #[error("cannot read `{}`: {error}", .path.display())]
    ReadProto { path: PathBuf, error: std::io::Error },
    #[error("not protobuf: {said}")]
    Proto { said: String },
    #[error("`{}` has no message `{name}`", .path.display())]
    NoMessageInFile { name: String, path: PathBuf, known: Vec<String>, near: Option<String> },
    #[error("no field of the message `{name}` is a column of the source `{owner}`")]
    NoFieldMatches { name: String, owner: String, known: Vec<String> },
    #[error("the field `{field}` of the message `{message}` {why}")]
    ProtoField { message: String, field: String, why: &'static str },
    #[error(transparent)]
    Layout { source: LayoutError },

    #[error(transparent)]
    Day(#[from] TimeTemplateError),
    #[error("a day in `files` says how it is written")]
    DayWithoutFormat,
    #[error("the parts of `{name}` would have one name")]
    NameWithoutTime { name: String, example: &'static str },
    #[error("`{first}` and `{second}` would have one name: `{name}`")]
    NameOfTwo { first: String, second: String, name: String },
    #[error("`mode = \"upsert\"` needs `keys`")]
    UpsertWithoutKeys,
    #[error("`keys` is for `mode = \"upsert\"`")]
    KeysWithoutUpsert,
    #[error("{} is one folder of Parquet files", .log.table())]
    LogFolder { log: TableLog, name: String },
    #[error("rows are not added to {}", .log.table())]
    LogAppend { log: TableLog },
    #[error("an export is one table: `delta` or `iceberg`")]
    TwoLogs,
    #[error("the files of an Iceberg table have a column of their day")]
    IcebergDayColumn,
    #[error("`{key}` is for exports with `delta` or `iceberg`")]
    RetentionWithoutLog { key: &'static str },
    #[error("no export of this job is an Iceberg table")]
    CatalogWithoutTable,
    #[error("`{value}` is no namespace")]
    Namespace { value: String },
    #[error("`delta_retention` is the former name of `snapshot_retention`")]
    TwoRetentions,
    #[error("`{value}` is no time that replaced files can stay")]
    SnapshotRetention { value: String },
    #[error("the name holds no day that a column could have")]
    DayColumnWithoutDay,
    #[error("the name has a directory `{column}=` with other values than days")]
    DayColumnTwice { column: String },
    #[error("files of cells hold bytes, not decimals")]
    CellsAreBytes,
    #[error("files of cells are made `per = \"query\"`")]
    CellsPerQuery,
    #[error("`file_size` is for files of rows")]
    CellsInOneFile,
    #[error("`{value}` is not a size")]
    NotASize { key: &'static str, value: String, problem: String },
    #[error("the export `{other}` publishes under this name too")]
    PublishedTwice { other: String },
    #[error("the export `{other}` can have the name `{name}` too")]
    NameConflict { other: String, name: String },
    #[error("`{name}` is the name of a list of published tables")]
    NameOfList { name: String },
    #[error("a query has either `file` or `sql`")]
    FileAndSql,
    #[error("there is no file `{}`", .path.display())]
    NoSqlFile { path: PathBuf },
    #[error("cannot read `{}`: {error}", .path.display())]
    SqlFile { path: PathBuf, error: std::io::Error },
    #[error("`{}` holds no SQL", .path.display())]
    EmptySqlFile { path: PathBuf },
}

impl Mistake {
    fn label(&self) -> &'static str {
        match self {
            Self::UnknownKey { .. } => "not a key",
            Self::MissingKey { .. } => "here",
            Self::UnknownColumn { .. }
            | Self::UnknownSource { .. }
            | Self::UnknownTarget { .. }
            | Self::UnknownMessage { .. } => "not declared",
            Self::NoProtoFile { .. }
            | Self::ReadProto { .. }
            | Self::NoSqlFile { .. }
            | Self::SqlFile { .. }
            | Self::EmptySqlFile { .. } => "this file",
            _ => "here",
        }
    }

    fn advice(&self) -> Option<String> {
        Some(match self {
            Self::UnknownKey { near, section, .. } => {
                let names: Vec<_> = section.keys.iter().map(|key| key.name).collect();
                did_you_mean(near).unwrap_or_else(|| format!("the keys here are {}", listed(&names)))
            }
            Self::MissingKey { key: "query", section } if section.keys.iter().any(|key| key.name == "scale") => {
                "add a section `[query.any]` with `where = \"true\"`: all rows, for queries that are not known yet; `per_second` says \
                 how often it is asked"
                    .to_owned()
            }
            Self::MissingKey { key, .. } => missing(key)?.to_owned(),
            Self::Wanted { wanted, .. } => format!("write {wanted}"),
            Self::CatchUpWindow { .. } => "write a number and d, h or m, as in `7d`".to_owned(),
            Self::NotAChoice { near, choices, .. } => {
                did_you_mean(near).unwrap_or_else(|| format!("write one of {}", listed(choices)))
            }
            Self::BadName { id: Id::Published, name } if name.contains('{') => {
                "only a time may stand in braces, for example `{day:%Y%m%d}`".to_owned()
            }
            Self::BadName { id, .. } => format!(
                "1 to {} of A-Z a-z 0-9 _ - . {}",
                id.longest(),
                if *id == Id::Family { "" } else { "and neither - nor . first" }
            )
            .trim_end()
            .to_owned(),

            Self::NameElsewhere { place, .. } => format!("write `{place}`, or rename the folder or file"),
            Self::NameTwice { other, .. } => format!("{other} has it already: choose another"),
            Self::NothingToDo => "add a `[tables.NAME]` with a source, or an `[exports.NAME]`".to_owned(),

            Self::TimeZone { near, .. } => {
                did_you_mean(near).unwrap_or_else(|| "write a name such as `UTC` or `Europe/Paris`".to_owned())
            }
            Self::CronCount { .. } => {
                "write minute, hour, day of month, month and day of week: `15 1 * * *` is 01:15 every day".to_owned()
            }
            Self::CronField { low, high, .. } => {
                format!("{low} to {high}, `*`, lists `1,2`, ranges `1-5`, steps `*/2`")
            }

            Self::UnknownType { near, .. } => {
                did_you_mean(near).unwrap_or_else(|| format!("write one of {}", listed(&crate::file::types::TYPES)))
            }
            Self::Decimal { .. } => {
                "write `decimal(p,s)`: p digits in all (1 to 38), s of them after the point (0 to p)".to_owned()
            }
            Self::KeyForType { key: "format", .. } => "only timestamp and date columns have a format".to_owned(),
            Self::KeyForType { key: "decimal" | "thousands", .. } => "only columns of numbers have separators".to_owned(),
            Self::KeyForType { .. } => "only timestamp columns have a time zone".to_owned(),
            Self::SameCharacter { second, .. } => format!("choose another `{second}`"),
            Self::RejectedFloor { .. } => "write a number of rows, such as `10`".to_owned(),
            Self::SkippedLines { .. } => "write the number of lines before the header, such as `4`".to_owned(),
            Self::MaxRejected { .. } => "write a share such as `\"0.1%\"`, or a count such as `10`".to_owned(),
            Self::UnknownColumn { near, known, .. } => {
                did_you_mean(near).unwrap_or_else(|| format!("its columns are {}", listed(known)))
            }
            Self::TimeKind { name, .. } => format!("declare `{name} = \"timestamp\"`, or name another column"),

            Self::UnknownSource { near, known, .. } => did_you_mean(near).unwrap_or_else(|| match known.as_slice() {
                [] => "add a `[sources.NAME]`".to_owned(),
                known => format!("the sources are {}", listed(known)),
            }),
            Self::UnknownTarget { near, known, .. } => {
                did_you_mean(near).unwrap_or_else(|| format!("write one of {}", listed(known)))
            }
            Self::NoReason { rule } => format!("say why it does not hold here: `{rule} = \"..\"`"),
            Self::NoRule => "add `not_null`, `unique`, `range`, `rows` or `query`".to_owned(),
            Self::NoLimit => "write `{ min = .. }`, `{ max = .. }` or both".to_owned(),
            Self::RowLimits => "for example `{ min = 1, max = 96 }`".to_owned(),
            Self::AfterItself | Self::NoObjectStore | Self::ElsewhereOnly { .. } => "leave it out".to_owned(),
            Self::NoProgram { key } => {
                format!("for example `{key} = [\"notify\", \"--quiet\"]`: a program and its arguments, without a shell")
            }
            Self::NoUrl { key } => {
                format!("for example `{key} = \"https://hc-ping.com/UUID\"`, or `{key} = {{ env = \"NAME\" }}`")
            }
            Self::LineageTarget => {
                "write `url = \"https://HOST/api/v1/lineage\"`, or `file = \"lineage.jsonl\"`".to_owned()
            }
            Self::Timeout { .. } | Self::Wait { .. } => "write a number and s, m or h, as in `90s`".to_owned(),
            Self::WithoutOther { other, .. } => format!("add `{other}`: a certificate is shown with its private key"),
            Self::Lease { .. } => "write 6s to 1h, as in `60s`".to_owned(),

            Self::SchedulerUrl { .. } => "write `url = \"ballista://HOST:PORT\"`, or `ballista+tls://HOST:PORT` with TLS, as \
                                          `tidetable scheduler` shows it"
                .to_owned(),
            Self::Retries { most, .. } => format!("write 0 to {most}: so often a stage is tried again"),
            Self::Address { .. } => "write http://HOST:PORT or https://HOST".to_owned(),
            // Its error says what to write.
            Self::Place { .. } => return None,
            Self::NoFileName { .. } => "for example `metrics/job.prom`, relative to the project's folder".to_owned(),
            Self::PlainSecret { key } | Self::EnvOrFile { key } => format!(
                "write `{key} = {{ env = \"NAME\" }}` for an environment variable, or `{key} = {{ file = \"PATH\" }}`"
            ),
            Self::ModeWithoutHeader { .. } => "leave `schema` out, or write `freeze`".to_owned(),

            Self::WhichSource { known } => format!("add `from`, with one of {}", listed(known)),
            Self::NoSource => "add a `[sources.NAME]` with `files`, `time` and `columns`".to_owned(),
            Self::AggregateText { .. } => "leave `encoding` out".to_owned(),
            Self::TimestampAcrossWindows | Self::UpsertAcrossWindows => {
                "write `window = \"none\"` in the table".to_owned()
            }

            Self::Expression { .. } => "write SQL over the columns of the source; names keep their case".to_owned(),
            Self::Query { error } if unknown_table(error).is_some() => {
                "a derived table reads tables that come before it in the same file; merge the jobs, or read those of another job in \
                 an export"
                    .to_owned()
            }
            Self::Query { .. } => "write a query over the tables that come before this one in the file".to_owned(),
            Self::AgeOfRepeated => "move the column to a family of its own, or leave `maxage` out".to_owned(),
            Self::QueryTime => {
                "add `time = \"COLUMN\"` beside `query`, with a timestamp column of the query".to_owned()
            }
            Self::Gc { .. } => "for example `maxversions=1`, or `maxage=30d and maxversions=2`".to_owned(),
            Self::Timestamp { .. } => "write 0, or the name of a timestamp column of the source".to_owned(),
            Self::ExceptWithoutEach => "add `each = \"*\"`, or leave `except` out".to_owned(),
            Self::PackedTwice => "make a column of each".to_owned(),

            Self::UnknownMessage { near, known, .. } => did_you_mean(near).unwrap_or_else(|| match known.as_slice() {
                [] => "add `[messages.NAME]` with `fields = { column = 1, .. }`".to_owned(),
                known => format!("the messages are {}", listed(known)),
            }),
            Self::DumpOnly { .. } => "set `format` to `bigtable-parquet`, `bigtable-avro` or `cbt-csv`".to_owned(),
            Self::LayoutAndFamilies | Self::FamilyTwice { .. } => "remove one of them".to_owned(),
            Self::ColumnOfCells { .. } => "give the column of the family another name".to_owned(),
            Self::NoWayBack { .. } => "load the dump cell by cell, without `layout`".to_owned(),
            Self::FieldsAndProto => {
                "write `fields = { column = 1, .. }`, or `proto = \"file.proto\"`".to_owned()
            }
            Self::ProtoName { .. } => {
                "use letters, digits and `_`, not a digit first, and no type; `derive` makes a column of another name".to_owned()
            }
            Self::FieldNumber { .. } => "write 1 to 536870911, but not 19000 to 19999".to_owned(),
            Self::SameFieldNumber { .. } => "give each field a number of its own, and keep it for ever".to_owned(),
            Self::NoProtoFile { .. } => "the path is relative to the job file".to_owned(),
            Self::ReadProto { .. } => "check that it is a readable text file".to_owned(),
            Self::NoMessageInFile { near, known, .. } => did_you_mean(near).unwrap_or_else(|| match known.as_slice() {
                [] => "the file has no message".to_owned(),
                known => format!("its messages are {}", listed(known)),
            }),
            Self::NoFieldMatches { known, .. } => {
                format!("its fields are {}; `derive` makes columns of these names", listed(known))
            }
            Self::ProtoField { why: "is required", .. } => "make it optional: a column may be null".to_owned(),
            Self::ProtoField { .. } => {
                "a column fills a field of one number, text, bool or time: rename the column with `derive`, or leave the field to others".to_owned()
            }

            Self::DayWithoutFormat => "for example `{day:%Y-%m-%d}`".to_owned(),
            Self::NameWithoutTime { name, example } => format!("for example `{name}_{example}`"),
            Self::NameOfTwo { .. } => "write enough of the time, for example `{day:%Y%m%d}`".to_owned(),
            Self::UpsertWithoutKeys => "add `keys`, the columns that say which rows are the same".to_owned(),
            Self::KeysWithoutUpsert => "leave it out, or write `mode = \"upsert\"`".to_owned(),
            Self::LogFolder { name, .. } => format!("write a name such as `{name}/dt={{day}}`, and `format = \"parquet\"`"),
            Self::LogAppend { log } => format!("write `mode = \"upsert\"` with `keys`, or leave `{}` out", log.key()),
            Self::TwoLogs => "leave one out, or write a second export".to_owned(),
            Self::IcebergDayColumn => "leave `day_column` out: it is `true` for `iceberg`".to_owned(),
            Self::RetentionWithoutLog { key: "delta_retention" } => "write `delta = true`, or leave it out".to_owned(),
            Self::RetentionWithoutLog { .. } => "write `delta = true` or `iceberg = true`, or leave it out".to_owned(),
            Self::CatalogWithoutTable => "write `iceberg = true` in an export, or leave `[catalog]` out".to_owned(),
            Self::Namespace { .. } => "write names of A-Z a-z 0-9 _ - with dots between them, as in `plant.meters`".to_owned(),
            Self::TwoRetentions => "leave `delta_retention` out".to_owned(),
            Self::SnapshotRetention { .. } => "write a number and a unit, `7d` or `36h`; at least `1h`, as long as a reader may take".to_owned(),
            Self::DayColumnWithoutDay => "write a name with `{day}`, or leave it out".to_owned(),
            Self::DayColumnTwice { column } => format!("write `{column}={{day}}`, or another name of the directory"),
            Self::CellsAreBytes => "leave it out".to_owned(),
            Self::CellsPerQuery => "write `per = \"query\"`, and a query of `cells.TABLE`".to_owned(),
            Self::CellsInOneFile => "leave it out: what loads cells takes them from one file".to_owned(),
            Self::NotASize { key, problem, .. } => format!("{problem}, for example `{key} = \"256MiB\"`"),
            Self::PublishedTwice { .. } => "give each export a name of its own".to_owned(),
            Self::NameConflict { .. } => "write names that differ in more than their times and capitals".to_owned(),
            Self::NameOfList { .. } => "leave `.json` out".to_owned(),

            Self::FileAndSql => {
                "write `query = { file = \"query.sql\" }`, or `query = { sql = \"select ..\" }`".to_owned()
            }
            Self::NoSqlFile { path } => match path.file_name() {
                Some(name) => format!("write the query into `{}` beside the job file", name.display()),
                None => "name a file beside the job file".to_owned(),
            },
            Self::SqlFile { .. } => "check that it is a readable text file".to_owned(),
            Self::EmptySqlFile { .. } => "write a query into it, for example `select * from TABLE`".to_owned(),

            Self::Syntax { .. }
            | Self::WrongType { .. }
            | Self::Empty { .. }
            | Self::OneCharacter { .. }
            | Self::Proto { .. }
            | Self::Day(_)
            | Self::TimeFormat { .. }
            | Self::Layout { .. } => {
                return None;
            }
        })
    }
}

fn did_you_mean(near: &Option<String>) -> Option<String> {
    near.as_ref().map(|near| format!("did you mean `{near}`?"))
}

/// The table that the query of a derived table reads and that does not come before it, if that is the mistake.
fn unknown_table(error: &QueryError) -> Option<String> {
    let QueryError::Wrong(error) = error else { return None };
    error.unknown_name().filter(|unknown| unknown.is_table).map(|unknown| unknown.name)
}

/// The mistake of naming a column that the source `source` does not have.
pub(crate) fn unknown_column(name: &str, source: &str, known: Vec<String>) -> Mistake {
    let near = nearest(name, known.iter().map(String::as_str));
    Mistake::UnknownColumn { name: name.to_owned(), owner: source.to_owned(), known, near }
}

/// What is wrong with the query of a derived table.
fn said_of_query(error: &QueryError) -> String {
    match unknown_table(error) {
        Some(table) => format!("it reads {table}, and no table of that name comes before it in this file"),
        None => error.to_string(),
    }
}

/// What to add for a required key, with an example of it.
fn missing(key: &str) -> Option<&'static str> {
    Some(match key {
        "name" => "add `name`, for example `name = \"smart-meters\"`",
        "files" => "add `files = [\"dir/*.csv\"]`",
        "time" => "add `time`, the column that says when a reading was made",
        "columns" => "add `columns` with the name and type of each, for example `kwh = \"float64\"`",
        "type" => "add `type = \"timestamp\"`, or another type",
        "row_key" => "add `row_key`, for example `row_key = \"{meter:010}#{ts:%Y%m%d}\"`",
        "families" => "add a `[tables.NAME.families.FAMILY]` with `columns`",
        "qualifier" => "add `qualifier`, for example `qualifier = \"{ts:%H%M}\"`",
        "uri" => "add `uri`, for example `uri = \"https://catalog.example.org/api\"`",
        "namespace" => "add `namespace`, for example `namespace = \"plant\"`",
        "per" => "add `per = \"day\"`",
        "query" => "add `query = { file = \"query.sql\" }`",
        _ => return None,
    })
}

fn with_article(noun: &str) -> String {
    if noun.starts_with('`') {
        return noun.to_owned();
    }
    let article = if noun.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {noun}")
}
