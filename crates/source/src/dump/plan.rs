//! What the rows of one dump become.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;

use crate::dump::cells::{CellLists, is_dump};
use crate::dump::raw::RawColumns;
use crate::dump::records;
use crate::dump::rows::DumpRows;
use crate::error::SourceError;
use crate::format::Format;
use crate::spec::{DumpForm, DumpLayout, SourceSpec};

/// Turns rows of a dump into rows of its source.
#[derive(Debug)]
pub(crate) struct Dump {
    path: String,
    rows: Rows,
}

#[derive(Debug)]
enum Rows {
    Cells(RawColumns),
    Records(DumpLayout),
}

impl Dump {
    /// What the source `spec` makes of the dump at `path`, whose batches have `schema`.
    ///
    /// # Errors
    /// [`SourceError::NotDump`].
    pub fn new(spec: &SourceSpec, path: &str, schema: &Schema) -> Result<Self, SourceError> {
        if !is_dump(schema) {
            let path = path.to_owned();
            let found = schema.fields().iter().map(|field| field.name().clone()).collect();
            let format = if spec.format == Some(Format::BigtableAvro) { Format::Avro } else { Format::Parquet };
            return Err(SourceError::NotDump { path, found, format: format.key() });
        }
        let rows = match &spec.dump {
            DumpForm::Cells { families, keeps_micros } => {
                Rows::Cells(RawColumns::new(&spec.columns, families, *keeps_micros))
            }
            DumpForm::Records(layout) => Rows::Records(layout.clone()),
        };
        Ok(Self { path: path.to_owned(), rows })
    }

    /// The columns that a source may declare.
    pub fn schema(&self) -> SchemaRef {
        match &self.rows {
            Rows::Cells(columns) => Arc::clone(columns.schema()),
            Rows::Records(layout) => Arc::clone(layout.decoder().schema()),
        }
    }

    /// The rows of a source that those of `batch` become.
    ///
    /// # Errors
    /// [`SourceError::DumpFamily`], [`SourceError::DumpTime`], and [`SourceError::Arrow`] for cells of more than 2 GiB in one batch.
    pub fn rows(&self, batch: &RecordBatch) -> Result<DumpRows, SourceError> {
        let cells = CellLists::of(&self.path, batch)?;
        match &self.rows {
            Rows::Cells(columns) => columns.rows(&self.path, &cells),
            Rows::Records(layout) => records::rows(layout.decoder(), &cells).map_err(|source| self.arrow(source)),
        }
    }

    fn arrow(&self, source: ArrowError) -> SourceError {
        SourceError::Arrow { path: self.path.clone(), source }
    }
}
