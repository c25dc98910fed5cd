//! A loaded table: its row keys, with the times at which its rows were written.

use std::sync::Arc;

use rayon::prelude::*;
use tidetable_layout::block::GroupProjection;
use tidetable_layout::schema::TimestampKind;
use tidetable_layout::time::SECOND;
use tidetable_layout::{KeyRange, Layout, Projection, StoredSchema};
use tidetable_store::Snapshot;

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

    /// The layout that it was loaded with, by which its row keys read.
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

    /// First and last time of the source rows; `None` without any.
    fn ends(&self, parts: &[KeyRange]) -> Result<Option<Ends>> {
        if let Some(ends) = self.recorded_ends() {
            return Ok(Some(ends));
        }
        let ends = parts.par_iter().map(|part| self.ends_of(part));
        ends.try_reduce(|| None, |one, other| Ok([one, other].into_iter().flatten().reduce(Ends::widened)))
    }

    /// The same of the rows of a key range, whose times are read.
    fn ends_of(&self, part: &KeyRange) -> Result<Option<Ends>> {
        let mut ends: Option<Ends> = None;
        self.each_key(part, |_, times| {
            if let (Some(first), Some(last)) = (times.first(), times.last()) {
                let of_row = Ends { first: *first, last: *last };
                ends = Some(ends.map_or(of_row, |ends| ends.widened(of_row)));
            }
        })?;
        Ok(ends)
    }

    /// The ends that the files record, if all that they hold is seen, and all of it counts.
    fn recorded_ends(&self) -> Option<Ends> {
        let version = self.snapshot.version();
        let all_counts = timed(self.snapshot.schema()).count() == 1 && !self.snapshot.schema().upsert;
        let is_seen = version.tombstones.is_empty() && version.table.gc.is_empty();
        if !all_counts || !is_seen {
            return None;
        }

        let mut ends: Option<Ends> = None;
        for sst in version.ssts() {
            let is_whole = sst.multi_window.as_ref().is_none_or(|held| held.without.is_empty());
            if sst.emptied || !is_whole {
                return None;
            }
            if let Some((first, last)) = sst.min_timestamp.zip(sst.max_timestamp) {
                let of_sst = Ends { first, last };
                ends = Some(ends.map_or(of_sst, |ends| ends.widened(of_sst)));
            }
        }
        ends
    }

    /// Reads keys and times, once, into slices at least `width` seconds wide; `None` if the table is empty.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub(super) fn history(&self, width: Option<i64>) -> Result<Option<History>> {
        let parts = key_parts(&self.snapshot, rayon::current_num_threads())?;
        let Some(ends) = self.ends(&parts)? else { return Ok(None) };
        let axis = Axis::new(ends.first.div_euclid(SECOND), ends.last.div_euclid(SECOND), width);
        let read = parts.par_iter().map(|part| self.log_of(part, axis)).collect::<Result<Vec<_>>>()?;

        let mut history = History { log: WriteLog::new(axis), keys: Some(KeyList::default()), parts: Vec::new() };
        for (part, (log, keys)) in parts.into_iter().zip(read) {
            history.parts.push((part, history.log.keys));
            history.log.append(&log);
            history.keys = history.keys.take().zip(keys).and_then(|(all, keys)| all.with_all(&keys));
        }
        Ok(Some(history))
    }

    /// The writes of the rows of a key range, and its row keys unless they are too many to be held.
    fn log_of(&self, part: &KeyRange, axis: Axis) -> Result<(WriteLog, Option<KeyList>)> {
        let (mut log, mut keys) = (WriteLog::new(axis), Some(KeyList::default()));
        self.each_key(part, |key, times| {
            log.add_key(times.iter().map(|time| Write { second: time.div_euclid(SECOND), rows: 1 }));
            keys = keys.take().and_then(|keys| keys.with(key));
        })?;
        Ok((log, keys))
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

/// The first and the last time of some source rows, microseconds since the epoch.
#[derive(Debug, Clone, Copy)]
struct Ends {
    first: i64,
    last: i64,
}

impl Ends {
    /// The ends of both together.
    fn widened(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

/// Groups whose records have times.
fn timed(schema: &StoredSchema) -> impl Iterator<Item = usize> {
    let groups = schema.groups.iter().enumerate();
    groups.filter(|(_, group)| group.timestamps == TimestampKind::Stored).map(|(at, _)| at)
}

/// When the rows of a table were written.
#[derive(Debug)]
pub(super) struct History {
    /// Source rows by row key and slice of time.
    pub(super) log: WriteLog,
    /// `None` if they are too many to be held.
    keys: Option<KeyList>,
    /// Key ranges that share no row, ascending, with the rank of the first key of each.
    pub(super) parts: Vec<(KeyRange, u32)>,
}
