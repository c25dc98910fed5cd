//! The code of SQLSTATE of each error that a query can end with.

use std::error::Error;
use std::io;

use arrow::error::ArrowError;
use tidetable_blobs::BlobError;
use tidetable_sql::{EngineFault, SqlError};
use tidetable_store::StoreError;

use crate::error::code;

/// What Linux says if the process, or the system, has too many open files.
const TOO_MANY_FILES: [i32; 2] = [24, 23];

/// The code of an error of a query.
pub(super) fn of_sql(error: &SqlError) -> &'static str {
    if let Some(unknown) = error.unknown_name() {
        return if unknown.is_table { code::TABLE } else { code::COLUMN };
    }
    match error {
        SqlError::Store(store) => of_store(store),
        SqlError::Decode { .. } | SqlError::Shape(_) | SqlError::DamagedFile { .. } => code::DAMAGED,
        SqlError::PublishedGone { .. } | SqlError::PublishedReplaced { .. } => code::AGAIN,
        SqlError::PublishedDamaged { .. } | SqlError::PublishedNewer { .. } => code::DAMAGED,
        SqlError::File(file) => carried(file).unwrap_or(code::DAMAGED),
        SqlError::ExternalMissing { .. } => code::FILE,
        SqlError::Memory { .. } => code::MEMORY,
        SqlError::TooDeep { .. }
        | SqlError::TooManyGroupingSets { .. }
        | SqlError::TooManyRelations { .. }
        | SqlError::TooManyParts { .. } => code::COMPLEX,
        SqlError::NoParameter { .. } => code::NO_PARAMETER,
        SqlError::OnlyReads { .. } => code::READ_ONLY,
        SqlError::Abandoned => code::CANCELLED,
        SqlError::PlannerPanicked => code::INTERNAL,
        SqlError::Invalid(engine) => carried(engine).or_else(|| of_engine(error)).unwrap_or(code::RULES),
        SqlError::Query(engine) => carried(engine).or_else(|| of_engine(error)).unwrap_or(code::DATA),
        _ => code::RULES,
    }
}

/// The code of an error of the store.
pub(super) fn of_store(error: &StoreError) -> &'static str {
    match error {
        StoreError::NoTable { .. } => code::TABLE,
        StoreError::Blob(blob) => of_blob(blob),
        StoreError::Temporary { source, .. } => of_system(source),
        StoreError::Vacuumed { .. } | StoreError::NoVersion { .. } | StoreError::NoVersionAt { .. } => code::SNAPSHOT,
        StoreError::Newer { .. } | StoreError::Layout { .. } => code::UNSUPPORTED,
        StoreError::SumOverflow { .. } => code::OUT_OF_RANGE,
        _ => code::DAMAGED,
    }
}

fn of_blob(error: &BlobError) -> &'static str {
    match error {
        BlobError::Io { source, .. } => of_system(source),
        _ => code::STORAGE,
    }
}

/// The code of what the system refuses.
fn of_system(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => code::DISK,
        io::ErrorKind::OutOfMemory => code::MEMORY,
        io::ErrorKind::NotFound => code::FILE,
        _ if error.raw_os_error().is_some_and(|number| TOO_MANY_FILES.contains(&number)) => code::RESOURCES,
        _ => code::STORAGE,
    }
}

/// The code of an error that another one carries, if it is of the store or of the system: engines pass them on in wrappers.
fn carried(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(store) = error.downcast_ref() {
            return Some(of_store(store));
        }
        if let Some(blob) = error.downcast_ref() {
            return Some(of_blob(blob));
        }
        if let Some(system) = error.downcast_ref() {
            return Some(of_system(system));
        }
        match error.downcast_ref::<SqlError>() {
            None | Some(SqlError::Invalid(_) | SqlError::Query(_)) => cause = error.source(),
            Some(sql) => return Some(of_sql(sql)),
        }
    }
    None
}

/// The code of an error of the engine; `None` if neither its kind nor its words tell the cause.
fn of_engine(error: &SqlError) -> Option<&'static str> {
    match error.engine_fault()? {
        EngineFault::Syntax => Some(code::SYNTAX),
        EngineFault::Ambiguous => Some(code::AMBIGUOUS),
        EngineFault::Arrow(arrow) => of_arrow(arrow).or_else(|| of_words(&error.to_string())),
        EngineFault::Damaged => Some(code::DAMAGED),
        EngineFault::Storage => Some(code::STORAGE),
        EngineFault::Task => Some(code::INTERNAL),
        EngineFault::Memory => Some(code::MEMORY),
        EngineFault::Unsupported => Some(code::UNSUPPORTED),
        // The engine takes some mistakes of queries for its own, and their words are known.
        EngineFault::Internal => Some(of_words(&error.to_string()).unwrap_or(code::INTERNAL)),
        EngineFault::Unknown => of_words(&error.to_string()),
    }
}

fn of_arrow(error: &ArrowError) -> Option<&'static str> {
    match error {
        ArrowError::DivideByZero => Some(code::DIVISION),
        ArrowError::ArithmeticOverflow(_) | ArrowError::DictionaryKeyOverflowError => Some(code::OUT_OF_RANGE),
        ArrowError::CastError(_) | ArrowError::ParseError(_) => Some(code::TEXT),
        ArrowError::ParquetError(_) | ArrowError::IpcError(_) => Some(code::DAMAGED),
        ArrowError::IoError(_, system) => Some(of_system(system)),
        ArrowError::MemoryError(_) => Some(code::MEMORY),
        ArrowError::NotYetImplemented(_) => Some(code::UNSUPPORTED),
        _ => None,
    }
}

/// The code of an error whose kind says nothing, by the words of DataFusion and of functions.
fn of_words(message: &str) -> Option<&'static str> {
    const KNOWN: [(&str, &str); 14] = [
        ("divide by zero", code::DIVISION),
        ("division by zero", code::DIVISION),
        ("overflow", code::OUT_OF_RANGE),
        ("out of range", code::OUT_OF_RANGE),
        ("invalid function", code::FUNCTION),
        ("does not take (", code::FUNCTION),
        ("no function matches", code::FUNCTION),
        ("must appear in the group by", code::GROUPING),
        ("in the group by clause", code::GROUPING),
        ("not supported", code::UNSUPPORTED),
        ("not implemented", code::UNSUPPORTED),
        ("cannot cast", code::TEXT),
        ("cannot parse", code::TEXT),
        ("error parsing", code::TEXT),
    ];
    let message = message.to_ascii_lowercase();
    KNOWN.iter().find(|(words, _)| message.contains(words)).map(|(_, code)| *code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing() -> StoreError {
        StoreError::SstMissing { path: "tables/T/sst/1.sst".to_owned() }
    }

    fn full() -> io::Error {
        io::ErrorKind::StorageFull.into()
    }

    #[test]
    fn errors_of_the_store_have_codes() {
        let blob = |kind: io::ErrorKind| BlobError::Io { action: "read", path: "a".to_owned(), source: kind.into() };
        for (error, expected) in [
            (missing(), "XX001"),
            (StoreError::NoTable { name: "T".to_owned(), root: "r".to_owned(), known: String::new() }, "42P01"),
            (StoreError::Vacuumed { table: "T".to_owned(), number: 1, oldest: 2 }, "72000"),
            (StoreError::Newer { path: "m".to_owned(), format: 9, known: 3 }, "0A000"),
            (blob(io::ErrorKind::PermissionDenied).into(), "58030"),
            (blob(io::ErrorKind::NotFound).into(), "58P01"),
            (blob(io::ErrorKind::StorageFull).into(), "53100"),
        ] {
            assert_eq!(of_store(&error), expected, "{error}");
        }
        assert_eq!(of_system(&io::Error::from_raw_os_error(24)), "53000");
    }

    #[test]
    fn errors_are_found_inside_of_those_of_the_engine() {
        let external = |error: SqlError| -> Box<dyn Error + Send + Sync> { Box::new(error) };
        let stored = || external(SqlError::Store(missing()));
        assert_eq!(of_sql(&SqlError::Query(stored().into())), "XX001");
        let SqlError::Query(inner) = SqlError::Query(stored().into()) else { panic!("another error") };
        assert_eq!(of_sql(&SqlError::Query(inner.context("a rule"))), "XX001");
        assert_eq!(of_sql(&SqlError::Query(ArrowError::ExternalError(stored()).into())), "XX001");
        assert_eq!(of_sql(&SqlError::Query(full().into())), "53100");
        let replaced = external(SqlError::PublishedReplaced { path: "a".to_owned() });
        assert_eq!(of_sql(&SqlError::Query(replaced.into())), "40001");
    }

    #[test]
    fn errors_of_the_engine_have_codes() {
        for (error, expected) in [
            (ArrowError::DivideByZero, "22012"),
            (ArrowError::ArithmeticOverflow("Overflow happened".to_owned()), "22003"),
            (ArrowError::CastError("Cannot cast string 'x'".to_owned()), "22P02"),
            (ArrowError::ParquetError("bad page".to_owned()), "XX001"),
        ] {
            let shown = error.to_string();
            assert_eq!(of_sql(&SqlError::Query(error.into())), expected, "{shown}");
        }
        assert_eq!(of_words("Invalid function 'f'"), Some("42883"));
        assert_eq!(of_words("odd"), None);
        assert_eq!(of_sql(&SqlError::Memory { said: String::new() }), "53200");
        assert_eq!(of_sql(&SqlError::TooManyRelations { limit: 1, cte: None }), "54001");
        assert_eq!(of_sql(&SqlError::NoParameter { name: "$0".to_owned(), problem: "" }), "42P02");
        assert_eq!(of_sql(&SqlError::Abandoned), "57014");
    }
}
