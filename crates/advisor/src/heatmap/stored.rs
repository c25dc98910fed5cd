//! A loaded table: its row keys, with the times at which its rows were written.

use std::sync::Arc;

use rayon::prelude::*;
use tidetable_layout::block::GroupProjection;
use tidetable_layout::schema::TimestampKind;
use tidetable_layout::time::SECOND;
use tidetable_layout::{KeyRange, Layout, Projection, StoredSchema};
use tidetable_store::{Snapshot, Sst};

use crate::error::{AdvisorError, Result};
use crate::heatmap::key_list::{KeyList, KeysAt};
use crate::heatmap::map::Heatmap;
use crate::heatmap::parts::key_parts;
use crate::spread::{Axis, WriteLog};
use crate::trial::Write;

/// A loaded table, whose records tell when its rows were written.
#[derive(Debug)]
pub struct StoredTable {
    pub(super) snapshot: Snapshot,
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

    /// Its layout.
    pub fn layout(&self) -> &Layout {
        self.snapshot.layout()
    }

    /// Calls `visit` for each row key of a key range in order, with the times of its source rows in microseconds, ascending: of
    /// the records of the group that has the most of them in the row. Reads keys and timestamps, no values.
    fn each_key(&self, keys: &KeyRange, mut visit: impl FnMut(&[u8], &[i64])) -> Result<()> {
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
        let Some(range) = self.snapshot.whole(keys) else { return Ok(()) };
        let (mut key, mut sorted) = (Vec::new(), Vec::new());
        for block in self.snapshot.scan(&range, &projection)? {
            let block = block?;
            let groups: Vec<_> = block.groups.iter().flatten().collect();
            for row in 0..block.keys.len() {
                let fullest = groups.iter().max_by_key(|group| group.records(row).len());
                let times = fullest.and_then(|group| group.timestamps.as_ref()?.get(group.records(row)));
                let Some(mut times) = times.filter(|times| !times.is_empty()) else { continue };
                if !times.is_sorted() {
                    sorted.clear();
                    sorted.extend_from_slice(times);
                    sorted.sort_unstable();
                    times = &sorted;
                }
                key.clear();
                block.keys.write(row, &mut key);
                visit(&key, times);
            }
        }
        Ok(())
    }

    /// First and last second of the source rows; `None` without any.
    fn ends(&self, parts: &[KeyRange]) -> Result<Option<(i64, i64)>> {
        if let Some(ends) = self.recorded_ends() {
            return Ok(Some(ends));
        }
        let of_part = |part: &KeyRange| -> Result<Option<(i64, i64)>> {
            let mut ends: Option<(i64, i64)> = None;
            self.each_key(part, |_, times| ends = widest(ends, times.first().copied().zip(times.last().copied())))?;
            Ok(ends)
        };
        let ends = parts.par_iter().map(of_part).try_reduce(|| None, |one, other| Ok(widest(one, other)))?;
        Ok(ends.map(in_seconds))
    }

    /// The ends that the files record, if all that they hold is seen, and all of it counts.
    fn recorded_ends(&self) -> Option<(i64, i64)> {
        let version = self.snapshot.version();
        let all_counts = timed(self.snapshot.schema()).count() == 1 && !self.snapshot.schema().upsert;
        let hides = |sst: &Sst| sst.emptied || sst.multi_window.as_ref().is_some_and(|held| !held.without.is_empty());
        let is_seen = version.tombstones.is_empty() && version.table.gc.is_empty();
        if !all_counts || !is_seen || version.ssts().any(hides) {
            return None;
        }
        let of_sst = version.ssts().map(|sst| sst.min_timestamp.zip(sst.max_timestamp));
        of_sst.reduce(widest).flatten().map(in_seconds)
    }

    /// Reads keys and times, once, into slices at least `width` seconds wide; `None` if the table is empty.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub(super) fn history(&self, width: Option<i64>) -> Result<Option<History>> {
        let parts = key_parts(&self.snapshot, rayon::current_num_threads())?;
        let Some(ends) = self.ends(&parts)? else { return Ok(None) };
        let axis = Axis::new(ends, width);
        let of_part = |part: &KeyRange| {
            let (mut log, mut keys) = (WriteLog::new(axis), Some(KeyList::default()));
            self.each_key(part, |key, times| {
                log.add_key(times.iter().map(|time| Write { second: time.div_euclid(SECOND), rows: 1 }));
                keys = keys.take().and_then(|keys| keys.with(key));
            })?;
            Ok((log, keys))
        };
        let read = parts.par_iter().map(of_part).collect::<Result<Vec<_>>>()?;
        let mut history = History { log: WriteLog::new(axis), keys: Some(KeyList::default()), parts: Vec::new() };
        for (part, (log, keys)) in parts.into_iter().zip(read) {
            history.parts.push((part, history.log.keys));
            history.log.append(&log);
            history.keys = history.keys.take().zip(keys).and_then(|(all, keys)| all.with_all(&keys));
        }
        Ok(Some(history))
    }

    /// Calls `visit` for each row key of `history`, in order.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub(super) fn each_name(&self, history: &History, mut visit: impl FnMut(&[u8])) -> Result<()> {
        match &history.keys {
            Some(keys) => keys.each(visit),
            None => self.each_key(&KeyRange::all(), |key, _| visit(key))?,
        }
        Ok(())
    }

    /// Sets the names of the buckets of a map of `history`.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub(super) fn name(&self, history: &History, map: &mut Heatmap) -> Result<()> {
        let ranks = map.first_ranks();
        let mut names = KeysAt::new(&ranks);
        self.each_name(history, |key| names.see(key))?;
        map.buckets = names.into_keys();
        Ok(())
    }
}

/// The least and the greatest of both.
fn widest(one: Option<(i64, i64)>, other: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}

fn in_seconds((first, last): (i64, i64)) -> (i64, i64) {
    (first.div_euclid(SECOND), last.div_euclid(SECOND))
}

/// Groups whose records have times.
fn timed(schema: &StoredSchema) -> impl Iterator<Item = usize> {
    let groups = schema.groups.iter().enumerate();
    groups.filter(|(_, group)| group.timestamps == TimestampKind::Stored).map(|(at, _)| at)
}

/// When the rows of a table were written.
#[derive(Debug)]
pub(super) struct History {
    /// The writes.
    pub(super) log: WriteLog,
    /// `None` if they are too many to be held.
    keys: Option<KeyList>,
    /// Key ranges that share no row, ascending, with the rank of the first key of each.
    pub(super) parts: Vec<(KeyRange, u32)>,
}
