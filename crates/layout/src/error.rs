//! Errors, warnings and rejects of layouts. Messages say what to write instead; they are shown below the declaration.

use std::ops::Range;

use thiserror::Error;

/// The location of an error or a warning in a [`crate::spec::TableSpec`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// The table as a whole, such as a limit on its families.
    Table,
    /// The template of `row_key`.
    RowKey,
    /// An entry of `unpivot`, by its index.
    Unpivot(usize),
    /// A family, by its index.
    Family(usize),
    /// A key of a column of a family, such as its qualifier.
    Column {
        /// Index of the family in the table.
        family: usize,
        /// Index of the column in its family.
        column: usize,
        /// Which key of the column's declaration.
        part: ColumnPart,
    },
}

/// A key of a column of a job file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnPart {
    /// The template of the qualifier.
    Qualifier,
    /// The template of the value.
    Value,
    /// The encoding of the value.
    Encoding,
    /// The source of the timestamp.
    Timestamp,
    /// An entry of `except`, by its index.
    Except(usize),
    /// What the cell is packed from: `message`, `repeated` or `json`.
    Packed,
}

/// One error of a layout, with its place, so that a job file's reader finds the line and the column.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{problem}")]
pub struct LayoutError {
    /// Which key of the table's declaration is wrong.
    pub place: Place,
    /// The byte range in the template or name at `place`; empty for the whole key.
    pub span: Range<usize>,
    /// What is wrong, and what to write instead.
    pub problem: Problem,
}

/// The numbers a protobuf field may have, for messages.
const FIELD_NUMBERS: &str = "write 1 to 536870911, but not 19000 to 19999";

/// A problem of a layout, which must be solved before the table can be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum Problem {
    #[error("`{{` has no `}}`: close the field, or write `{{{{` for a brace")]
    Unclosed,
    #[error("`}}` closes nothing: write `}}}}` for a brace")]
    Unopened,
    #[error("the field has no name: write a column between the braces")]
    NoName,
    #[error("no column `{name}` in the source{}", did_you_mean(.suggestion.as_deref()))]
    UnknownColumn { name: String, suggestion: Option<String> },
    #[error(
        "no form `{form}`: use 010, <6, %.., s, ms, us, ms-reversed, reversed, domain, percent, be or hash{}",
        did_you_mean(.suggestion.as_deref())
    )]
    UnknownForm { form: String, suggestion: Option<String> },
    #[error("`salt` is written {{salt(column, n)}} with n from 2 to 1000000")]
    BadSalt,
    #[error("the width must be from 1 to {most}")]
    BadWidth { most: usize },
    #[error("`{directive}` is not a supported time directive: use %Y %m %d %H %M %S %3f %6f %j %G-W%V")]
    UnknownDirective { directive: String },
    #[error("`%V` counts weeks of `%G`, not of `%Y`: write `%G-W%V`")]
    WeekWithoutIsoYear,
    #[error("no time zone `{zone}`: use a name such as Europe/Paris")]
    UnknownZone { zone: String },
    #[error("`{form}` does not go with `{column}`, which is {kind}: it takes {takes}")]
    FormNeedsType { form: String, column: String, kind: &'static str, takes: &'static str },
    #[error("`{column}` varies in width and nothing marks its end: put a literal such as `#` after it")]
    NoDelimiter { column: String },
    #[error("the row key is empty: name at least one column")]
    EmptyRowKey,
    #[error("the table has no column: add one to a family")]
    NoColumns,
    #[error("family id `{name}` must be 1 to 64 of letters, digits, `-`, `_` and `.`")]
    BadFamily { name: String },
    #[error("family `{name}` is declared twice: put its columns together")]
    DuplicateFamily { name: String },
    #[error("qualifier `{qualifier}` is already a column of family `{family}`: rename one")]
    DuplicateQualifier { family: String, qualifier: String },
    #[error(
        "this qualifier and `{other}` of family `{family}` could be equal: start them with different literals, or move one to a family of its own"
    )]
    AmbiguousQualifiers { family: String, other: String },
    #[error("a qualifier has at most 16384 bytes")]
    QualifierTooLong,
    #[error("encoding {encoding} does not go with {kind}: use `text`, or another column type")]
    EncodingNeedsType { encoding: &'static str, kind: &'static str },
    #[error(
        "a family of kind {kind} takes {takes} column, not {found}: derive one, for example `cents = \"cast(price * 100 as bigint)\"`"
    )]
    AggregateNeedsType { kind: &'static str, found: &'static str, takes: &'static str },
    #[error("cells of a family of kind {kind} are encoded as {encoding}: leave `encoding` out")]
    AggregateEncoding { kind: &'static str, encoding: &'static str },
    #[error("`upsert` leaves one event of a row, so nothing meets in these cells: write `timestamp = 0`")]
    AggregateUpsert,
    #[error("`upsert` leaves one event of a row, and this cell is of all its events: write `message` for `repeated`")]
    RepeatedUpsert,
    #[error("`{column}` is {kind}, and a cell timestamp must be a timestamp column")]
    TimestampNeedsTime { column: String, kind: &'static str },
    #[error("the event time of the source must be a timestamp column: set `time`")]
    NoEventTime,
    #[error("`{column}` is listed twice")]
    ListedTwice { column: String },
    #[error("column `{column}` of the source clashes with what `unpivot` makes: rename it with `derive`")]
    ReservedName { column: String },
    #[error("no message `{name}`: declare it{}", did_you_mean(.suggestion.as_deref()))]
    UnknownMessage { name: String, suggestion: Option<String> },
    #[error("message `{message}` has no field")]
    EmptyMessage { message: String },
    #[error("message `{message}` has the field `{field}` twice")]
    FieldTwice { message: String, field: String },
    #[error("field `{field}` of message `{message}` has number {number}: {}", FIELD_NUMBERS)]
    FieldNumber { message: String, field: String, number: u32 },
    #[error("fields `{first}` and `{second}` of message `{message}` have one number, {number}: change one")]
    SameNumber { message: String, first: String, second: String, number: u32 },
    #[error("field `{field}` of message `{message}` is {proto}, and the column `{field}` is {kind}: it takes {takes}")]
    FieldNeedsType { message: String, field: String, proto: &'static str, kind: &'static str, takes: &'static str },
    #[error("`except` leaves no column for the cell")]
    NothingPacked,
    #[error("`{key}` does not go with a cell of several columns: leave it out")]
    PackedAlone { key: &'static str },
    #[error("a cell of several columns needs them together, and `unpivot` makes an event of each: leave one out")]
    PackedUnpivot,
    #[error("family `{family}` merges numbers: put a cell of several columns into another family")]
    PackedAggregate { family: String },
    #[error("one cell holds all events of a row: write its qualifier without fields")]
    RepeatedQualifier,
    #[error("a cell of all events of a row has timestamp 0: leave `timestamp` out")]
    RepeatedTimestamp,
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// A warning: the layout is valid, but has a consequence its owner should know.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{advice}")]
pub struct LayoutWarning {
    /// Which key of the table's declaration has the consequence.
    pub place: Place,
    /// The byte range in the template at `place`; empty for the whole key.
    pub span: Range<usize>,
    /// The consequence, and what to write to avoid it.
    pub advice: Advice,
}

/// The consequence that a warning reports. The table can be loaded nevertheless.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum Advice {
    #[error("`{column}` as raw bytes cannot be read by people and sorts negative numbers last: prefer zero padding")]
    RawBytes { column: String },
    #[error("a hash of `{column}` cannot be read back and spreads related rows: prefer the column itself")]
    Hashed { column: String },
    #[error("{zone} has daylight saving time, so two instants can have one local time: prefer UTC")]
    LocalTime { zone: String },
    #[error("the key starts with a time, so every write lands at the end of the table: promote a field before it")]
    TimeFirst,
    #[error("the columns of `unpivot` differ in type, so `value` is kept as text")]
    MixedUnpivot,
    #[error("`{column}` reads back only as finely as the key or the qualifier has it")]
    CoarseTime { column: String },
    #[error("`{column}` reads back as the {kind} of the values that met in a cell, not as each of them")]
    Merged { column: String, kind: &'static str },
    #[error("{count} families: Bigtable advises 100 at most in a table; put columns that are read together in one")]
    ManyFamilies { count: usize },
    #[error("`{column}` does not read back: {why}")]
    Lost { column: String, why: LostReason },
}

/// A source column that records do not contain, because the layout does not store it or not so that it reads back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The name of the source column.
    pub column: String,
    /// Why it does not read back.
    pub why: LostReason,
}

/// Why a column does not read back from the stored cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LostReason {
    /// No template of the table names it.
    #[error("no key, qualifier or value holds it")]
    Absent,
    /// Only a hash or a salt of it is stored.
    #[error("only a hash or a salt of it is stored")]
    Hashed,
    /// Its parts do not determine a time, such as a week without its year.
    #[error("its stored parts do not determine a time, such as a week without its year")]
    IncompleteTime,
    /// The template of a value mixes it with other fields, so that it cannot be split off.
    #[error("it is mixed with other text in a value")]
    MixedText,
    /// It is stored as a sketch, in a family of kind `hll`.
    #[error("only a sketch of its distinct values is stored")]
    Sketch,
}

/// A row that cannot be encoded. The batch is encoded without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutReject {
    /// The index of the row in the batch.
    pub row: usize,
    /// The name of the column at fault, if it is one column.
    pub column: Option<String>,
    /// What keeps the row from being encoded.
    pub reason: RejectReason,
}

/// Why a row cannot be encoded, as rejected rows show it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum RejectReason {
    #[error("a field of the key or a timestamp is null: `coalesce` in `derive` names it")]
    Null,
    #[error("a field of the qualifier is null, so the cell has no column")]
    NullQualifier,
    #[error("wider than its {width} bytes")]
    TooWide { width: usize },
    #[error("negative in a zero-padded field")]
    Negative,
    #[error("the year is not from 0 to 9999")]
    Year,
    #[error("outside the years 1 to 9999, whose times queries can work with")]
    TimeRange,
    #[error("a timestamp before 1970")]
    NegativeTimestamp,
    #[error("contains the delimiter `{literal}`")]
    Delimiter { literal: String },
    #[error("ends with a space, which padding would lose")]
    TrailingSpace,
    #[error("has a control character in a space-padded field")]
    ControlCharacter,
    #[error("not an even number of hexadecimal digits")]
    NotHex,
    #[error("not a sketch of distinct values that can be merged")]
    NotSketch,
    #[error("the row key is empty")]
    EmptyKey,
    #[error("the row key is over 4096 bytes")]
    KeyTooLong,
    #[error("the qualifier is over 16384 bytes")]
    QualifierTooLong,
    #[error("the cell is over 104857600 bytes")]
    CellTooLong,
    #[error("the qualifier `{qualifier}` is already a constant column of its family")]
    ConstantQualifier { qualifier: String },
    #[error("over 9223372036854775807, the most that int64 holds")]
    Int64Overflow,
    #[error("out of range for the protobuf type {kind}")]
    ProtoRange { kind: &'static str },
}

/// A batch that does not match the layout: an error of the program, not of the data.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum EncodeError {
    #[error("the batch has no column `{column}`: read it with the schema the layout was compiled for")]
    MissingColumn { column: String },
    #[error("column `{column}` of the batch is {found}, not {expected}: read it with the layout's schema")]
    WrongType { column: String, found: String, expected: String },
    #[error("the batch needs more than 4294967295 events: use smaller batches")]
    TooManyEvents,
    #[error("cannot encode a column: {0}")]
    Arrow(#[from] arrow::error::ArrowError),
}

/// A block that does not match the layout, because its table was written by another one or its SST is damaged.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each message says what its fields are")]
pub enum DecodeError {
    #[error("group {group} is not in the block: read it with the layout's projection")]
    NotProjected { group: usize },
    #[error("group {group} of the block does not match the layout: the table may need --rebuild")]
    Shape { group: usize },
    #[error("this layout cannot have written the row key `{key}`: the table may need --rebuild")]
    Key { key: String },
    #[error("this layout cannot have written the qualifier `{qualifier}`: the table may need --rebuild")]
    Qualifier { qualifier: String },
    #[error("there is no record field {field}: the layout has {count}")]
    NoField { field: usize, count: usize },
    #[error("cannot build the records: {0}")]
    Arrow(#[from] arrow::error::ArrowError),
}

/// A block that does not match its schema, because its SST is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("a block does not match the schema of its table ({what}); its SST may be damaged: run verify")]
pub struct ShapeError {
    /// What is missing, such as "a column".
    pub what: &'static str,
}
