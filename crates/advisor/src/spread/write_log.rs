//! Source rows by slice of time and row key.

use crate::error::Result;
use crate::spread::axis::Axis;
use crate::trial::{TrialTable, Write};

/// The writes of a layout, by slice. Row keys are ranks: their places among all row keys in order.
#[derive(Debug, Clone)]
pub struct WriteLog {
    /// The slices.
    pub axis: Axis,
    /// Row keys.
    pub keys: u32,
    /// One for each slice.
    pub slices: Vec<SliceWrites>,
}

/// The writes of one slice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SliceWrites {
    /// (rank, source rows) of each row key that is written, ascending.
    pub rows: Vec<(u32, u32)>,
    /// Ranks of the keys that are written for the first time, ascending.
    pub new: Vec<u32>,
}

impl WriteLog {
    /// An empty log.
    pub fn new(axis: Axis) -> Self {
        Self { axis, keys: 0, slices: vec![SliceWrites::default(); axis.slices] }
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
    pub fn add_key(&mut self, writes: &[Write]) {
        let rank = self.keys;
        self.keys += 1;
        let mut is_new = true;
        for Write { second, rows } in writes {
            let slice = self.axis.slice_of(*second);
            let Some(slice) = self.slices.get_mut(slice) else { continue };
            let rows = u32::try_from(*rows).unwrap_or(u32::MAX);
            match slice.rows.last_mut() {
                Some((last, count)) if *last == rank => *count = count.saturating_add(rows),
                _ => slice.rows.push((rank, rows)),
            }
            if std::mem::take(&mut is_new) {
                slice.new.push(rank);
            }
        }
    }

    /// Source rows of all slices.
    pub fn total(&self) -> u64 {
        self.slices.iter().map(SliceWrites::total).sum()
    }
}

impl SliceWrites {
    /// Source rows.
    pub fn total(&self) -> u64 {
        self.rows.iter().map(|(_, rows)| u64::from(*rows)).sum()
    }
}
