//! A layout of a trial.

use std::ops::AddAssign;

use tidetable_ingest::LoadStats;
use tidetable_layout::cell::CellRef;
use tidetable_layout::time::{MINUTE, SECOND};
use tidetable_layout::{Group, Layout};
use tidetable_store::Snapshot;

use crate::error::Result;
use crate::trial::counter::Counter;
use crate::trial::entity::key_columns;
use crate::trial::prepare::{FilterCounts, Sample};

/// Bytes of a cell's timestamp.
pub(crate) const TIMESTAMP_BYTES: u64 = 8;

/// A layout with the rows of its source.
#[derive(Debug)]
pub struct TrialTable {
    /// Name of the layout.
    pub name: String,
    /// What the load counted.
    pub stats: LoadStats,
    /// The sample that was taken; `None` if all rows were.
    pub sample: Option<Sample>,
    /// By what to multiply counts to get those of all rows: 1 without a sample.
    pub factor: f64,
    /// First and last second that was written, since the epoch; `None` without rows.
    pub seconds: Option<(i64, i64)>,
    /// Source rows that can be repeats, equal to an earlier one in all columns; `None` if that is not known.
    pub repeated: Option<u64>,
    /// The layout.
    pub layout: Layout,
    pub(super) snapshot: Snapshot,
    /// The group of the counter.
    pub(super) group: usize,
}

/// The bytes of cells as Bigtable is given them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartBytes {
    /// Row keys, once a cell.
    pub key: u64,
    /// Names of families.
    pub family: u64,
    /// Qualifiers.
    pub qualifier: u64,
    /// Values.
    pub value: u64,
    /// Timestamps, 8 a cell.
    pub timestamp: u64,
}

impl PartBytes {
    /// The parts of one cell.
    pub fn of(cell: &CellRef<'_>) -> Self {
        let [key, family, qualifier, value] =
            [cell.row_key, cell.family.as_bytes(), cell.qualifier, cell.value].map(|part| part.len() as u64);
        Self { key, family, qualifier, value, timestamp: TIMESTAMP_BYTES }
    }

    /// All parts.
    pub fn total(&self) -> u64 {
        self.key + self.family + self.qualifier + self.value + self.timestamp
    }
}

impl AddAssign for PartBytes {
    fn add_assign(&mut self, other: Self) {
        self.key += other.key;
        self.family += other.family;
        self.qualifier += other.qualifier;
        self.value += other.value;
        self.timestamp += other.timestamp;
    }
}

impl TrialTable {
    pub(super) fn new(
        layout: Layout,
        snapshot: Snapshot,
        counter: &Counter,
        stats: LoadStats,
        (sample, counts): (Option<Sample>, FilterCounts),
    ) -> Result<Self> {
        let of_counter = |group: &Group| group.columns.iter().any(|column| column.family == counter.family);
        let group = snapshot.schema().groups.iter().position(of_counter).unwrap_or_default();
        let factor = if sample.is_some() && counts.kept > 0 { counts.seen as f64 / counts.kept as f64 } else { 1.0 };
        let name = layout.spec().name.clone();
        let repeated = counts.repeated;
        let mut table = Self { name, stats, sample, factor, seconds: None, repeated, layout, snapshot, group };
        table.seconds = match counts.times {
            Some(times) if table.stats.rows_rejected == 0 && table.layout.spec().unpivot.is_empty() => {
                let unit = if table.layout.spec().upsert { MINUTE } else { SECOND };
                let second = |time: i64| time.div_euclid(unit) * (unit / SECOND);
                Some((second(times.0), second(times.1)))
            }
            Some(_) => table.seconds_of_keys()?,
            None => None,
        };
        // Rules of age hold as of the newest row: what is measured does not depend on the clock.
        if let Some((_, last)) = table.seconds {
            table.snapshot = table.snapshot.as_of_now((last + 1) * SECOND)?;
        }
        Ok(table)
    }

    /// Columns of the row key other than times.
    pub(crate) fn key_columns(&self) -> Vec<String> {
        key_columns(self.layout.spec(), self.layout.source())
    }
}
