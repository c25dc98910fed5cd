//! Which errors are transient, so that a retry may succeed. Pure functions.

use std::error::Error;
use std::io::{self, ErrorKind};

use tidetable_export::ExportError;
use tidetable_source::SourceError;
use tidetable_sql::SqlError;
use tidetable_store::StoreError;

use crate::run::error::RunError;

/// Whether a retry after `error` may succeed: the disk, the network or an object store
/// failed, a file changed while it was read, or another process committed first. Mistakes in the job file, in its SQL
/// or in the data are permanent.
pub(crate) fn is_transient(error: &RunError) -> bool {
    passes(error)
}

/// Walks an error and its sources. A `transparent` error skips the error that it carries and
/// returns that one's source, so those are matched here.
fn passes(error: &(dyn Error + 'static)) -> bool {
    if let Some(error) = error.downcast_ref::<RunError>() {
        match error {
            RunError::Store(inner) => return passes(inner),
            RunError::Export(inner) => return passes(inner.as_ref()),
            // A secret is missing, the job is locked, or the run was stopped: a retry changes nothing.
            RunError::Interrupted { .. } | RunError::Secret { .. } | RunError::Locked { .. } => return false,
            _ => {}
        }
    }
    if let Some(ExportError::Store(inner)) = error.downcast_ref() {
        return passes(inner);
    }
    if let Some(SqlError::Store(inner)) = error.downcast_ref() {
        return passes(inner);
    }
    match error.downcast_ref() {
        Some(
            StoreError::Conflict { .. }
            | StoreError::Fenced { .. }
            | StoreError::OutcomeUnknown { .. }
            | StoreError::InputMoved { .. }
            // The file may be moved away.
            | StoreError::InTheWay { .. },
        ) => return true,
        Some(StoreError::Source(inner)) => return passes(inner),
        _ => {}
    }
    match error.downcast_ref() {
        Some(SourceError::Changed { .. }) => return true,
        Some(SourceError::StoreSettings { .. }) => return false,
        _ => {}
    }
    if let Some(may) = tidetable_source::is_transient(error) {
        return may;
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        // `source` skips the error that an `io::Error` carries.
        return system_may_pass(error) || error.get_ref().is_some_and(|inner| passes(inner));
    }
    error.source().is_some_and(passes)
}

/// Whether the operating system returned it; an `io::Error` of a parser is about the data.
fn system_may_pass(error: &io::Error) -> bool {
    let wrong_use = matches!(
        error.kind(),
        ErrorKind::InvalidInput | ErrorKind::InvalidData | ErrorKind::InvalidFilename | ErrorKind::Unsupported
    );
    let by_kind = matches!(
        error.kind(),
        ErrorKind::TimedOut
            | ErrorKind::Interrupted
            | ErrorKind::WouldBlock
            | ErrorKind::StorageFull
            | ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
    );
    !wrong_use && (error.raw_os_error().is_some() || by_kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn io(number: i32) -> io::Error {
        io::Error::from_raw_os_error(number)
    }

    fn store(source: io::Error) -> StoreError {
        StoreError::Io { action: "write", path: "x".to_owned(), source }
    }

    #[test]
    fn what_the_disk_says_may_pass_however_deep_it_is() {
        let full = || store(io(28));
        assert!(is_transient(&RunError::Store(full())));
        assert!(is_transient(&RunError::from(ExportError::Store(full()))));
        let query = RunError::Query { export: "E".to_owned(), source: Box::new(SqlError::Store(full())) };
        assert!(is_transient(&query));
        let feed = StoreError::Feed { input: "T".to_owned(), source: Box::new(SqlError::Store(full())) };
        assert!(is_transient(&RunError::Store(feed)));
        let arrow = arrow_external(full());
        assert!(is_transient(&RunError::from(ExportError::Write { path: "x".to_owned(), source: arrow })));
        assert!(is_transient(&RunError::Store(store(io::Error::other(full())))));
    }

    #[test]
    fn another_process_may_be_done_soon() {
        let conflict = StoreError::Conflict { table: "T".to_owned(), reason: "x".to_owned() };
        assert!(is_transient(&RunError::Store(conflict)));
        assert!(is_transient(&RunError::Store(StoreError::InTheWay { path: "x".to_owned() })));
        let moved = StoreError::Source(SourceError::Changed { path: "x".to_owned() });
        assert!(is_transient(&RunError::Store(moved)));
    }

    #[test]
    fn mistakes_stay_mistakes() {
        let text = || "x".to_owned();
        let rejected =
            RunError::TooManyRejected { source_name: text(), rejected: 1, read: 1, limit: text(), log: text() };
        let gone = SourceError::NoMatch { name: text(), pattern: text(), root: text() };
        let parse = store(io::Error::new(ErrorKind::InvalidData, "no number"));
        for error in [
            rejected,
            RunError::Interrupted { signal: 2 },
            RunError::NotByPeriod { export: text(), found: text() },
            RunError::Store(StoreError::Source(gone)),
            RunError::Store(parse),
            RunError::Store(store(io(36))),
            RunError::Query { export: text(), source: Box::new(SqlError::UnpackTwice) },
        ] {
            assert!(!is_transient(&error), "{error}");
        }
    }

    /// An error of ours as writers of files wrap it.
    fn arrow_external(error: StoreError) -> arrow::error::ArrowError {
        arrow::error::ArrowError::ExternalError(Box::new(error))
    }
}
