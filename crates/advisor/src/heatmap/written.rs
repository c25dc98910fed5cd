//! What was written to a loaded table: source rows, cells or bytes.

use rayon::prelude::*;
use tidetable_layout::time::SECOND;
use tidetable_layout::{KeyRange, Projection};
use tidetable_sql::cells_of_block;

use crate::error::Result;
use crate::heatmap::map::Heatmap;
use crate::heatmap::stored::{History, StoredTable, timed};
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
    let Some(history) = table.history(width)? else { return Ok(None) };
    let mut map = match metric {
        Metric::Writes => Heatmap::of_log(&history.log),
        Metric::Cells | Metric::Bytes => count_cells(table, &history, metric)?,
    };
    table.name(&history, &mut map)?;
    Ok(Some((map, history.log)))
}

/// Cells or their bytes.
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
    let of_part = |(keys, rank): &(KeyRange, u32)| count_part(table, (keys, *rank), (log, &first), metric);
    let empty = || Heatmap::new(log.axis, log.keys);
    history.parts.par_iter().map(of_part).try_reduce(empty, |mut one, other| {
        one.add_all(&other);
        Ok(one)
    })
}

/// The same of the rows of a key range, whose first key has this rank. `first` are the slices in which keys are first written.
fn count_part(
    table: &StoredTable,
    (keys, mut rank): (&KeyRange, u32),
    (log, first): (&WriteLog, &[u32]),
    metric: Metric,
) -> Result<Heatmap> {
    let mut map = Heatmap::new(log.axis, log.keys);
    let schema = table.snapshot.schema();
    let Some(range) = table.snapshot.whole(keys) else { return Ok(map) };
    for block in table.snapshot.scan(&range, &Projection::all(schema))? {
        let block = block?;
        let timed: Vec<_> = timed(schema).filter_map(|at| block.groups.get(at)?.as_ref()).collect();
        // Rows without a timestamp are not on the time axis.
        let rank_of: Vec<Option<u32>> = (0..block.keys.len())
            .map(|row| {
                let is_timed = timed.iter().any(|group| !group.records(row).is_empty());
                is_timed.then(|| {
                    rank += 1;
                    rank - 1
                })
            })
            .collect();
        cells_of_block(schema, &block, |cell| {
            let Some(rank) = rank_of.get(cell.row).copied().flatten() else { return Ok(()) };
            let slice = match cell.timestamp {
                0 => first.get(rank as usize).copied().unwrap_or_default() as usize,
                time => log.axis.slice_of(time.div_euclid(SECOND)),
            };
            map.add(rank, slice, if metric == Metric::Bytes { PartBytes::of(&cell).total() } else { 1 });
            Ok(())
        })?;
    }
    Ok(map)
}
