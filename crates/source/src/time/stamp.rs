//! Parsed times, and counts of adjusted ones.

use std::ops::AddAssign;

use chrono_tz::Tz;
use tidetable_layout::time::TIMESTAMP_RANGE;

/// Why a field is not a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeFault {
    /// Does not match the format, or is not in the calendar.
    Form,
    /// Does not exist in this zone, because the clocks go forward.
    Skipped(Tz),
    /// Outside [`TIMESTAMP_RANGE`], so that queries could not work with it.
    Range,
}

/// A parsed time, and what was adjusted in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Microseconds since the epoch, in UTC.
    pub micros: i64,
    /// Its local time is ambiguous; this is the first instant.
    pub repeated: bool,
    /// Digits beyond the microsecond were truncated that are not 0.
    pub cut: bool,
}

impl Stamp {
    pub fn at(micros: i64) -> Self {
        Self { micros, repeated: false, cut: false }
    }

    /// Checks that the time is in the range that queries support.
    #[inline(always)]
    pub fn within(self) -> Result<Self, TimeFault> {
        if TIMESTAMP_RANGE.contains(&self.micros) { Ok(self) } else { Err(TimeFault::Range) }
    }
}

/// The number of adjusted times, and of values that were taken as null.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeCounts {
    /// Ambiguous local times, because the clocks go back: the first instant is taken.
    pub repeated: u64,
    /// Times whose digits beyond the microsecond were truncated.
    pub cut: u64,
    /// NaN in float columns of Parquet, which is null.
    pub nan: u64,
}

impl AddAssign for TimeCounts {
    fn add_assign(&mut self, other: Self) {
        self.repeated += other.repeated;
        self.cut += other.cut;
        self.nan += other.nan;
    }
}

/// The rows of a column whose times were adjusted, in ascending order.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    repeated: Vec<u32>,
    cut: Vec<u32>,
}

impl Remarks {
    pub fn add(&mut self, row: usize, stamp: Stamp) {
        if stamp.repeated {
            self.repeated.push(row as u32);
        }
        if stamp.cut {
            self.cut.push(row as u32);
        }
    }

    pub fn truncate(&mut self, rows: usize) {
        for list in [&mut self.repeated, &mut self.cut] {
            while list.last().is_some_and(|row| *row as usize >= rows) {
                list.pop();
            }
        }
    }
}

/// The adjusted times of the rows of a chunk that are kept.
#[derive(Debug, Default)]
pub(crate) struct Adjusted {
    pub counts: TimeCounts,
    /// For each column, the rows among those kept whose local time is ambiguous, in ascending order.
    pub repeated: Vec<Vec<u32>>,
}

impl Adjusted {
    /// Adds the next column, of whose rows `keep` are kept; all without it.
    pub fn add_column(&mut self, remarks: &Remarks, keep: Option<&[bool]>) {
        let repeated = kept(&remarks.repeated, keep);
        self.counts.repeated += repeated.len() as u64;
        self.counts.cut += kept(&remarks.cut, keep).len() as u64;
        self.repeated.push(repeated);
    }
}

/// The places among the kept rows of those rows that are kept.
fn kept(rows: &[u32], keep: Option<&[bool]>) -> Vec<u32> {
    let Some(keep) = keep else { return rows.to_vec() };
    let (mut places, mut seen, mut before) = (Vec::new(), 0, 0);
    for row in rows {
        let row = *row as usize;
        before += keep.get(seen..row).unwrap_or_default().iter().filter(|is_kept| **is_kept).count() as u32;
        seen = row;
        if keep.get(row) == Some(&true) {
            places.push(before);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_among_kept_rows() {
        let keep = [true, false, true, true, false, true];
        assert_eq!(kept(&[0, 1, 3, 5], Some(&keep)), [0, 2, 3]);
        assert_eq!(kept(&[0, 1, 3], None), [0, 1, 3]);
    }
}
