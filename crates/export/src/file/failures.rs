//! Errors of a query and of writing its rows, with the names that messages need.

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use tidetable_sql::SqlError;

use crate::error::ExportError;

/// What the errors of a query and of its file are about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failures<'a> {
    /// The export or file whose query it is.
    pub(crate) export: &'a str,
    /// The part of the export.
    pub(crate) label: &'a str,
    /// The file that is written.
    pub(crate) path: &'a str,
}

impl Failures<'_> {
    /// The query cannot be planned.
    pub(crate) fn query(&self, source: SqlError) -> ExportError {
        ExportError::Query { export: self.export.to_owned(), label: self.label.to_owned(), source: Box::new(source) }
    }

    /// The query fails while it runs.
    pub(crate) fn engine(&self, source: DataFusionError) -> ExportError {
        self.query(source.into())
    }

    /// The file cannot be written.
    pub(crate) fn write(&self, source: ArrowError) -> ExportError {
        ExportError::Write { path: self.path.to_owned(), source }
    }
}
