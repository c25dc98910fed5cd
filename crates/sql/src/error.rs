//! What can go wrong in SQL.

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use tidetable_layout::error::DecodeError;
use tidetable_store::StoreError;

/// An error of a query, or of the store it reads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The query is wrong, or failed.
    #[error("{}", plain(.0))]
    Query(#[source] DataFusionError),
    /// A table whose event time cannot be read back was asked for a part of a window.
    #[error(
        "the layout of {table} does not read the event time back, so only whole windows of it can be told apart; \
         let a key or a timestamp hold the time, or ask for whole windows"
    )]
    NoTime {
        /// Table id.
        table: String,
    },
    /// A slice that cannot be read back as records or cells.
    #[error("{table}, {slice}: {source}")]
    Decode {
        /// Table id.
        table: String,
        /// Name of the slice.
        slice: String,
        /// The cause.
        source: DecodeError,
    },
    /// An option that views of rows do not have.
    #[error("there is no option {option}; there are {known}")]
    UnknownOption {
        /// As written.
        option: String,
        /// All options.
        known: String,
    },
    /// An option whose value is of the wrong type, or out of range.
    #[error("{option} takes {wanted}, not {found}")]
    WrongOption {
        /// The option.
        option: &'static str,
        /// What it takes.
        wanted: &'static str,
        /// The value.
        found: String,
    },
    /// An option whose value is not known before the query runs.
    #[error("{option} takes a constant, not {found}; to compare with columns or parameters, filter the cells by WHERE")]
    NotConstant {
        /// The option.
        option: &'static str,
        /// The expression.
        found: String,
    },
    /// An option that is there twice.
    #[error("{option} is there twice")]
    RepeatedOption {
        /// The option.
        option: &'static str,
    },
    /// An option about versions without a view that shows them.
    #[error("{option} is about versions, so it also needs with_history => true")]
    NeedsHistory {
        /// The option.
        option: &'static str,
    },
    /// A moment and its history.
    #[error("as_of shows the newest cells of a moment; with history write before_or_equal")]
    AsOfWithHistory,
    /// `UNPACK` of what has no timestamps.
    #[error("UNPACK needs the timestamps of cells: read the table with with_history => true")]
    UnpackWithoutHistory,
    /// `UNPACK` of a query that has the column that it adds.
    #[error("UNPACK adds a column _timestamp, and its query has one; give that another name")]
    UnpackTwice,
    /// Two options for one end of the time.
    #[error("{one} and {other} cannot both be there")]
    BothOptions {
        /// One of them.
        one: &'static str,
        /// The other.
        other: &'static str,
    },
    /// A view of a table that the store does not have.
    #[error("there is no table {table}; there {}", known_tables(known))]
    UnknownTable {
        /// As written.
        table: String,
        /// The tables of the store.
        known: Vec<String>,
    },
    /// A view of something that names no table.
    #[error("{view} takes the name of a table first, as in {view}(SENSOR, with_history => true), not {found}")]
    NoTableName {
        /// The view.
        view: &'static str,
        /// What stands there.
        found: String,
    },
    /// An argument of a view without a name.
    #[error("options are written by name, as in with_history => true, not {found}")]
    UnnamedOption {
        /// What stands there.
        found: String,
    },
    /// Options for a schema that has none.
    #[error("{schema} takes no options; write rows.{table}(..)")]
    NoOptions {
        /// The schema.
        schema: String,
        /// The table.
        table: String,
    },
    /// A table is declared over files of a form that there is no reader for.
    #[error("there is no STORED AS {found}: write one of {known}")]
    ExternalFormat {
        /// As written.
        found: String,
        /// Those there are.
        known: String,
    },
    /// A table is declared under the name of another.
    #[error(
        "there is a table {name} already: give the external table another name, or write CREATE OR REPLACE if it is one"
    )]
    ExternalTaken {
        /// The name.
        name: String,
    },
    /// A table is declared in a schema.
    #[error("an external table has a name without a schema, not {name}")]
    ExternalName {
        /// As written.
        name: String,
    },
    /// A table is declared over what is not there.
    #[error("there is no file or folder {location}; paths are relative to the folder of the command")]
    ExternalMissing {
        /// As written.
        location: String,
    },
    /// A published file that its list names is not there.
    #[error("{path} is not there: its part is being published again, so ask again; if it stays away, run its job")]
    PublishedGone {
        /// Path inside the store.
        path: String,
    },
    /// A published file whose bytes were changed since.
    #[error(
        "{path} is not as it was published: its bytes were changed, and what they say is not to be trusted. Run its job, \
         which publishes it again; `tidetable verify --exports` looks at all files"
    )]
    PublishedDamaged {
        /// Path inside the store.
        path: String,
    },
    /// A query of an export calls a function that gives something else each time.
    #[error(
        "{function}() gives something else each time, so the same data would be published differently; \
         $now is the time of the run, and $day, $from and $to are those of the part"
    )]
    UnsteadyExport {
        /// The function.
        function: String,
    },
    /// A query that does not fit into the memory it was given, and has nothing to write to disk.
    #[error("the query does not fit into the memory it may take: {said}; give it more, or no limit")]
    Memory {
        /// What asked for more.
        said: String,
    },
    /// A block lacks what its schema says.
    #[error("a block does not have the shape of its table ({what}); the SST it comes from may be damaged: run verify")]
    Shape {
        /// What is missing.
        what: &'static str,
    },
}

/// A name in a query that nothing has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    /// As written, without its schema.
    pub name: String,
    /// The columns that there are; of a table, nothing.
    pub known: Vec<String>,
    /// Whether it is the name of a table.
    pub is_table: bool,
}

impl SqlError {
    /// The table or the column of the query that is not there, if that is what is wrong.
    pub fn unknown_name(&self) -> Option<UnknownName> {
        let error = match self {
            Self::UnknownTable { table, known } => {
                return Some(UnknownName { name: table.clone(), known: known.clone(), is_table: true });
            }
            Self::Query(error) => error.find_root(),
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

fn known_tables(known: &[String]) -> String {
    match known {
        [] => "are none".to_owned(),
        [only] => format!("is {only}"),
        several => format!("are {}", several.join(", ")),
    }
}

/// The engine's message, without the rules of the engine that it came through.
pub(crate) fn plain(error: &DataFusionError) -> String {
    match error {
        DataFusionError::Context(_, inner) => plain(inner),
        DataFusionError::Diagnostic(_, inner) => plain(inner),
        DataFusionError::Shared(inner) => plain(inner),
        DataFusionError::Collection(several) => several.iter().map(plain).collect::<Vec<_>>().join("; "),
        other => other.strip_backtrace(),
    }
}

/// Result of this crate.
pub type Result<T, E = SqlError> = std::result::Result<T, E>;

impl From<DataFusionError> for SqlError {
    /// An error of this crate that the engine carried is that error again.
    fn from(error: DataFusionError) -> Self {
        if let DataFusionError::ResourcesExhausted(said) = error.find_root() {
            // Its first line says who asked for how much, the others who holds how much.
            return Self::Memory { said: said.lines().next().unwrap_or_default().to_owned() };
        }
        match error {
            DataFusionError::External(carried) => match carried.downcast::<Self>() {
                Ok(own) => *own,
                Err(other) => Self::Query(DataFusionError::External(other)),
            },
            other => Self::Query(other),
        }
    }
}

/// Carries an error through the engine; its text stays as it is.
pub(crate) fn external(error: impl Into<SqlError>) -> DataFusionError {
    DataFusionError::External(Box::new(error.into()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn rules_of_the_engine_are_not_named() {
        let through =
            |error: DataFusionError| error.context("decimals_as_floats").context("Invalid plan after Analyzer");
        let wrong = || through(DataFusionError::Plan("no such thing".to_owned()));
        let own = |error: DataFusionError| SqlError::from(error).to_string();
        assert!(wrong().to_string().contains("decimals_as_floats"));
        assert_eq!(own(wrong()), own(DataFusionError::Plan("no such thing".to_owned())));
        assert_eq!(own(through(DataFusionError::Shared(Arc::new(wrong())))), own(wrong()));
        assert!(!own(DataFusionError::Collection(vec![wrong(), wrong()])).contains("floats"));
    }
}
