//! Rows of a dump as records, read by the layout of a table.

use std::ops::Range;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::error::ArrowError;
use tidetable_layout::parse::ParsedCell;
use tidetable_layout::read_back::{RowDecoder, StoredRow, UndecodedRow};

use crate::dump::cells::CellLists;
use crate::dump::rows::DumpRows;
use crate::reject::RejectReason;

/// A row of a dump. Files may hold a row in several parts.
struct DumpRow<'a> {
    cells: &'a CellLists,
    /// The rows of the batch that are its parts.
    parts: &'a [u32],
}

impl DumpRow<'_> {
    fn first(&self) -> u32 {
        self.parts.first().copied().unwrap_or_default()
    }

    fn places(&self) -> impl Iterator<Item = usize> {
        self.parts.iter().flat_map(|row| -> Range<usize> { self.cells.cells_of(*row as usize) })
    }
}

impl StoredRow for DumpRow<'_> {
    fn key(&self) -> &[u8] {
        self.cells.key(self.first() as usize)
    }

    fn cells(&self) -> impl Iterator<Item = ParsedCell<'_>> {
        self.places().map(|place| self.cells.cell(place))
    }
}

/// The records of the rows of a batch, whose keys may be in any order.
///
/// # Errors
/// Of Arrow.
pub(super) fn rows(decoder: &RowDecoder, cells: &CellLists) -> Result<DumpRows, ArrowError> {
    let (mut faults, mut empty) = (Vec::new(), Vec::new());
    let mut places: Vec<u32> = Vec::with_capacity(cells.rows());
    for row in 0..cells.rows() {
        let fault = cells.row_fault(row).or_else(|| cells.cells_of(row).find_map(|place| cells.cell_fault(place)));
        match fault {
            Some(reason) => faults.push((row as u32, reason)),
            None if cells.cells_of(row).is_empty() => empty.push(row as u32),
            None => places.push(row as u32),
        }
    }

    places.sort_by(|a, b| cells.key(*a as usize).cmp(cells.key(*b as usize)));
    let parts = places.chunk_by(|a, b| cells.key(*a as usize) == cells.key(*b as usize));
    let rows: Vec<DumpRow<'_>> = parts.map(|parts| DumpRow { cells, parts }).collect();
    let decoded = decoder.decode(&rows)?;

    let row_of = |place: usize| rows.get(place).map_or(0, DumpRow::first);
    for UndecodedRow { row, reason } in decoded.undecoded {
        faults.push((row_of(row), RejectReason::NotOfLayout { reason }));
    }
    let batch = match <[RecordBatch; 1]>::try_from(decoded.batches) {
        Ok([batch]) => batch,
        Err(batches) => concat_batches(decoder.schema(), &batches)?,
    };
    let records = decoded.rows.into_iter().map(|place| row_of(place as usize)).collect();
    Ok(DumpRows { batch, records, faults, empty })
}
