//! Rows of Bigtable to records of a job's source, through the layout of its table.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use tidetable_layout::Layout;
use tidetable_layout::parse::ParsedCell;
use tidetable_layout::read_back::{RowDecoder, StoredRow};

use crate::client::Row;
use crate::error::{BigtableError, Result};
use crate::pull::{Decoded, Undecoded};

/// Decodes rows through a layout.
#[derive(Debug)]
pub struct RecordDecoder {
    rows: RowDecoder,
}

impl StoredRow for Row {
    fn key(&self) -> &[u8] {
        &self.key
    }

    fn cells(&self) -> impl Iterator<Item = ParsedCell<'_>> {
        self.cells.iter().map(|cell| ParsedCell {
            family: &cell.family,
            qualifier: &cell.qualifier,
            timestamp: cell.timestamp,
            value: &cell.value,
        })
    }
}

impl RecordDecoder {
    /// A decoder of the rows of `table`, a table of a job with this layout.
    ///
    /// # Errors
    /// [`BigtableError::NoWayBack`] if a column of the source that the layout uses cannot be read back.
    pub fn new(table: &str, layout: Arc<Layout>) -> Result<Self> {
        let rows = RowDecoder::new(layout).map_err(|lost| BigtableError::NoWayBack {
            table: table.to_owned(),
            column: lost.column,
            reason: lost.why.to_string(),
        })?;
        Ok(Self { rows })
    }

    /// The columns of the source.
    pub fn schema(&self) -> &SchemaRef {
        self.rows.schema()
    }

    /// Decodes rows, which ascend; those that the layout cannot have written are returned with the reason.
    ///
    /// # Errors
    /// Of Arrow.
    pub fn decode(&self, rows: &[Row]) -> Result<Decoded> {
        let mut decoded = self.rows.decode(rows)?;
        // The records of a row follow each other.
        decoded.rows.dedup();
        let written = decoded.rows.iter().filter_map(|row| rows.get(*row as usize));
        let cells = written.map(|row| row.cells.len() as u64).sum();

        let undecoded = decoded.undecoded.into_iter();
        let undecoded =
            undecoded.filter_map(|undecoded| Some(Undecoded::of(rows.get(undecoded.row)?, undecoded.reason)));
        Ok(Decoded { batches: decoded.batches, cells, undecoded: undecoded.collect() })
    }
}
