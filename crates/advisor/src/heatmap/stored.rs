//! Heatmaps of a table that is loaded.

use std::sync::Arc;

use tidetable_layout::block::GroupProjection;
use tidetable_layout::schema::TimestampKind;
use tidetable_layout::time::SECOND;
use tidetable_layout::{KeyRange, Projection, StoredSchema};
use tidetable_sql::cells_of_block;
use tidetable_store::Snapshot;

use crate::error::{AdvisorError, Result};
use crate::heatmap::map::Heatmap;
use crate::spread::{Axis, WriteLog};
use crate::trial::{PartBytes, Write};

/// What a heatmap counts.
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

/// A loaded table, whose records tell when its rows were written.
#[derive(Debug)]
pub struct StoredTable {
    snapshot: Snapshot,
}

impl StoredTable {
    /// The table of a snapshot.
    ///
    /// # Errors
    /// [`AdvisorError::NoTimes`] if it stores no timestamps.
    pub fn new(snapshot: Snapshot) -> Result<Self> {
        if timed(snapshot.schema()).next().is_none() {
            return Err(AdvisorError::NoTimes { table: snapshot.table().name().to_owned() });
        }
        Ok(Self { snapshot })
    }

    /// Calls `visit` for each row key in order, with its source rows by ascending second: the records of the group that
    /// has the most of them in the row. Reads keys and timestamps, no values.
    ///
    /// # Errors
    /// If the table cannot be read, or `visit` fails.
    pub fn each_key(&self, mut visit: impl FnMut(&[u8], &[Write]) -> Result<()>) -> Result<()> {
        let schema = Arc::clone(self.snapshot.schema());
        let mut projection = Projection { groups: vec![None; schema.groups.len()] };
        for at in timed(&schema) {
            let columns = schema.groups.get(at).map_or(0, |group| group.columns.len());
            let only_times =
                GroupProjection { qualifiers: false, timestamps: true, columns: vec![false; columns], sums: false };
            if let Some(group) = projection.groups.get_mut(at) {
                *group = Some(only_times);
            }
        }
        let Some(range) = self.snapshot.whole(&KeyRange::all()) else { return Ok(()) };
        let (mut key, mut writes) = (Vec::new(), Vec::<Write>::new());
        for block in self.snapshot.scan(&range, &projection)? {
            let block = block?;
            let groups: Vec<_> = block.groups.iter().flatten().collect();
            for row in 0..block.keys.len() {
                let fullest = groups.iter().max_by_key(|group| group.records(row).len());
                let Some(times) = fullest.and_then(|group| group.timestamps.as_ref()?.get(group.records(row))) else {
                    continue;
                };
                writes.clear();
                writes.extend(times.iter().map(|time| Write { second: time.div_euclid(SECOND), rows: 1 }));
                if writes.is_empty() {
                    continue;
                }
                writes.sort_unstable_by_key(|write| write.second);
                key.clear();
                block.keys.write(row, &mut key);
                visit(&key, &writes)?;
            }
        }
        Ok(())
    }

    /// First and last second written; `None` if the table is empty.
    fn seconds(&self) -> Result<Option<(i64, i64)>> {
        let mut seconds: Option<(i64, i64)> = None;
        self.each_key(|_, writes| {
            if let (Some(first), Some(last)) = (writes.first(), writes.last()) {
                let (least, most) = seconds.unwrap_or((first.second, last.second));
                seconds = Some((least.min(first.second), most.max(last.second)));
            }
            Ok(())
        })?;
        Ok(seconds)
    }
}

/// Groups whose records have times.
fn timed(schema: &StoredSchema) -> impl Iterator<Item = usize> {
    let groups = schema.groups.iter().enumerate();
    groups.filter(|(_, group)| group.timestamps == TimestampKind::Stored).map(|(at, _)| at)
}

/// The heatmap of a loaded table, with slices at least `width` seconds wide, and its writes; `None` if it is empty.
///
/// # Errors
/// If the table cannot be read.
pub fn stored_heatmap(table: &StoredTable, metric: Metric, width: Option<i64>) -> Result<Option<(Heatmap, WriteLog)>> {
    let Some(seconds) = table.seconds()? else { return Ok(None) };
    let axis = Axis::new(seconds, width);
    let mut log = WriteLog::new(axis);
    table.each_key(|_, writes| {
        log.add_key(writes);
        Ok(())
    })?;
    let mut map = Heatmap::of_log(&log, |name| {
        table.each_key(|key, _| {
            name(key);
            Ok(())
        })
    })?;
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
