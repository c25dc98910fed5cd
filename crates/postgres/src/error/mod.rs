//! Errors: those of a server that cannot start, and refusals, which clients get with a code of SQLSTATE.

pub(crate) mod code;
mod sqlstate;

use std::io;

use pgwire::messages::response::{ErrorResponse, NoticeResponse};
use tidetable_serving::ServingError;
use tidetable_sql::SqlError;

use crate::error::sqlstate::{of_sql, of_store};

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

/// The message for a warning, which does not end a statement.
pub(crate) fn warning(code: &str, text: &str) -> NoticeResponse {
    NoticeResponse::new(fields("WARNING", code, text))
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
        let code = of_sql(&error);
        let place = error.place();
        Self { place, ..Self::new(code, error.without_place()) }
    }
}

impl From<ServingError> for Refusal {
    fn from(error: ServingError) -> Self {
        let code = match &error {
            ServingError::Store(store) => of_store(store),
            ServingError::Lost(store) => of_store(store),
            ServingError::NoTable { .. } => code::TABLE,
            ServingError::Panicked(_) => code::INTERNAL,
            ServingError::Ended => code::SHUTDOWN,
            _ => code::STORAGE,
        };
        Self::new(code, error.to_string())
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
