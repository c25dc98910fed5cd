//! Finds the newest record of each group without decoding older rows.
//!
//! A row key bounds the event times of its records. Once a group has a newest record, rows whose keys are older cannot
//! change it, and only their keys are read. Scan ranges are therefore read newest first.

use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{Schema, TimestampMicrosecondType};
use datafusion::error::Result;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use tidetable_layout::decode::record_counts;
use tidetable_layout::{Block, KeyRange, Projection};

use crate::aggregate::row_states::type_mismatch;
use crate::aggregate::spec::ScanAggregate;
use crate::grouping::exec::evaluate;
use crate::pushdown::dependence::is_of_row;
use crate::scan::records::{Fields, Records, passing, read_rows};
use crate::scan::spec::{ScanOutput, TableScan};

type Expr = Arc<dyn PhysicalExpr>;

/// The newest time seen in each group, by which the rows of older windows are passed over.
pub(crate) struct Newest {
    scan: Arc<TableScan>,
    /// Name of the scan range, as messages show it.
    name: String,
    /// Index of the event time among the table's columns.
    time: usize,
    /// Microseconds by which a record may be later than its key says.
    later: i64,
    rows: Fields,
    row_filter: Vec<Expr>,
    /// Group expressions over the columns of the table.
    group_exprs: Vec<Expr>,
    groups: Box<dyn GroupValues>,
    /// Greatest event time of each group, in microseconds.
    seen: Vec<i64>,
}

impl Newest {
    /// For `aggregate` over the records that pass `filters`; `None` if it needs more than the newest records, or a
    /// filter depends on more than the row.
    pub(crate) fn new(
        scan: &Arc<TableScan>,
        name: &str,
        table: &Schema,
        filters: &[Expr],
        aggregate: &ScanAggregate,
    ) -> Result<Option<Self>> {
        let layout = scan.snapshot.layout();
        let shows_all_times = matches!(scan.output, ScanOutput::Records { within: None });
        let filters_rows = filters.iter().all(|filter| is_of_row(layout, filter));
        if !shows_all_times || !filters_rows || !aggregate.newest_only {
            return Ok(None);
        }

        let Some(time) = aggregate.time else { return Ok(None) };
        let later = layout.row_time_step(time).map_or(0, |step| step - 1);
        let group_exprs: Vec<Expr> = aggregate.groups.iter().map(|(expr, _)| Arc::clone(expr)).collect();
        if group_exprs.is_empty() {
            return Ok(None);
        }

        let fields: Vec<_> = aggregate.schema.fields().iter().take(group_exprs.len()).cloned().collect();
        let rows = Fields::of(table, filters.iter().chain(&group_exprs), &[time])?;
        Ok(Some(Self {
            scan: Arc::clone(scan),
            name: name.to_owned(),
            time,
            later,
            row_filter: rows.bind_all(filters)?,
            rows,
            group_exprs,
            groups: new_group_values(Arc::new(Schema::new(fields)), &GroupOrdering::None)?,
            seen: Vec::new(),
        }))
    }

    /// A projection without columns: it reads the row keys only.
    pub(crate) fn projection(&self) -> Projection {
        self.scan.snapshot.layout().projection(&[])
    }

    /// The key range of the rows of `block` that may hold a newer record than those seen.
    pub(crate) fn may_be_newer(&mut self, block: &Block) -> Result<Option<KeyRange>> {
        let (rows, ends) = read_rows(&self.scan, &self.name, &self.rows, block)?;
        let kept = passing(&self.row_filter, &rows)?;
        let groups = self.groups_of(&rows, &self.rows.bind_all(&self.group_exprs)?)?;
        let times = times(&rows, self.rows.place(self.time))?;
        let wanted: Vec<usize> = record_counts(&ends)
            .enumerate()
            .filter(|(row, count)| *count > 0 && kept.as_ref().is_none_or(|kept| kept.value(*row)))
            .map(|(row, _)| row)
            .filter(|row| {
                let known = groups.get(*row).and_then(|group| self.seen.get(*group)).copied().unwrap_or(i64::MIN);
                times.get(*row).is_none_or(|time| time.saturating_add(self.later) >= known)
            })
            .collect();
        let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { return Ok(None) };
        let end = [block.keys.get(*last).as_slice(), &[0]].concat();
        Ok(Some(KeyRange { start: block.keys.get(*first), end: Some(end) }))
    }

    /// Updates the newest times from records that were read.
    pub(crate) fn saw(&mut self, found: &Records, fields: (&Fields, &Fields)) -> Result<()> {
        let times = times(&found.records, fields.1.place(self.time))?;
        let groups = self.groups_of(&found.rows, &fields.0.bind_all(&self.group_exprs)?)?;
        let mut start = 0;
        for (end, group) in found.ends.iter().zip(groups) {
            let newest = times.get(start..*end as usize).and_then(|times| times.iter().max());
            if let (Some(newest), Some(seen)) = (newest, self.seen.get_mut(group)) {
                *seen = (*seen).max(*newest);
            }
            start = *end as usize;
        }
        Ok(())
    }

    fn groups_of(&mut self, rows: &RecordBatch, exprs: &[Expr]) -> Result<Vec<usize>> {
        let mut groups = Vec::new();
        self.groups.intern(&evaluate(exprs, rows)?, &mut groups)?;
        self.seen.resize(self.groups.len(), i64::MIN);
        Ok(groups)
    }
}

/// The event times in column `at` of `batch`, in microseconds.
fn times(batch: &RecordBatch, at: Option<usize>) -> Result<&[i64]> {
    let column = at.and_then(|at| batch.columns().get(at));
    let times = column.and_then(|column| column.as_primitive_opt::<TimestampMicrosecondType>());
    Ok(times.filter(|times| times.null_count() == 0).ok_or_else(type_mismatch)?.values())
}
