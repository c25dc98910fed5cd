//! Which errors are transient, so that a retry may succeed. Pure functions.

use std::error::Error;
use std::io::{self, ErrorKind};

use tidetable_blobs::BlobError;
use tidetable_export::ExportError;
use tidetable_source::SourceError;
use tidetable_sql::SqlError;
use tidetable_store::StoreError;

use crate::fault::error::RunError;
use crate::fault::unit_failure::{CarryError, UnitFailure};

/// Whether a retry after `error` may succeed: the disk, the network or an object store failed, a file changed while it
/// was read, or another process committed first. Mistakes in the job file, in its SQL or in the data are permanent.
pub(crate) fn is_transient(error: &RunError) -> bool {
    is_transient_chain(error)
}

/// Whether an error, or one in its chain of sources, is transient. The `source` of a `transparent` error skips the
/// error that it wraps, so such errors are unwrapped here.
pub(crate) fn is_transient_chain(error: &(dyn Error + 'static)) -> bool {
    if let Some(failure) = error.downcast_ref::<UnitFailure>() {
        return failure.transient;
    }
    if let Some(error) = error.downcast_ref::<CarryError>() {
        return matches!(error, CarryError::Unreachable { .. } | CarryError::Unanswered { .. });
    }
    if let Some(error) = error.downcast_ref::<RunError>() {
        match error {
            RunError::Unit(inner) => return inner.transient,
            RunError::Carry(inner) => return is_transient_chain(inner),
            RunError::Store(inner) => return is_transient_chain(inner),
            RunError::Export(inner) => return is_transient_chain(inner.as_ref()),
            RunError::Push { source, .. } => return source.is_transient,
            RunError::Catalog { source, .. } => return source.is_transient(),
            RunError::NoPusher { .. } => return false,
            // A secret is missing, the job is locked, or the run was stopped: a retry changes nothing.
            RunError::Interrupted { .. } | RunError::Secret { .. } | RunError::Locked { .. } => return false,
            _ => {}
        }
    }
    if let Some(ExportError::Store(inner)) = error.downcast_ref() {
        return is_transient_chain(inner);
    }
    if let Some(SqlError::Store(inner)) = error.downcast_ref() {
        return is_transient_chain(inner);
    }
    match error.downcast_ref() {
        Some(
            StoreError::Conflict { .. }
            | StoreError::Fenced { .. }
            | StoreError::OutcomeUnknown { .. }
            | StoreError::InputChanged { .. }
            // The file may be moved away.
            | StoreError::Blob(BlobError::NotADirectory { .. }),
        ) => return true,
        Some(StoreError::Source(inner) | StoreError::Blob(BlobError::Open(inner))) => return is_transient_chain(inner),
        Some(StoreError::Runner(inner)) => return is_transient_chain(inner.as_ref()),
        _ => {}
    }
    match error.downcast_ref() {
        Some(SourceError::Changed { .. }) => return true,
        Some(SourceError::StoreSettings { .. }) => return false,
        _ => {}
    }
    if let Some(transient) = tidetable_source::is_transient(error) {
        return transient;
    }
    if let Some(error) = error.downcast_ref::<io::Error>() {
        // The `source` of an `io::Error` skips the error that it wraps.
        return is_transient_io(error) || error.get_ref().is_some_and(|inner| is_transient_chain(inner));
    }
    error.source().is_some_and(is_transient_chain)
}

/// Whether an `io::Error` is of the operating system or the network. All of those are transient, except for calls that
/// are wrong in themselves, such as with too long a file name. Other errors, as of a parser, are about the data.
fn is_transient_io(error: &io::Error) -> bool {
    let wrong_call = matches!(
        error.kind(),
        ErrorKind::InvalidInput | ErrorKind::InvalidData | ErrorKind::InvalidFilename | ErrorKind::Unsupported
    );
    let transient_kind = matches!(
        error.kind(),
        ErrorKind::TimedOut
            | ErrorKind::Interrupted
            | ErrorKind::WouldBlock
            | ErrorKind::StorageFull
            | ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::ConnectionAborted
    );
    !wrong_call && (error.raw_os_error().is_some() || transient_kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENOSPC: i32 = 28;
    const ENAMETOOLONG: i32 = 36;

    fn os_error(number: i32) -> io::Error {
        io::Error::from_raw_os_error(number)
    }

    fn store(source: io::Error) -> StoreError {
        StoreError::Blob(BlobError::Io { action: "write", path: "x".to_owned(), source })
    }

    #[test]
    fn disk_errors_are_transient_at_any_depth() {
        let disk_full = || store(os_error(ENOSPC));
        assert!(is_transient(&RunError::Store(disk_full())));
        assert!(is_transient(&RunError::from(ExportError::Store(disk_full()))));
        let query = RunError::Query { export: "E".to_owned(), source: Box::new(SqlError::Store(disk_full())) };
        assert!(is_transient(&query));
        let feed = StoreError::Feed { input: "T".to_owned(), source: Box::new(SqlError::Store(disk_full())) };
        assert!(is_transient(&RunError::Store(feed)));
        let arrow = arrow_external(disk_full());
        assert!(is_transient(&RunError::from(ExportError::Write { path: "x".to_owned(), source: arrow })));
        assert!(is_transient(&RunError::Store(store(io::Error::other(disk_full())))));
    }

    #[test]
    fn changes_by_other_processes_are_transient() {
        let conflict = StoreError::Conflict { table: "T".to_owned(), reason: "x".to_owned() };
        assert!(is_transient(&RunError::Store(conflict)));
        assert!(is_transient(&RunError::Store(StoreError::Blob(BlobError::NotADirectory { path: "x".to_owned() }))));
        let changed = StoreError::Source(SourceError::Changed { path: "x".to_owned() });
        assert!(is_transient(&RunError::Store(changed)));
    }

    #[test]
    fn mistakes_are_permanent() {
        let text = || "x".to_owned();
        let rejected = RunError::TooManyRejected {
            source_name: text().into(),
            rejected: 1,
            read: 1,
            what: "rows",
            limit: text().into(),
            first: text().into(),
            job: text().into(),
            log: text().into(),
        };
        let no_match = SourceError::NoMatch { name: text(), pattern: text(), root: text(), notes: Vec::new() };
        let parse = store(io::Error::new(ErrorKind::InvalidData, "no number"));
        for error in [
            rejected,
            RunError::Interrupted { signal: 2 },
            RunError::NotByPeriod { export: text(), found: text() },
            RunError::Store(StoreError::Source(no_match)),
            RunError::Store(parse),
            RunError::Store(store(os_error(ENAMETOOLONG))),
            RunError::Query { export: text(), source: Box::new(SqlError::UnpackTwice) },
        ] {
            assert!(!is_transient(&error), "{error}");
        }
    }

    /// Wraps an error as the file writers of Arrow do.
    fn arrow_external(error: StoreError) -> arrow::error::ArrowError {
        arrow::error::ArrowError::ExternalError(Box::new(error))
    }
}
