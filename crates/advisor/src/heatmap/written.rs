//! What was written to a loaded table: source rows, cells or bytes.

use tidetable_layout::time::SECOND;
use tidetable_layout::{KeyRange, Projection};
use tidetable_sql::cells_of_block;

use crate::error::Result;
use crate::heatmap::map::Heatmap;
use crate::heatmap::stored::{StoredTable, timed};
use crate::spread::WriteLog;
use crate::trial::PartBytes;

/// What a heatmap of writes counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Metric {
    /// Source rows written.
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
    let history = table.history()?;
    let Some(log) = history.log(width) else { return Ok(None) };
    let mut map = Heatmap::of_log(&log, |name| table.each_name(&history, name))?;
    if metric != Metric::Writes {
        let names = std::mem::take(&mut map.buckets);
        map = count_cells(table, &log, metric)?;
        map.buckets = names;
    }
    Ok(Some((map, log)))
}

/// Cells or their bytes.
fn count_cells(table: &StoredTable, log: &WriteLog, metric: Metric) -> Result<Heatmap> {
    let mut first = vec![0; log.keys as usize];
    for (slice, writes) in log.slices.iter().enumerate() {
        for rank in &writes.new {
            if let Some(first) = first.get_mut(*rank as usize) {
                *first = slice;
            }
        }
    }
    let mut map = Heatmap::new(log.axis, log.keys);
    let schema = table.snapshot.schema();
    let Some(range) = table.snapshot.whole(&KeyRange::all()) else { return Ok(map) };
    let mut ranks = 0_u32;
    for block in table.snapshot.scan(&range, &Projection::all(schema))? {
        let block = block?;
        let timed: Vec<_> = timed(schema).filter_map(|at| block.groups.get(at)?.as_ref()).collect();
        // Rows without a timestamp are not on the time axis.
        let rank_of: Vec<Option<u32>> = (0..block.keys.len())
            .map(|row| {
                let is_timed = timed.iter().any(|group| !group.records(row).is_empty());
                is_timed.then(|| {
                    ranks += 1;
                    ranks - 1
                })
            })
            .collect();
        cells_of_block(schema, &block, |cell| {
            let Some(rank) = rank_of.get(cell.row).copied().flatten() else { return Ok(()) };
            let slice = match cell.timestamp {
                0 => first.get(rank as usize).copied().unwrap_or_default(),
                time => log.axis.slice_of(time.div_euclid(SECOND)),
            };
            map.add(rank, slice, if metric == Metric::Bytes { PartBytes::of(&cell).total() } else { 1 });
            Ok(())
        })?;
    }
    Ok(map)
}
