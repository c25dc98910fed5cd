//! Errors: those of a server that cannot start, and refusals, which clients get with a code of SQLSTATE.

use std::io;

use pgwire::messages::response::{ErrorResponse, NoticeResponse};
use tidetable_serving::ServingError;
use tidetable_sql::SqlError;
use tidetable_store::StoreError;

/// Characters of a message at most: drivers show it in one line.
const MOST_TEXT: usize = 4_096;

/// Why a server cannot start or go on. Each message states what failed and what to do next.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresError {
    /// The address cannot be listened on, or the store cannot be read.
    #[error(transparent)]
    Serving(#[from] ServingError),
    /// An address that others reach, without what keeps them out.
    #[error(
        "{address} can be reached from other machines, so it needs {missing}: add {options}, or listen on this machine only, as \
         with --postgres 127.0.0.1:5432"
    )]
    Open {
        /// Host and port as the command line names them.
        address: String,
        /// What is missing: TLS, a password, or both.
        missing: &'static str,
        /// The options that bring it.
        options: &'static str,
    },
    /// A file that cannot be read.
    #[error("cannot read {file}: {source}")]
    File {
        /// Path of the file.
        file: String,
        /// Why the system does not give it.
        source: io::Error,
    },
    /// A file of passwords that holds none, or one that clients cannot send.
    #[error("{file}: {problem}")]
    Password {
        /// Path of the file.
        file: String,
        /// What is wrong, and what to write instead.
        problem: &'static str,
    },
    /// Files for TLS that cannot be used.
    #[error("{files} cannot be used for TLS: {reason}")]
    Tls {
        /// Paths of the files, with what they are.
        files: String,
        /// What is wrong with them.
        reason: String,
    },
    /// The listener has failed.
    #[error("the server on {address} failed: {source}; start it again")]
    Listener {
        /// Host and port as the command line names them.
        address: String,
        /// Why the system takes no connections.
        source: io::Error,
    },
}

impl PostgresError {
    /// The exit code of a command that it ends: 2 if its options are wrong, 1 if the system refuses.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Open { .. } | Self::Password { .. } | Self::Tls { .. } | Self::File { .. } => 2,
            Self::Serving(_) | Self::Listener { .. } => 1,
        }
    }
}

/// Results of this crate.
pub type Result<T, E = PostgresError> = std::result::Result<T, E>;

/// A code of SQLSTATE.
pub(crate) mod code {
    pub(crate) const WARNING: &str = "01000";
    pub(crate) const PROTOCOL: &str = "08P01";
    pub(crate) const UNSUPPORTED: &str = "0A000";
    pub(crate) const OUT_OF_RANGE: &str = "22003";
    pub(crate) const DIVISION: &str = "22012";
    pub(crate) const DATA: &str = "22000";
    pub(crate) const ENCODING: &str = "22021";
    pub(crate) const PARAMETER: &str = "22023";
    pub(crate) const TEXT: &str = "22P02";
    pub(crate) const BINARY: &str = "22P03";
    pub(crate) const CURSOR_STATE: &str = "34000";
    pub(crate) const STATEMENT_NAME: &str = "26000";
    pub(crate) const NO_TRANSACTION: &str = "25P01";
    pub(crate) const FAILED_TRANSACTION: &str = "25P02";
    pub(crate) const AUTHORIZATION: &str = "28000";
    pub(crate) const PASSWORD: &str = "28P01";
    pub(crate) const AGAIN: &str = "40001";
    pub(crate) const RULES: &str = "42000";
    pub(crate) const SYNTAX: &str = "42601";
    pub(crate) const COLUMN: &str = "42703";
    pub(crate) const SETTING: &str = "42704";
    pub(crate) const FUNCTION: &str = "42883";
    pub(crate) const TABLE: &str = "42P01";
    pub(crate) const CURSOR_NAME: &str = "42P03";
    pub(crate) const PREPARED: &str = "42P05";
    pub(crate) const MEMORY: &str = "53200";
    pub(crate) const CLIENTS: &str = "53300";
    pub(crate) const LIMIT: &str = "53400";
    pub(crate) const COMPLEX: &str = "54001";
    pub(crate) const CANCELLED: &str = "57014";
    pub(crate) const SHUTDOWN: &str = "57P01";
    pub(crate) const STORAGE: &str = "58030";
    pub(crate) const INTERNAL: &str = "XX000";
    pub(crate) const DAMAGED: &str = "XX001";
}

/// What a client gets instead of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// Line and column of the mistake in the statement, both from 1.
    pub(crate) place: Option<(u64, u64)>,
    /// Whether the connection ends with it.
    pub(crate) is_fatal: bool,
}

impl Refusal {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), place: None, is_fatal: false }
    }

    /// A refusal that ends the connection.
    pub(crate) fn fatal(code: &'static str, message: impl Into<String>) -> Self {
        Self { is_fatal: true, ..Self::new(code, message) }
    }

    /// A message that is none of the protocol.
    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self::fatal(code::PROTOCOL, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(code::INTERNAL, message)
    }

    pub(crate) fn out_of_range(message: impl Into<String>) -> Self {
        Self::new(code::OUT_OF_RANGE, message)
    }

    /// The message for the client; `statement` is what the place of the mistake counts in.
    pub(crate) fn response(&self, statement: &str) -> ErrorResponse {
        let severity = if self.is_fatal { "FATAL" } else { "ERROR" };
        let mut fields = fields(severity, self.code, &self.message);
        if let Some(position) = self.place.and_then(|place| position(statement, place)) {
            fields.push((b'P', position.to_string()));
        }
        ErrorResponse::new(fields)
    }
}

/// A warning that does not end a statement.
pub(crate) fn warning(message: &str) -> NoticeResponse {
    NoticeResponse::new(fields("WARNING", code::WARNING, message))
}

fn fields(severity: &str, code: &str, message: &str) -> Vec<(u8, String)> {
    let message: String = message.chars().filter(|letter| *letter != '\0').take(MOST_TEXT).collect();
    [(b'S', severity), (b'V', severity), (b'C', code), (b'M', &message)]
        .map(|(key, text)| (key, text.to_owned()))
        .into()
}

/// The place as a number of characters from the start of the statement, from 1.
fn position(statement: &str, (line, column): (u64, u64)) -> Option<usize> {
    let line = usize::try_from(line).ok()?.checked_sub(1)?;
    let before: usize = statement.split_inclusive('\n').take(line).map(|line| line.chars().count()).sum();
    Some(before + usize::try_from(column).ok()?)
}

impl From<SqlError> for Refusal {
    fn from(error: SqlError) -> Self {
        let code = code_of(&error);
        let place = error.place();
        Self { place, ..Self::new(code, error.without_place()) }
    }
}

impl From<ServingError> for Refusal {
    fn from(error: ServingError) -> Self {
        let code = match &error {
            ServingError::Store(store) => code_of_store(store),
            ServingError::NoTable { .. } => code::TABLE,
            _ => code::STORAGE,
        };
        Self::new(code, error.to_string())
    }
}

fn code_of_store(error: &StoreError) -> &'static str {
    match error {
        StoreError::NoTable { .. } => code::TABLE,
        StoreError::Blob(_) => code::STORAGE,
        _ => code::DAMAGED,
    }
}

fn code_of(error: &SqlError) -> &'static str {
    if let Some(unknown) = error.unknown_name() {
        return if unknown.is_table { code::TABLE } else { code::COLUMN };
    }
    match error {
        SqlError::Store(store) => code_of_store(store),
        SqlError::Decode { .. } | SqlError::Shape(_) => code::DAMAGED,
        SqlError::PublishedGone { .. } | SqlError::PublishedReplaced { .. } => code::AGAIN,
        SqlError::PublishedDamaged { .. } | SqlError::PublishedNewer { .. } => code::DAMAGED,
        SqlError::Memory { .. } => code::MEMORY,
        SqlError::TooDeep { .. } | SqlError::TooManyGroupingSets { .. } => code::COMPLEX,
        SqlError::Abandoned => code::CANCELLED,
        SqlError::PlannerPanicked => code::INTERNAL,
        SqlError::Query(_) => code_of_run(&error.to_string()),
        _ => code_of_statement(error, &error.to_string()),
    }
}

/// The code of a query that failed over its data. The cause is known by its words only.
fn code_of_run(message: &str) -> &'static str {
    let message = message.to_ascii_lowercase();
    match () {
        () if message.contains("divide by zero") || message.contains("division by zero") => code::DIVISION,
        () if message.contains("overflow") || message.contains("out of range") => code::OUT_OF_RANGE,
        () if message.contains("cannot cast") || message.contains("parse") => code::TEXT,
        () => code::DATA,
    }
}

/// The code of a statement that was refused when it was parsed or planned.
fn code_of_statement(error: &SqlError, message: &str) -> &'static str {
    let is_syntax = error.is_syntax();
    match () {
        () if is_syntax => code::SYNTAX,
        () if message.contains("Invalid function") || message.contains("does not take (") => code::FUNCTION,
        () if message.contains("not supported") || message.contains("not implemented") => code::UNSUPPORTED,
        () if message.contains("Cannot cast") => code::TEXT,
        () => code::RULES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_characters_from_the_start() {
        assert_eq!(position("SELECT x", (1, 8)), Some(8));
        assert_eq!(position("SELECT 'é',\n  x", (2, 3)), Some(15));
        assert_eq!(position("SELECT", (0, 1)), None);
    }

    #[test]
    fn messages_carry_code_and_place() {
        let refusal = Refusal { place: Some((1, 8)), ..Refusal::new(code::COLUMN, "no \0such column") };
        let response = refusal.response("SELECT x");
        assert!(response.fields.contains(&(b'C', "42703".to_owned())));
        assert!(response.fields.contains(&(b'M', "no such column".to_owned())));
        assert!(response.fields.contains(&(b'P', "8".to_owned())));
        assert!(Refusal::protocol("garbage").response("").fields.contains(&(b'S', "FATAL".to_owned())));
    }
}
