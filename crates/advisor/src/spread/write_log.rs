//! Source rows by slice of time and row key.
//!
//! Row keys are ranks: their places among all row keys in order. The writes of a slice are bytes, since there may be one for
//! each source row, and all of them are held:
//!
//! ```text
//! slice   rank - rank before (varint)   rows << 1 | is new (varint)   | ..
//! ```

use std::borrow::Borrow;
use std::ops::Range;

use tidetable_layout::varint::{put_varint, take_varint};

use crate::error::Result;
use crate::spread::axis::Axis;
use crate::trial::{TrialTable, Write};

/// The writes of a layout, by slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteLog {
    /// The slices of time that writes are sorted into.
    pub axis: Axis,
    /// The number of row keys that were added: one more than the greatest rank.
    pub keys: u32,
    /// The writes of each slice of the axis.
    slices: Vec<SliceLog>,
    /// The slice that was written last, and its seconds: what follows is mostly in it.
    here: (usize, Range<i64>),
}

/// The writes of one slice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct SliceLog {
    bytes: Vec<u8>,
    /// The rank that was written last.
    last: u32,
    total: u64,
}

/// The writes of a row key in a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SliceWrite {
    /// The place of the row key among all, from 0.
    pub rank: u32,
    /// Source rows. May be 0 where the key is new.
    pub rows: u32,
    /// Whether the key is written for the first time.
    pub is_new: bool,
}

impl WriteLog {
    /// A log without a row key.
    pub fn new(axis: Axis) -> Self {
        Self { axis, keys: 0, slices: vec![SliceLog::default(); axis.slices], here: (0, 0..0) }
    }

    /// The writes of a layout of a trial.
    ///
    /// # Errors
    /// If the encoded layout cannot be read.
    pub fn of_table(table: &TrialTable, axis: Axis) -> Result<Self> {
        let mut log = Self::new(axis);
        table.each_key(|_, writes| {
            log.add_key(writes);
            Ok(())
        })?;
        Ok(log)
    }

    /// Adds the next row key, with its writes by ascending second.
    pub fn add_key(&mut self, writes: impl IntoIterator<Item = impl Borrow<Write>>) {
        let rank = self.keys;
        self.keys += 1;
        let (mut is_new, mut rows, mut slice) = (true, 0_u64, None);
        for write in writes {
            let Write { second, rows: more } = *write.borrow();
            if !self.here.1.contains(&second) {
                self.here = self.axis.slice_with(second);
            }
            if slice != Some(self.here.0) {
                if let Some(slice) = slice {
                    self.push(slice, rank, rows, std::mem::take(&mut is_new));
                }
                (slice, rows) = (Some(self.here.0), 0);
            }
            rows += more;
        }
        if let Some(slice) = slice {
            self.push(slice, rank, rows, is_new);
        }
    }

    /// Adds the row keys of a log of the same axis, which come after those of this one.
    pub fn append(&mut self, other: &Self) {
        for (own, slice) in self.slices.iter_mut().zip(&other.slices) {
            let mut writes = Writes { bytes: &slice.bytes, rank: 0 };
            let Some(first) = writes.next() else { continue };
            own.push(self.keys + first.rank, first.rows, first.is_new);
            own.bytes.extend_from_slice(writes.bytes);
            own.last = self.keys + slice.last;
            own.total += slice.total - u64::from(first.rows);
        }
        self.keys += other.keys;
    }

    /// The same with the source rows of each row key counted as often as `times` says. Keys stay known from their first write.
    #[must_use]
    pub fn multiplied(&self, times: &[u32]) -> Self {
        let mut log = Self { keys: self.keys, ..Self::new(self.axis) };
        for (at, slice) in log.slices.iter_mut().enumerate() {
            for SliceWrite { rank, rows, is_new } in self.writes(at) {
                let rows = rows.saturating_mul(times.get(rank as usize).copied().unwrap_or_default());
                if rows > 0 || is_new {
                    slice.push(rank, rows, is_new);
                }
            }
        }
        log
    }

    /// The writes of a slice, by ascending rank.
    pub fn writes(&self, slice: usize) -> impl Iterator<Item = SliceWrite> {
        Writes { bytes: self.slices.get(slice).map_or(&[], |slice| &slice.bytes), rank: 0 }
    }

    /// Source rows of a slice.
    pub fn total_of(&self, slice: usize) -> u64 {
        self.slices.get(slice).map_or(0, |slice| slice.total)
    }

    /// Source rows of all slices.
    pub fn total(&self) -> u64 {
        self.slices.iter().map(|slice| slice.total).sum()
    }

    fn push(&mut self, slice: usize, rank: u32, rows: u64, is_new: bool) {
        if let Some(slice) = self.slices.get_mut(slice) {
            slice.push(rank, u32::try_from(rows).unwrap_or(u32::MAX), is_new);
        }
    }
}

impl SliceLog {
    fn push(&mut self, rank: u32, rows: u32, is_new: bool) {
        put_varint(&mut self.bytes, u64::from(rank - self.last));
        put_varint(&mut self.bytes, u64::from(rows) << 1 | u64::from(is_new));
        self.last = rank;
        self.total += u64::from(rows);
    }
}

/// Reads what [`SliceLog::push`] wrote.
#[derive(Debug, Clone)]
struct Writes<'a> {
    bytes: &'a [u8],
    rank: u32,
}

impl Iterator for Writes<'_> {
    type Item = SliceWrite;

    fn next(&mut self) -> Option<SliceWrite> {
        self.rank += take_varint(&mut self.bytes)? as u32;
        let rows = take_varint(&mut self.bytes)?;
        Some(SliceWrite { rank: self.rank, rows: (rows >> 1) as u32, is_new: rows & 1 == 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AXIS: Axis = Axis { start: 0, width: 10, slices: 3 };

    fn write(second: i64, rows: u64) -> Write {
        Write { second, rows }
    }

    fn all(log: &WriteLog) -> Vec<Vec<(u32, u32, bool)>> {
        let of = |slice| log.writes(slice).map(|it| (it.rank, it.rows, it.is_new)).collect();
        (0..log.axis.slices).map(of).collect()
    }

    #[test]
    fn writes_of_a_key_within_a_slice_are_one() {
        let mut log = WriteLog::new(AXIS);
        log.add_key([write(1, 2), write(9, 3), write(10, 4)]);
        log.add_key([write(0, 1)]);
        // Seconds beyond the ends are in the slice at that end.
        log.add_key([write(-5, u64::MAX / 2), write(99, 1000)]);
        let expected =
            [vec![(0, 5, true), (1, 1, true), (2, u32::MAX, true)], vec![(0, 4, false)], vec![(2, 1000, false)]];
        assert_eq!(all(&log), expected);
        assert_eq!((log.total_of(1), log.total_of(2), log.keys), (4, 1000, 3));
    }

    #[test]
    fn logs_of_parts_are_one() {
        let keys: Vec<Vec<Write>> = (0..500_i64).map(|key| vec![write(key % 30, 1), write(29, key as u64)]).collect();
        let mut whole = WriteLog::new(AXIS);
        keys.iter().for_each(|writes| whole.add_key(writes));
        let mut joined = WriteLog::new(AXIS);
        for part in [&keys[..1], &keys[1..200], &[], &keys[200..]] {
            let mut log = WriteLog::new(AXIS);
            part.iter().for_each(|writes| log.add_key(writes));
            joined.append(&log);
        }
        assert_eq!((all(&joined), joined.keys, joined.total()), (all(&whole), whole.keys, whole.total()));
    }

    #[test]
    fn keys_that_are_not_read_stay_known() {
        let mut log = WriteLog::new(AXIS);
        log.add_key([write(1, 2), write(11, 3)]);
        log.add_key([write(1, 7)]);
        let read = log.multiplied(&[0, 2]);
        assert_eq!(all(&read), [vec![(0, 0, true), (1, 14, true)], vec![], vec![]]);
        assert_eq!((read.keys, read.total()), (2, 14));
    }
}
