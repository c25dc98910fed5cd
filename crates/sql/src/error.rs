//! Errors of this crate.

use arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::common::utils::datafusion_strsim::levenshtein;
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;
use tidetable_blobs::BlobError;
use tidetable_functions::{Abandoned, as_written};
use tidetable_layout::error::{DecodeError, ShapeError};
use tidetable_source::sample::SampleError;
use tidetable_source::{LocationError, describe_request};
use tidetable_store::StoreError;

use crate::advice;

/// An error of a query, or of the store it reads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The query is not valid: it was refused when it was parsed or planned.
    #[error("{}", plain(.0))]
    Invalid(#[source] DataFusionError),
    /// The query failed while it ran.
    #[error("{}", plain(.0))]
    Query(#[source] DataFusionError),
    /// A part of a window was requested of a table that does not store the event time.
    #[error(
        "the layout of {table} does not store the event time, so only whole windows can be selected; \
         let a key or a timestamp hold the time, or select whole windows"
    )]
    NoTime {
        /// Id of the table, as the store knows it.
        table: String,
    },
    /// A scan range that cannot be decoded.
    #[error("{table}, {slice}: {source}")]
    Decode {
        /// Id of the table, as the store knows it.
        table: String,
        /// Name of the scan range.
        slice: String,
        /// Why the cells of the range are no records of the layout.
        source: DecodeError,
    },
    /// An unknown option of a view.
    #[error("unknown option {option}; the options are {known}")]
    UnknownOption {
        /// The option as the query writes it.
        option: String,
        /// Names of all options, separated by commas.
        known: String,
    },
    /// An option whose value has the wrong type, or is out of range.
    #[error("{option} takes {wanted}, not {found}")]
    WrongOption {
        /// Name of the option, in lower case.
        option: &'static str,
        /// The values that the option takes, in words.
        wanted: &'static str,
        /// The value that the query gives to it.
        found: String,
    },
    /// An option whose value is not a constant.
    #[error("{option} takes a constant, not {found}; to compare with columns or parameters, filter the cells by WHERE")]
    NotConstant {
        /// Name of the option, in lower case.
        option: &'static str,
        /// The expression that the query writes for it.
        found: String,
    },
    /// An option that a view names twice.
    #[error("{option} is given twice; write it once")]
    RepeatedOption {
        /// Name of the option, in lower case.
        option: &'static str,
    },
    /// An option about versions in a view without history.
    #[error("{option} applies to versions, so it also needs with_history => true")]
    NeedsHistory {
        /// Name of the option, in lower case.
        option: &'static str,
    },
    /// `as_of`, which shows one version of a cell, together with history.
    #[error("as_of shows the newest cells at one time; with history write before_or_equal")]
    AsOfWithHistory,
    /// `UNPACK` of columns without timestamps.
    #[error("UNPACK needs the timestamps of cells: read the table with with_history => true")]
    UnpackWithoutHistory,
    /// `UNPACK` of a query that already has the column `_timestamp`.
    #[error("UNPACK adds a column _timestamp, which its query has already; give that column another name with AS")]
    UnpackTwice,
    /// Two options for the same bound.
    #[error("{one} and {other} cannot both be given; write one of them")]
    BothOptions {
        /// Name of one of the options.
        one: &'static str,
        /// Name of the other option, which sets the same bound.
        other: &'static str,
    },
    /// A view of an unknown table.
    #[error("there is no table {table}; there {}", known_tables(known))]
    UnknownTable {
        /// The table as the query writes it.
        table: String,
        /// The tables of the store.
        known: Vec<String>,
    },
    /// A view whose first argument is not a table name.
    #[error("{view} takes the name of a table first, as in {view}(SENSOR, with_history => true), not {found}")]
    NoTableName {
        /// Name of the view, such as `rows`.
        view: &'static str,
        /// The first argument as the query writes it.
        found: String,
    },
    /// A view argument without a name.
    #[error("options are written by name, as in with_history => true, not {found}")]
    UnnamedOption {
        /// The argument as the query writes it.
        found: String,
    },
    /// Options for a schema that takes none.
    #[error("{schema} takes no options; write rows.{table}(..)")]
    NoOptions {
        /// The schema that the query names.
        schema: String,
        /// The table that the query names.
        table: String,
    },
    /// An external table in an unknown format.
    #[error("STORED AS {found} is not supported; write one of {known}")]
    ExternalFormat {
        /// The format as the statement writes it.
        found: String,
        /// The formats that are supported, separated by commas.
        known: String,
    },
    /// An external table with the name of another table.
    #[error(
        "there is a table {name} already: give the external table another name, or write CREATE OR REPLACE if it is one"
    )]
    ExternalTaken {
        /// The name that is taken already.
        name: String,
    },
    /// An external table in a schema.
    #[error("external tables have no schema: write the name alone, not {name}")]
    ExternalName {
        /// The name as the statement writes it.
        name: String,
    },
    /// A file of a query that is not on this machine.
    #[error("{error}, or load it with a job")]
    ExternalPlace {
        /// What is wrong with its place.
        error: LocationError,
    },
    /// An external table over a missing location.
    #[error("there is no file or directory {location}; paths are relative to the working directory")]
    ExternalMissing {
        /// The location as the statement writes it.
        location: String,
    },
    /// A file whose name tells no form.
    #[error(
        "the name of {path} tells no form: it ends in .csv, .json, .parquet or .arrow, or a function reads it: read_csv('{path}'), read_json or read_parquet"
    )]
    UnknownForm {
        /// The path as the query writes it.
        path: String,
    },
    /// An argument that a function of files does not take.
    #[error("{function} takes paths in quotes, one or a list{options}, not {found}")]
    FileArgument {
        /// Name of the function, such as `read_csv`.
        function: String,
        /// The argument as the query writes it.
        found: String,
        /// The options that the function takes, in words.
        options: &'static str,
    },
    /// A file of a query that cannot be read, or is not as its ending says.
    #[error(transparent)]
    File(SampleError),
    /// A file that its reader cannot make rows of.
    #[error("{path}: {problem}; the file is damaged: copy it again")]
    DamagedFile {
        /// Path of the file.
        path: String,
        /// What is wrong, in the words of the reader.
        problem: String,
    },
    /// A file whose columns are not those of its table.
    #[error(
        "{path}: {problem}; a table is of files with equal columns in equal order, so declare this file for itself"
    )]
    OtherColumns {
        /// Path of the file.
        path: String,
        /// The column, and what is wrong with it.
        problem: String,
    },
    /// A published file is missing.
    #[error(
        "{path} is missing: its part may be published again just now, so repeat the query; if it stays missing, run its job"
    )]
    PublishedGone {
        /// Path of the file inside the store.
        path: String,
    },
    /// A published file that was replaced while a query read it.
    #[error("{path} was published again while the query read it, so repeat the query")]
    PublishedReplaced {
        /// Path of the file inside the store.
        path: String,
    },
    /// A published file was changed after publication.
    #[error(
        "{path} was changed after it was published, so its values cannot be trusted. Run its job, \
         which publishes it again; `tidetable verify --exports` checks all files"
    )]
    PublishedDamaged {
        /// Path of the file inside the store.
        path: String,
    },
    /// A published file was replaced and its list was not written.
    #[error(
        "{path} is newer than its list exports/{list}.json: a run replaced it and did not come to write the list, as on a full \
         disk, or it was exchanged since. Run its job, which publishes and lists it again"
    )]
    PublishedNewer {
        /// Path of the file inside the store.
        path: String,
        /// Name of the export whose list names the file.
        list: String,
    },
    /// The list of an export is missing, and its files are there.
    #[error(
        "exports/{export}.json, the list of the files of export {export}, is missing, though published files are there: {remedy}"
    )]
    ListLost {
        /// Name of the export.
        export: String,
        /// The command that mends it.
        remedy: String,
    },
    /// A query of an export calls a function that is not deterministic.
    #[error(
        "{function}() gives another value each time, so the same data would be published differently; \
         $now is the time of the run, and $day, $from and $to are those of the part"
    )]
    UnsteadyExport {
        /// Name of the function that was called.
        function: String,
    },
    /// A query exceeds its memory limit and cannot spill.
    #[error("the query does not fit into its memory limit: {said}; raise the limit, or remove it")]
    Memory {
        /// The consumer that asked for more.
        said: String,
    },
    /// A statement whose planning would recurse too deeply.
    #[error(
        "the statement has more than {limit} {what}, which is too deep to be planned: split it, or put values into a \
         list (IN) or a table"
    )]
    TooDeep {
        /// What there is too much of.
        what: &'static str,
        /// The most that a statement may have of it.
        limit: usize,
        /// Line and column where that is exceeded, from 1, if they are known.
        at: Option<(u64, u64)>,
    },
    /// A `SELECT` with more grouping sets than are planned.
    #[error("the statement has more than {limit} grouping sets: name those that are wanted, in GROUPING SETS")]
    TooManyGroupingSets {
        /// The most that a `SELECT` may have.
        limit: usize,
    },
    /// A statement with more relations than are planned.
    #[error(
        "the statement has more than {limit} relations{}, or write its rows into a file and read that",
        doubled(.cte.as_deref())
    )]
    TooManyRelations {
        /// The most that a statement may have, with those of its CTEs wherever they are named.
        limit: usize,
        /// The CTE that stands for most of them.
        cte: Option<String>,
    },
    /// A statement that writes.
    #[error("{statement} is not supported, as SQL only reads: {instead}")]
    OnlyReads {
        /// Its first words, in upper case.
        statement: &'static str,
        /// The command that does what was meant.
        instead: &'static str,
    },
    /// A parameter `$1`, `$2`, .. that has no value, or whose number no parameter has.
    #[error("there is no parameter {name}: {problem}")]
    NoParameter {
        /// The parameter as the query writes it.
        name: String,
        /// Why there is none, and what to write.
        problem: &'static str,
    },
    /// A query of system catalogs that becomes too large where functions are written out.
    #[error(
        "the query calls functions of system catalogs on results of others too often: written out it has more than {limit} \
         parts. Split it, or compute their arguments in a subquery of FROM"
    )]
    TooManyParts {
        /// The most parts that may be added to a query.
        limit: usize,
    },
    /// A tuple that is compared with rows of another width.
    #[error("a tuple of {wanted} values is compared with the rows of a subquery of {found} columns: give both as many")]
    TupleWidth {
        /// The values of the tuple.
        wanted: usize,
        /// The columns of the subquery.
        found: usize,
    },
    /// The caller of a query no longer waits for its plan.
    #[error("{Abandoned}")]
    Abandoned,
    /// Planning panicked: a fault of the program or of a library.
    #[error("planning failed by a fault of the program, not of the query: please report it with the query")]
    PlannerPanicked,
    /// A block does not match its schema.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

impl From<BlobError> for SqlError {
    fn from(error: BlobError) -> Self {
        Self::Store(error.into())
    }
}

/// An unknown name in a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    /// As written, without its schema.
    pub name: String,
    /// The known columns or tables; may be empty for a table.
    pub known: Vec<String>,
    /// Whether it is the name of a table.
    pub is_table: bool,
}

impl SqlError {
    /// An error of DataFusion while it parsed or planned a query.
    pub fn planning(error: DataFusionError) -> Self {
        match Self::from(error) {
            Self::Query(error) if !is_of_data(&error) => Self::Invalid(error),
            other => other,
        }
    }

    /// This error, which a planner met.
    pub(crate) fn of_planning(self) -> Self {
        match self {
            Self::Query(error) => Self::planning(error),
            other => other,
        }
    }

    /// The message without the place at its end, for whoever shows the line of the error.
    pub fn without_place(&self) -> String {
        let message = self.to_string();
        let Some((line, column)) = self.place() else { return message };
        message.strip_suffix(&format!(" at line {line}, column {column}")).map(str::to_owned).unwrap_or(message)
    }

    /// Whether the statement is wrong, whatever the data: it would fail again over the same tables.
    pub fn is_of_statement(&self) -> bool {
        match self {
            // Some nodes find out when they are executed.
            Self::Query(error) => is_refusal(error.find_root()),
            Self::Store(StoreError::NoTable { .. }) => true,
            Self::Store(_)
            | Self::Decode { .. }
            | Self::DamagedFile { .. }
            | Self::OtherColumns { .. }
            | Self::File(_)
            | Self::PublishedGone { .. }
            | Self::PublishedReplaced { .. }
            | Self::PublishedDamaged { .. }
            | Self::PublishedNewer { .. }
            | Self::ListLost { .. }
            | Self::Abandoned
            | Self::PlannerPanicked
            | Self::Memory { .. }
            | Self::Shape(_) => false,
            _ => true,
        }
    }

    /// Whether the statement is no SQL: the parser refused it.
    pub fn is_syntax(&self) -> bool {
        match self {
            Self::Invalid(error) | Self::Query(error) => matches!(error.find_root(), DataFusionError::SQL(..)),
            _ => false,
        }
    }

    /// The unknown table or column, if that is the error.
    pub fn unknown_name(&self) -> Option<UnknownName> {
        let error = match self {
            Self::UnknownTable { table, known } => {
                return Some(UnknownName { name: table.clone(), known: known.clone(), is_table: true });
            }
            Self::Invalid(error) | Self::Query(error) => error.find_root(),
            _ => return None,
        };

        match error {
            DataFusionError::SchemaError(error, _) => match error.as_ref() {
                SchemaError::FieldNotFound { field, valid_fields } => {
                    let known = valid_fields.iter().map(|column| column.name.clone()).collect();
                    Some(UnknownName { name: field.name.clone(), known, is_table: false })
                }
                _ => None,
            },
            DataFusionError::Plan(said) => {
                let (path, _) = said.strip_prefix("table '")?.split_once("' not found")?;
                let name = path.rsplit('.').next().unwrap_or(path).to_owned();
                Some(UnknownName { name, known: Vec::new(), is_table: true })
            }
            _ => None,
        }
    }
}

/// Whether DataFusion refuses a query, rather than fails in it.
fn is_refusal(error: &DataFusionError) -> bool {
    matches!(
        error,
        DataFusionError::SQL(..)
            | DataFusionError::Plan(_)
            | DataFusionError::SchemaError(..)
            | DataFusionError::NotImplemented(_)
            | DataFusionError::Configuration(_)
    )
}

/// Whether an error of planning is one of what the query reads: files are opened for their schemas.
fn is_of_data(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::ArrowError(error, _) => matches!(
            error.as_ref(),
            ArrowError::ExternalError(_)
                | ArrowError::CsvError(_)
                | ArrowError::JsonError(_)
                | ArrowError::IoError(..)
                | ArrowError::IpcError(_)
                | ArrowError::ParquetError(_)
                | ArrowError::AvroError(_)
        ),
        DataFusionError::ParquetError(_)
        | DataFusionError::ObjectStore(_)
        | DataFusionError::IoError(_)
        | DataFusionError::External(_)
        | DataFusionError::ExecutionJoin(_)
        | DataFusionError::ResourcesExhausted(_) => true,
        _ => false,
    }
}

/// Why a statement has many relations, and what to do about it.
fn doubled(cte: Option<&str>) -> String {
    match cte {
        Some(cte) => format!(
            ", most of them in {cte}: a CTE (WITH) is planned wherever it is named, with all that it names. Name it less often"
        ),
        None => ": a subquery that a tuple is compared with, as in (a, b) IN (SELECT ..), is planned twice, with all below it, \
                 unless the comparison is a condition of WHERE. Nest fewer of them"
            .to_owned(),
    }
}

fn known_tables(known: &[String]) -> String {
    match known {
        [] => "are none".to_owned(),
        [only] => format!("is {only}"),
        several => format!("are {}", several.join(", ")),
    }
}

/// DataFusion's message without the names of the rules that passed it on.
pub(crate) fn plain(error: &DataFusionError) -> String {
    match error {
        DataFusionError::Context(_, inner) => plain(inner),
        DataFusionError::Diagnostic(_, inner) => plain(inner),
        DataFusionError::Shared(inner) => plain(inner),
        DataFusionError::SQL(error, _) => parser_message(error),
        DataFusionError::Collection(several) => several.iter().map(plain).collect::<Vec<_>>().join("; "),
        other => match of_bucket(other) {
            Some(text) => text,
            None => {
                let said = other.strip_backtrace();
                let known = misplaced_subquery(&said)
                    .or_else(|| wrong_arguments(&said))
                    .or_else(|| unfit_row(&said))
                    .or_else(|| of_another_system(&said));
                as_written(&known.unwrap_or_else(|| without_far_suggestion(without_setting(said))))
            }
        },
    }
}

/// The message of the parser, with the place of the error in plain words at its end.
fn parser_message(error: &ParserError) -> String {
    let message = match error {
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message.as_str(),
        ParserError::RecursionLimitExceeded => "the statement is nested too deeply",
    };
    match message.rsplit_once(" at Line: ") {
        Some((text, place)) => format!("{text} at line {}", place.replace("Column:", "column")),
        None => message.to_owned(),
    }
}

/// Why a bucket did not serve the files of a query, if that is the cause.
fn of_bucket(error: &DataFusionError) -> Option<String> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        // These say so in their own words.
        if error.is::<StoreError>() || error.is::<SqlError>() {
            return None;
        }
        if let Some(error) = error.downcast_ref() {
            return describe_request(error);
        }
        cause = error.source();
    }
    None
}

/// A message about an unknown function, with DataFusion's suggestion only if that is near: it names the nearest of all,
/// however far.
fn without_far_suggestion(said: String) -> String {
    let Some((first, rest)) = said.split_once(".\nDid you mean '") else { return said };
    let (Some((_, unknown)), Some((suggested, _))) = (first.split_once("Invalid function '"), rest.split_once('\''))
    else {
        return said;
    };
    let unknown = unknown.trim_end_matches('\'');
    let is_near = levenshtein(unknown, suggested) <= (unknown.chars().count() / 3).max(1);
    if is_near { said } else { first.to_owned() }
}

/// The message for a subquery at a place where it cannot be planned, which DataFusion names by its own types.
fn misplaced_subquery(said: &str) -> Option<String> {
    const PLACES: &str = "In/Exist/SetComparison subquery can only be used in ";
    const EXPRESSION: &str = "Physical plan does not support logical expression ";
    let (subquery, place) = if said.contains(PLACES) {
        let (_, node) = said.split_once("but was used in [")?;
        let place = match node.split(':').next()? {
            "Sort" => "in ORDER BY",
            "DistinctOn" => "in DISTINCT ON",
            "Values" => "in VALUES",
            _ => "here",
        };
        ("a subquery of EXISTS, IN or ANY", place)
    } else {
        let (_, expression) = said.split_once(EXPRESSION)?;
        let subquery = match expression.split(['(', ' ', '{']).next()? {
            "Exists" => "a subquery of EXISTS",
            "InSubquery" | "SetComparison" => "a subquery of IN or ANY",
            "ScalarSubquery" => "a subquery",
            "OuterReferenceColumn" => "a subquery that uses columns of the outer query",
            _ => return None,
        };
        (subquery, "here")
    };
    Some(format!("{subquery} cannot stand {place}; compute its value in a subquery of FROM first"))
}

/// The message for arguments of types that a function does not take, which DataFusion takes for a bug of its own.
fn wrong_arguments(said: &str) -> Option<String> {
    let (_, call) = said.split_once("No function matches the given name and argument types '")?;
    let (call, rest) = call.split_once("'. ")?;
    let (_, forms) = rest.split_once("Candidate functions:")?;
    let forms: Vec<&str> = forms.lines().map(str::trim).filter(|form| !form.is_empty()).collect();
    if forms.iter().any(|form| form.contains("UserDefined")) {
        // The function has said itself what it takes.
        return None;
    }

    let (name, types) = call.split_once('(')?;
    let types =
        types.trim_end_matches(')').replace("LargeUtf8", "text").replace("Utf8View", "text").replace("Utf8", "text");
    let cast = match forms.iter().any(|form| form.contains("Float64")) {
        true => format!(
            ": make a number of it first, as in {name}(CAST(.. AS DOUBLE)), or TRY_CAST where some values are no numbers"
        ),
        false => String::new(),
    };
    Some(format!("{name} does not take ({types}); there is {}{cast}", forms.join(", ")))
}

/// What reads a file of text whose rows do not all fit.
const BY_A_JOB: &str =
    "A job reads such a file, rejects these rows and says where they are: `tidetable new JOB --from FILE`";

/// A function of another system that has no equal here, with what to write instead.
fn of_another_system(said: &str) -> Option<String> {
    let (_, unknown) = said.split_once("Invalid function '")?;
    let (name, _) = unknown.split_once('\'')?;
    let advice = advice::for_function(name)?;
    Some(format!("there is no function {name}: {advice}"))
}

/// A row of a CSV file that has other columns than the rows before, or a value of another type. Lines are left out: large files are read
/// in pieces, and Arrow counts from the start of one.
fn unfit_row(said: &str) -> Option<String> {
    if let Some((_, rest)) = said.split_once("Error while parsing value '") {
        let (value, rest) = rest.split_once("' as type '")?;
        let (kind, rest) = rest.split_once("' for column ")?;
        let (column, rest) = rest.split_once(" at line ")?;
        let (_, row) = rest.split_once("Row data: '")?;
        let column = column.parse::<usize>().ok()? + 1;
        return Some(format!(
            "{value:?} in column {column} of a CSV file is no {kind}, as which the first rows of the file are read; its row is {}. {BY_A_JOB}",
            row.trim_end_matches('\'')
        ));
    }

    // `incorrect number of fields for line 7, expected 3 got 2`, or `Expected 3 records, found 2 records at line 7`.
    let fields = said.split_once("incorrect number of fields for line ").map(|(_, counts)| numbers(counts));
    let records = said.split_once("unequal lengths between records on CSV file. ").map(|(_, counts)| numbers(counts));
    let (wanted, found) = match (fields.as_deref(), records.as_deref()) {
        (Some([_, wanted, found]), _) | (_, Some([wanted, found, _])) => (wanted, found),
        _ => return None,
    };
    Some(format!(
        "a row of a CSV file has {found} values, and the rows before have {wanted}: a quote that is never closed, or a delimiter inside a \
         value. {BY_A_JOB}"
    ))
}

/// The numbers in a text.
fn numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

/// A message without DataFusion's advice on names in other case, which names a setting that users cannot change.
fn without_setting(said: String) -> String {
    const SETTING: &str = "enable_ident_normalization configuration.";
    const ADVICE: &str = " You can use double quotes to refer to the ";
    match (said.find(ADVICE), said.find(SETTING)) {
        (Some(start), Some(end)) if start < end => {
            let rest = said.get(end + SETTING.len()..).unwrap_or_default();
            format!("{}{rest}", said.get(..start).unwrap_or_default())
        }
        _ => said,
    }
}

/// A result whose error is an [`SqlError`] unless another type is given.
pub type Result<T, E = SqlError> = std::result::Result<T, E>;

impl From<DataFusionError> for SqlError {
    /// Unwraps errors of this crate that DataFusion carried.
    fn from(error: DataFusionError) -> Self {
        if let DataFusionError::ResourcesExhausted(said) = error.find_root() {
            // Its first line names the request, the others the holders of memory.
            return Self::Memory { said: said.lines().next().unwrap_or_default().to_owned() };
        }
        match error {
            DataFusionError::External(carried) => match carried.downcast::<Self>() {
                Ok(own) => *own,
                Err(other) if other.is::<Abandoned>() => Self::Abandoned,
                Err(other) => Self::Query(DataFusionError::External(other)),
            },
            other => Self::Query(other),
        }
    }
}

/// Carries an error through DataFusion; its text is unchanged.
pub(crate) fn external(error: impl Into<SqlError>) -> DataFusionError {
    DataFusionError::External(Box::new(error.into()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn functions_are_suggested_only_where_one_is_near() {
        let said = |unknown: &str, suggested: &str| {
            let text = format!("Invalid function '{unknown}'.\nDid you mean '{suggested}'?");
            plain(&DataFusionError::Plan(text))
        };
        assert!(said("approx_distnct", "approx_distinct").contains("Did you mean 'approx_distinct'"));
        assert!(said("percentile_approx", "percent_rank").ends_with("Invalid function 'percentile_approx'"));
    }

    #[test]
    fn wrong_arguments_are_no_bug() {
        let text = "Internal error: Function 'avg' failed to match any signature, errors: ... This issue was likely caused by a \
                    bug in DataFusion's code. No function matches the given name and argument types 'avg(Utf8)'. You might need \
                    to add explicit type casts.\n\tCandidate functions:\n\tavg(Decimal)\n\tavg(Float64)";
        assert_eq!(
            plain(&DataFusionError::Plan(text.to_owned())),
            "avg does not take (text); there is avg(Decimal), avg(Float64): make a number of it first, as in \
             avg(CAST(.. AS DOUBLE)), or TRY_CAST where some values are no numbers"
        );
    }

    #[test]
    fn rows_that_do_not_fit_lead_to_a_job() {
        let said = |text: &str| plain(&DataFusionError::Plan(text.to_owned()));
        let fields = said("Arrow error: Csv error: incorrect number of fields for line 48498, expected 3 got 2");
        assert!(fields.starts_with("a row of a CSV file has 2 values, and the rows before have 3: "), "{fields}");
        let lengths = "Csv error: Encountered unequal lengths between records on CSV file. Expected 2 records, found 3 records at line 7";
        assert!(said(lengths).starts_with("a row of a CSV file has 3 values, and the rows before have 2: "));
        let value = "Parser error: Error while parsing value 'n/a' as type 'Float64' for column 2 at line 9. Row data: '[3,n/a]'";
        let value = said(value);
        assert!(value.starts_with("\"n/a\" in column 3 of a CSV file is no Float64, as which"), "{value}");
        assert!(value.contains("its row is [3,n/a]. A job reads such a file"), "{value}");
    }

    #[test]
    fn errors_of_the_parser_are_plain() {
        let raw = ParserError::ParserError("Expected: an expression, found: FROM at Line: 2, Column: 8".to_owned());
        let error = SqlError::planning(DataFusionError::SQL(Box::new(raw), None));
        assert_eq!(error.to_string(), "Expected: an expression, found: FROM at line 2, column 8");
        assert_eq!(error.without_place(), "Expected: an expression, found: FROM");
        assert_eq!(error.place(), Some((2, 8)));
    }

    #[test]
    fn errors_do_not_name_rules_of_datafusion() {
        let through =
            |error: DataFusionError| error.context("decimals_as_floats").context("Invalid plan after Analyzer");
        let wrong = || through(DataFusionError::Plan("no such thing".to_owned()));
        let own = |error: DataFusionError| SqlError::from(error).to_string();
        assert!(wrong().to_string().contains("decimals_as_floats"));
        assert_eq!(own(wrong()), own(DataFusionError::Plan("no such thing".to_owned())));
        assert_eq!(own(through(DataFusionError::Shared(Arc::new(wrong())))), own(wrong()));
        assert!(!own(DataFusionError::Collection(vec![wrong(), wrong()])).contains("floats"));
    }

    #[test]
    fn errors_do_not_name_settings_of_datafusion() {
        let column = |name: &str| datafusion::common::Column::new(Some("METER"), name);
        let field = Box::new(column("KWH"));
        let error = SchemaError::FieldNotFound { field, valid_fields: vec![column("kwh"), column("ts")] };
        let through = DataFusionError::SchemaError(Box::new(error), Box::new(None));
        assert!(through.to_string().contains("enable_ident_normalization"));
        let said = SqlError::from(through).to_string();
        assert!(!said.contains("datafusion") && !said.contains("double quotes"), "{said}");
        assert!(said.contains("are case sensitive.\nValid fields are") && said.contains("No field named"), "{said}");
    }
}
