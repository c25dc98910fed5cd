//! A loaded table: its row keys, with the times at which its rows were written.

use std::sync::Arc;

use tidetable_layout::block::GroupProjection;
use tidetable_layout::schema::TimestampKind;
use tidetable_layout::time::SECOND;
use tidetable_layout::{KeyRange, Projection, StoredSchema};
use tidetable_store::Snapshot;

use crate::error::{AdvisorError, Result};
use crate::spread::{Axis, WriteLog};
use crate::trial::Write;

/// Bytes of row keys that are held, so that they need not be read a second time.
const KEPT_KEYS: usize = 64 << 20;

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

    /// Calls `visit` for each row key in order, with the seconds of its source rows, ascending: of the records of the group
    /// that has the most of them in the row. Reads keys and timestamps, no values.
    fn each_key(&self, mut visit: impl FnMut(&[u8], &[i64]) -> Result<()>) -> Result<()> {
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
        let (mut key, mut seconds) = (Vec::new(), Vec::new());
        for block in self.snapshot.scan(&range, &projection)? {
            let block = block?;
            let groups: Vec<_> = block.groups.iter().flatten().collect();
            for row in 0..block.keys.len() {
                let fullest = groups.iter().max_by_key(|group| group.records(row).len());
                let Some(times) = fullest.and_then(|group| group.timestamps.as_ref()?.get(group.records(row))) else {
                    continue;
                };
                seconds.clear();
                seconds.extend(times.iter().map(|time| time.div_euclid(SECOND)));
                if seconds.is_empty() {
                    continue;
                }
                seconds.sort_unstable();
                key.clear();
                block.keys.write(row, &mut key);
                visit(&key, &seconds)?;
            }
        }
        Ok(())
    }

    /// Reads keys and times, once.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub(super) fn history(&self) -> Result<History> {
        let mut history = History { keys: Some(KeyList::default()), ..History::default() };
        self.each_key(|key, seconds| {
            history.seconds.extend_from_slice(seconds);
            history.ends.push(history.seconds.len());
            history.keys = history.keys.take().and_then(|keys| keys.with(key));
            Ok(())
        })?;
        Ok(history)
    }

    /// Calls `visit` for each row key of `history`, in order.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub(super) fn each_name(&self, history: &History, mut visit: impl FnMut(&[u8])) -> Result<()> {
        match &history.keys {
            Some(keys) => keys.each(visit),
            None => self.each_key(|key, _| {
                visit(key);
                Ok(())
            })?,
        }
        Ok(())
    }
}

/// Groups whose records have times.
pub(super) fn timed(schema: &StoredSchema) -> impl Iterator<Item = usize> {
    let groups = schema.groups.iter().enumerate();
    groups.filter(|(_, group)| group.timestamps == TimestampKind::Stored).map(|(at, _)| at)
}

/// When the rows of a table were written.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Of all source rows, key after key.
    seconds: Vec<i64>,
    /// For each key, the end of its seconds.
    ends: Vec<usize>,
    /// `None` if they are too many to be held.
    keys: Option<KeyList>,
}

impl History {
    /// The writes, in slices at least `width` seconds wide; `None` without rows.
    pub(super) fn log(&self, width: Option<i64>) -> Option<WriteLog> {
        let (first, last) = (self.seconds.iter().min()?, self.seconds.iter().max()?);
        let mut log = WriteLog::new(Axis::new((*first, *last), width));
        let (mut start, mut writes) = (0, Vec::new());
        for end in &self.ends {
            let own = self.seconds.get(start..*end).unwrap_or_default();
            writes.clear();
            writes.extend(own.iter().map(|second| Write { second: *second, rows: 1 }));
            log.add_key(&writes);
            start = *end;
        }
        Some(log)
    }
}

/// Row keys, one after the other.
#[derive(Debug, Default)]
struct KeyList {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl KeyList {
    /// With one more; `None` if it would be too long.
    fn with(mut self, key: &[u8]) -> Option<Self> {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
        (self.bytes.len() + self.ends.len() * size_of::<usize>() <= KEPT_KEYS).then_some(self)
    }

    fn each(&self, mut visit: impl FnMut(&[u8])) {
        let mut start = 0;
        for end in &self.ends {
            visit(self.bytes.get(start..*end).unwrap_or_default());
            start = *end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_held_up_to_a_limit() {
        let mut keys = KeyList::default();
        for key in [&b"a"[..], b"", b"bc"] {
            keys = keys.with(key).unwrap();
        }
        let mut seen = Vec::new();
        keys.each(|key| seen.push(key.to_vec()));
        assert_eq!(seen, [&b"a"[..], b"", b"bc"]);
        assert!(keys.with(&vec![0; KEPT_KEYS]).is_none());
    }

    #[test]
    fn a_history_is_a_log() {
        let history = History { seconds: vec![5, 5, 9, 7], ends: vec![3, 4], keys: None };
        let log = history.log(Some(1)).unwrap();
        assert_eq!((log.keys, log.axis.start, log.axis.slices, log.total()), (2, 5, 5, 4));
        assert_eq!((&log.slices[0].rows[..], &log.slices[2].rows[..]), (&[(0, 2)][..], &[(1, 1)][..]));
        assert!(History::default().log(None).is_none());
    }
}
