//! Times as they were read, and what a person should know of them.

use std::ops::AddAssign;

use tidetable_layout::TIMES;

use super::TimeFault;

/// A time as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Microseconds since the epoch.
    pub micros: i64,
    /// The first of two that its local time could mean.
    pub repeated: bool,
    /// It had digits beyond the microsecond.
    pub cut: bool,
}

impl Stamp {
    pub fn at(micros: i64) -> Self {
        Self { micros, repeated: false, cut: false }
    }

    /// The same, if queries can work with it.
    #[inline(always)]
    pub fn within(self) -> Result<Self, TimeFault> {
        if TIMES.contains(&self.micros) { Ok(self) } else { Err(TimeFault::Range) }
    }
}

/// How many times are not quite what was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeCounts {
    /// Local times that occur twice, because the clocks go back: the first of the two is taken.
    pub repeated: u64,
    /// Times with digits beyond the microsecond, which are cut off.
    pub cut: u64,
}

impl AddAssign for TimeCounts {
    fn add_assign(&mut self, other: Self) {
        self.repeated += other.repeated;
        self.cut += other.cut;
    }
}

/// The rows of those times, ascending.
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

    /// Takes back all rows from `rows` on.
    pub fn truncate(&mut self, rows: usize) {
        for list in [&mut self.repeated, &mut self.cut] {
            while list.last().is_some_and(|row| *row as usize >= rows) {
                list.pop();
            }
        }
    }

    /// How many there are among the rows that `kept` names.
    pub fn counts(&self, kept: impl Fn(usize) -> bool) -> TimeCounts {
        let count = |list: &[u32]| list.iter().filter(|row| kept(**row as usize)).count() as u64;
        TimeCounts { repeated: count(&self.repeated), cut: count(&self.cut) }
    }
}
