//! A layout of a trial.

use std::ops::AddAssign;

use tidetable_ingest::LoadStats;
use tidetable_layout::cell::CellRef;
use tidetable_layout::schema::QualifierKind;
use tidetable_layout::time::{MINUTE, SECOND};
use tidetable_layout::{Group, Layout};
use tidetable_store::{GcRule, Snapshot};

use crate::error::Result;
use crate::trial::counter::Counter;
use crate::trial::entity::key_columns;
use crate::trial::prepare::FilterCounts;

/// Bytes of a cell's timestamp.
pub(crate) const TIMESTAMP_BYTES: u64 = 8;

/// More versions than these are no bound.
const MOST_VERSIONS: usize = 1 << 16;

/// A layout with the rows of its source.
#[derive(Debug)]
pub struct TrialTable {
    /// Name of the layout.
    pub name: String,
    /// What the load counted.
    pub stats: LoadStats,
    /// By what to multiply counts to get those of all rows: 1 without a sample.
    pub factor: f64,
    /// Columns that tell entities apart, of which a sample takes all rows or none.
    pub entity: Vec<String>,
    /// First and last second that was written, since the epoch; `None` without rows.
    pub seconds: Option<(i64, i64)>,
    /// Source rows that can be repeats, equal to an earlier one in all columns; `None` if that is not known.
    pub repeated: Option<u64>,
    /// Whether it took every source row: it has no `where`, and rejected none.
    pub takes_all: bool,
    /// The compiled layout, without the counter's family.
    pub layout: Layout,
    pub(super) snapshot: Snapshot,
    /// Index of the counter's group in the stored schema of the snapshot.
    pub(super) group: usize,
}

/// The bytes of cells as Bigtable is given them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PartBytes {
    /// Row keys, once a cell.
    pub key: u64,
    /// Names of families, once a cell.
    pub family: u64,
    /// Qualifiers, once a cell.
    pub qualifier: u64,
    /// Values, as the layout encodes them.
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

    /// The bytes of all parts together.
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
        entity: &[String],
        stats: LoadStats,
        counts: FilterCounts,
    ) -> Result<Self> {
        let mut groups = snapshot.schema().groups.iter();
        let group = groups.position(|group| group.columns.iter().any(|column| column.family == counter.family));
        let is_scaled = counts.is_part && counts.kept > 0;
        let mut table = Self {
            name: layout.spec().name.clone(),
            factor: if is_scaled { counts.seen as f64 / counts.kept as f64 } else { 1.0 },
            entity: entity.to_vec(),
            seconds: None,
            repeated: counts.repeated,
            takes_all: counts.takes_all && stats.rows_rejected == 0,
            group: group.unwrap_or_default(),
            stats,
            layout,
            snapshot,
        };

        table.seconds = match counts.times {
            Some((first, last)) if table.stats.rows_rejected == 0 && table.layout.spec().unpivot.is_empty() => {
                let unit = if table.layout.spec().upsert { MINUTE } else { SECOND };
                let [first, last] = [first, last].map(|time| time.div_euclid(unit) * (unit / SECOND));
                Some((first, last))
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

    /// Versions of a column that garbage collection leaves at most in a row that gets ever more of them; `None` if rows grow
    /// otherwise, or a family has no such bound.
    pub(crate) fn versions_kept(&self) -> Option<u64> {
        let stored = self.layout.stored();
        if stored.upsert {
            return Some(1);
        }
        let mut groups = stored.groups.iter();
        if groups.any(|group| group.qualifier != QualifierKind::Constant || group.keeps_duplicates()) {
            return None;
        }

        let rules = &self.snapshot.version().table.gc;
        let mut most = 1;
        for family in &self.layout.spec().families {
            let rule = GcRule::parse(rules.get(&family.name)?).ok()?;
            let kept = (1..MOST_VERSIONS).find(|newer| rule.drops(*newer, 0, 0))?;
            most = most.max(kept as u64);
        }
        Some(most)
    }

    /// Whether equal source rows are kept apart.
    pub(crate) fn keeps_duplicates(&self) -> bool {
        self.layout.stored().groups.iter().any(Group::keeps_duplicates)
    }

    /// Columns of the row key other than times.
    pub(crate) fn key_columns(&self) -> Vec<String> {
        key_columns(self.layout.spec(), self.layout.source())
    }
}
