//! Filters of cells by name and timestamp, evaluated on columns before any value is encoded.

use std::ops::Range;
use std::sync::Arc;

use arrow::buffer::BooleanBuffer;
use tidetable_layout::cell::{ColumnName, Passes};
use tidetable_layout::schema::{QualifierKind, TimestampKind};
use tidetable_layout::{Group, GroupBlock, StoredSchema};
use tidetable_store::read::{StripeMeta, StripePruner};

/// The range of all timestamps, microseconds: no cell is filtered by time.
pub(crate) const ALL_TIMES: Range<i64> = i64::MIN..i64::MAX;

/// Selects columns by family and qualifier; without a qualifier, whether any column of the family may be selected.
pub type Columns = Arc<dyn Fn(&str, Option<&[u8]>) -> bool + Send + Sync>;

/// Decides which cells a scan returns. `E` is the error of an evaluation that fails.
pub trait CellFilter<E> {
    /// Whether cells of a column may pass; columns that cannot pass are not decoded. `qualifier` is `None` where it varies by
    /// record.
    fn may_pass(&self, family: &str, qualifier: Option<&[u8]>) -> bool;

    /// Which records of a group have cells that pass in a column; the qualifier of `column` counts unless it varies by record.
    ///
    /// # Errors
    /// If the filter cannot be evaluated.
    fn passes(&self, group: &Group, records: &GroupBlock, column: ColumnName<'_>) -> Result<Passes, E>;
}

/// Whether all cells of a group are at timestamp 0. A joined cell is one of all records of its row, without their times.
pub fn is_at_zero(group: &Group) -> bool {
    group.timestamps == TimestampKind::Zero || group.keeps_duplicates()
}

/// Whether stripe metadata covers the timestamps of all cells of these groups: none has cells at timestamp 0.
pub fn has_stored_timestamps(schema: &StoredSchema) -> bool {
    !schema.groups.iter().any(is_at_zero)
}

/// Selected columns and a range of timestamps in microseconds.
pub(crate) struct NamesAndTimes<'a> {
    /// All columns if `None`.
    pub(crate) columns: Option<&'a Columns>,
    pub(crate) times: &'a Range<i64>,
}

impl<E> CellFilter<E> for NamesAndTimes<'_> {
    fn may_pass(&self, family: &str, qualifier: Option<&[u8]>) -> bool {
        self.columns.is_none_or(|columns| columns(family, qualifier))
    }

    fn passes(&self, group: &Group, records: &GroupBlock, column: ColumnName<'_>) -> Result<Passes, E> {
        if is_at_zero(group) && !self.times.contains(&0) {
            return Ok(Passes::None);
        }

        let passes = match (self.by_name(group, records, column.family), self.by_time(group, records)) {
            (Some(by_name), Some(by_time)) => &by_name & &by_time,
            (Some(passes), None) | (None, Some(passes)) => passes,
            (None, None) => return Ok(Passes::All),
        };

        Ok(if passes.count_set_bits() == 0 { Passes::None } else { Passes::Records(passes) })
    }
}

impl NamesAndTimes<'_> {
    /// The records whose qualifiers are selected; `None` if all are. Each name of the dictionary is decided once.
    fn by_name(&self, group: &Group, records: &GroupBlock, family: &str) -> Option<BooleanBuffer> {
        let columns = self.columns?;
        let names = records.qualifiers.as_ref().filter(|_| group.qualifier == QualifierKind::Dynamic)?;
        let wanted: Vec<bool> = names.dictionary.iter().map(|name| columns(family, Some(name.as_ref()))).collect();
        if !wanted.contains(&false) {
            return None;
        }

        Some(names.codes.iter().map(|code| wanted.get(*code as usize) == Some(&true)).collect())
    }

    /// The records with selected timestamps; `None` if all are.
    fn by_time(&self, group: &Group, records: &GroupBlock) -> Option<BooleanBuffer> {
        if is_at_zero(group) || *self.times == ALL_TIMES {
            return None;
        }

        let times = records.timestamps.as_ref()?;
        Some(times.iter().map(|time| self.times.contains(time)).collect())
    }
}

/// Skips stripes without a cell in a range of timestamps.
#[derive(Debug)]
pub(crate) struct TimePruner(pub(crate) Range<i64>);

impl StripePruner for TimePruner {
    fn prunes(&self, stripes: &[StripeMeta]) -> Vec<bool> {
        let times = stripes.iter().map(|stripe| stripe.timestamps);
        times.map(|times| times.is_some_and(|times| times.1 < self.0.start || times.0 >= self.0.end)).collect()
    }
}
