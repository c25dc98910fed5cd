//! What kind of fault an error of DataFusion is of, for those who answer errors with codes of their own.

use arrow::error::ArrowError;
use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;

use crate::error::SqlError;

/// The kind of an error of DataFusion, by the cause that it wraps.
#[derive(Debug)]
pub enum EngineFault<'a> {
    /// The text is no SQL.
    Syntax,
    /// A name stands for several columns.
    Ambiguous,
    /// A computation of arrow failed.
    Arrow(&'a ArrowError),
    /// A file is not what its format says.
    Damaged,
    /// An object store failed.
    Storage,
    /// A task of the engine ended.
    Task,
    /// The engine calls it a fault of its own, which some mistakes of queries are, too.
    Internal,
    /// A limit of memory is reached.
    Memory,
    /// The engine has no such feature.
    Unsupported,
    /// Only its words tell more.
    Unknown,
}

impl SqlError {
    /// The kind of the error of the engine that this one wraps; `None` for others.
    pub fn engine_fault(&self) -> Option<EngineFault<'_>> {
        let (Self::Invalid(error) | Self::Query(error)) = self else { return None };
        Some(match error.find_root() {
            DataFusionError::SQL(..) => EngineFault::Syntax,
            DataFusionError::ArrowError(error, _) => EngineFault::Arrow(error),
            DataFusionError::ParquetError(_) => EngineFault::Damaged,
            DataFusionError::ObjectStore(_) => EngineFault::Storage,
            DataFusionError::ExecutionJoin(_) => EngineFault::Task,
            DataFusionError::ResourcesExhausted(_) => EngineFault::Memory,
            DataFusionError::NotImplemented(_) => EngineFault::Unsupported,
            DataFusionError::SchemaError(error, _)
                if matches!(error.as_ref(), SchemaError::AmbiguousReference { .. }) =>
            {
                EngineFault::Ambiguous
            }
            DataFusionError::Internal(_) => EngineFault::Internal,
            _ => EngineFault::Unknown,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_engine_have_kinds() {
        let of =
            |error: DataFusionError| format!("{:?}", SqlError::Query(error.context("a rule")).engine_fault().unwrap());
        assert_eq!(of(ArrowError::DivideByZero.into()), "Arrow(DivideByZero)");
        assert_eq!(of(DataFusionError::NotImplemented("no".to_owned())), "Unsupported");
        assert_eq!(of(DataFusionError::Internal("a bug".to_owned())), "Internal");
        assert_eq!(of(DataFusionError::ResourcesExhausted("much".to_owned())), "Memory");
        assert_eq!(of(DataFusionError::Execution("odd".to_owned())), "Unknown");
        assert!(SqlError::Abandoned.engine_fault().is_none());
    }
}
