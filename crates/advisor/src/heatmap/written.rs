//! What was written to a loaded table: source rows, cells or bytes.

use rayon::prelude::*;
use tidetable_cells::{CellRow, CellScan, RowSink, Rows};
use tidetable_layout::KeyRange;
use tidetable_layout::time::SECOND;

use crate::error::{AdvisorError, Result};
use crate::heatmap::map::Heatmap;
use crate::heatmap::stored::{History, StoredTable};
use crate::spread::WriteLog;
use crate::trial::TIMESTAMP_BYTES;

/// What a heatmap of writes counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Metric {
    /// Source rows, at the time at which they were written.
    #[default]
    Writes,
    /// Cells, by their timestamps. Those at timestamp 0 count when their row is first written.
    Cells,
    /// The bytes of these cells.
    Bytes,
}

/// The heatmap of a loaded table, with slices at least `width` seconds wide, and its writes; `None` if it is empty.
///
/// # Errors
/// If the table cannot be read.
pub fn stored_heatmap(table: &StoredTable, metric: Metric, width: Option<i64>) -> Result<Option<(Heatmap, WriteLog)>> {
    let Some(history) = table.history(width)? else { return Ok(None) };
    let mut map = match metric {
        Metric::Writes => Heatmap::of_log(&history.log),
        Metric::Cells | Metric::Bytes => count_cells(table, &history, metric)?,
    };
    table.name(&history, &mut map)?;
    Ok(Some((map, history.log)))
}

/// The heatmap of cells or of their bytes; key ranges are counted at the same time.
fn count_cells(table: &StoredTable, history: &History, metric: Metric) -> Result<Heatmap> {
    let log = &history.log;
    let mut first = vec![0_u32; log.keys as usize];
    for slice in 0..log.axis.slices {
        for write in log.writes(slice).filter(|write| write.is_new) {
            if let Some(first) = first.get_mut(write.rank as usize) {
                *first = slice as u32;
            }
        }
    }

    let counted = history.parts.par_iter().map(|part| count_part(table, log, &first, metric, part));
    counted.try_reduce(
        || Heatmap::new(log.axis, log.keys),
        |mut all, part| {
            all.add_all(&part);
            Ok(all)
        },
    )
}

/// The counts of a key range, given with the rank of its first key. `first` are the slices in which keys are first written.
fn count_part(
    table: &StoredTable,
    log: &WriteLog,
    first: &[u32],
    metric: Metric,
    part: &(KeyRange, u32),
) -> Result<Heatmap> {
    let map = Heatmap::new(log.axis, log.keys);
    let mut counts = CellCounts { map, log, first, rank: part.1, metric, scratch: Vec::new() };
    let all = CellScan::new(table.snapshot.clone());
    CellScan { keys: vec![part.0.clone()], rows: Rows::All, ..all }.run(&mut counts)?;
    Ok(counts.map)
}

/// Counts cells or their bytes, of the rows of a part of the table.
struct CellCounts<'a> {
    map: Heatmap,
    log: &'a WriteLog,
    /// The slices in which keys are first written, by rank.
    first: &'a [u32],
    /// Rank of the next row that has timestamps.
    rank: u32,
    metric: Metric,
    /// The row key or value that is measured.
    scratch: Vec<u8>,
}

impl RowSink for CellCounts<'_> {
    type Error = AdvisorError;

    fn row(&mut self, row: &mut CellRow<'_, '_>) -> Result<bool> {
        // Rows without a timestamp are not on the time axis.
        if !row.has_stored_timestamps() {
            return Ok(true);
        }

        self.scratch.clear();
        row.write_key(&mut self.scratch);
        let key_bytes = self.scratch.len();
        for cell in row.cells() {
            let slice = match cell.timestamp {
                0 => self.first.get(self.rank as usize).copied().unwrap_or_default() as usize,
                time => self.log.axis.slice_of(time.div_euclid(SECOND)),
            };
            let mut amount = 1;
            if self.metric == Metric::Bytes {
                let column = row.column(cell);
                self.scratch.clear();
                row.write_value(cell, &mut self.scratch);
                let bytes = key_bytes + column.family.len() + column.qualifier.len() + self.scratch.len();
                amount = bytes as u64 + TIMESTAMP_BYTES;
            }
            self.map.add(self.rank, slice, amount);
        }
        self.rank += 1;
        Ok(true)
    }
}
