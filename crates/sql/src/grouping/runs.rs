//! Runs of consecutive records with one group.

use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{partition, take, take_record_batch};
use datafusion::error::Result;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::aggregates::group_values::GroupValues;
use tidetable_layout::decode::{is_one_each, record_counts};

use crate::aggregate::spec::GroupOf;
use crate::grouping::timeline::{TimeRuns, Timeline};
use crate::scan::records::Records;

type Expr = Arc<dyn PhysicalExpr>;

/// Records of a run, on average, from which on work by run is less than work by record.
const SHORTEST_RUN: usize = 4;

/// The records of a block as runs of one group each.
#[derive(Default)]
pub(crate) struct Runs {
    /// For each run, the end of its records; no run is empty.
    pub(crate) ends: Vec<u32>,
    /// The number of the group that each run belongs to.
    pub(crate) groups: Vec<usize>,
    /// Whether no run crosses a row, so that blocks of other sizes have the same runs.
    pub(crate) within_rows: bool,
}

impl Runs {
    /// Whether runs are long enough for work by run.
    pub(crate) fn are_long(&self) -> bool {
        let records = self.ends.last().map_or(0, |end| *end as usize);
        let least = if self.within_rows { SHORTEST_RUN / 2 } else { SHORTEST_RUN };
        records >= self.ends.len() * least
    }

    /// The number of the group that each record belongs to.
    pub(crate) fn by_record(&self) -> Vec<usize> {
        let records = self.ends.last().map_or(0, |end| *end as usize);
        if records == self.groups.len() {
            return self.groups.clone();
        }
        let mut numbers = Vec::with_capacity(records);
        for (end, group) in self.ends.iter().zip(&self.groups) {
            numbers.resize(*end as usize, *group);
        }
        numbers
    }

    /// The runs of `records` by `groups`, which are interned in `values`: once a row, once a class of times, once a row and
    /// class, or once a run of equal values.
    pub(crate) fn of(
        records: &Records,
        groups: &[(Expr, GroupOf)],
        timeline: Option<&mut Timeline>,
        values: &mut dyn GroupValues,
    ) -> Result<Self> {
        if has_wide_rows(records) {
            let Some(timeline) = timeline else { return Self::of_rows(records, groups, values) };
            if let Some(times) = timeline.runs(&records.records, &records.ends)? {
                return match groups.iter().all(|(_, of)| *of == GroupOf::Time) {
                    true => Self::of_times(times, timeline, values),
                    false => Self::of_rows_and_times(times, records, groups, timeline, values),
                };
            }
        }
        Self::of_values(records, groups, values)
    }

    /// Runs where each row is one: no group depends on the time.
    fn of_rows(records: &Records, groups: &[(Expr, GroupOf)], values: &mut dyn GroupValues) -> Result<Self> {
        let filled =
            record_counts(&records.ends).enumerate().filter(|(_, count)| *count > 0).map(|(row, _)| row as u32);
        let filled = UInt32Array::from_iter_values(filled);
        let mut runs = Self { within_rows: !records.joined, ..Self::default() };
        let rows = match filled.len() == records.ends.len() {
            true => records.rows.clone(),
            false => take_record_batch(&records.rows, &filled)?,
        };
        runs.ends.extend(filled.values().iter().filter_map(|row| records.ends.get(*row as usize)));
        let columns = groups.iter().map(|(expr, _)| expr.evaluate(&rows)?.into_array(rows.num_rows()));
        values.intern(&columns.collect::<Result<Vec<_>>>()?, &mut runs.groups)?;
        Ok(runs)
    }

    /// Runs of consecutive records whose times are of one class.
    fn of_times(times: TimeRuns, timeline: &mut Timeline, values: &mut dyn GroupValues) -> Result<Self> {
        let groups = timeline.groups(&times, values)?;
        Ok(Self { ends: times.ends, groups, within_rows: true })
    }

    /// Runs of one row and one class of times each. Neighbours with equal values of the row share their groups: the days of a
    /// meter have the same hours.
    fn of_rows_and_times(
        times: TimeRuns,
        records: &Records,
        groups: &[(Expr, GroupOf)],
        timeline: &Timeline,
        values: &mut dyn GroupValues,
    ) -> Result<Self> {
        let rows = &records.rows;
        let of_rows = groups.iter().filter(|(_, of)| *of == GroupOf::Row);
        let of_rows: Vec<ArrayRef> =
            of_rows.map(|(expr, _)| expr.evaluate(rows)?.into_array(rows.num_rows())).collect::<Result<_>>()?;

        // The groups of this block: a row, and a class of times.
        let (mut firsts, mut classes) = (Vec::new(), Vec::new());
        // Of each class the neighbours that met it last, and its group there.
        let mut met = vec![(usize::MAX, 0); timeline.classes()];
        let mut numbers = Vec::with_capacity(times.classes.len());
        for (run, neighbours) in partition(&of_rows)?.ranges().iter().enumerate() {
            for class in times.of_rows(neighbours) {
                let Some(met) = met.get_mut(*class as usize) else { continue };
                if met.0 != run {
                    *met = (run, classes.len());
                    firsts.push(neighbours.start as u32);
                    classes.push(*class);
                }
                numbers.push(met.1);
            }
        }

        let (firsts, classes) = (UInt32Array::from(firsts), UInt32Array::from(classes));
        let (mut by_row, mut by_time) = (of_rows.iter(), 0..);
        let mut columns = Vec::with_capacity(groups.len());
        for (_, of) in groups {
            let (values, at) = match of {
                GroupOf::Row => (by_row.next(), &firsts),
                GroupOf::Time => (by_time.next().and_then(|nth| timeline.values(nth)), &classes),
            };
            if let Some(values) = values {
                columns.push(take(values, at, None)?);
            }
        }

        let mut of_block = Vec::new();
        values.intern(&columns, &mut of_block)?;
        let groups = numbers.iter().filter_map(|number| of_block.get(*number).copied()).collect();
        Ok(Self { ends: times.ends, groups, within_rows: true })
    }

    /// Runs of equal group values, of rows of single records, or where timestamp lists do not repeat. Neighbours often share
    /// a group: an hour has sixty minutes, an entity all its rows.
    fn of_values(records: &Records, groups: &[(Expr, GroupOf)], values: &mut dyn GroupValues) -> Result<Self> {
        let Records { rows, records, ends, .. } = records;
        let mut runs = Self::default();

        let counts = record_counts(ends).enumerate();
        let one_each = is_one_each(ends);
        let row_of = (!one_each).then(|| {
            UInt32Array::from_iter_values(counts.flat_map(|(row, count)| std::iter::repeat_n(row as u32, count)))
        });

        let mut columns: Vec<ArrayRef> = Vec::with_capacity(groups.len());
        for (expr, of) in groups {
            let batch: &RecordBatch = if *of == GroupOf::Row { rows } else { records };
            let column = expr.evaluate(batch)?.into_array(batch.num_rows())?;
            columns.push(match &row_of {
                Some(row_of) if *of == GroupOf::Row => take(&column, row_of, None)?,
                _ => column,
            });
        }

        let ranges = partition(&columns)?.ranges();
        if ranges.len() * SHORTEST_RUN > records.num_rows() {
            runs.ends.extend(1..=records.num_rows() as u32);
            values.intern(&columns, &mut runs.groups)?;
            return Ok(runs);
        }

        let heads = UInt32Array::from_iter_values(ranges.iter().map(|run| run.start as u32));
        let heads = columns.iter().map(|column| take(column, &heads, None)).collect::<Result<Vec<_>, _>>()?;
        runs.ends.extend(ranges.iter().map(|run| run.end as u32));
        values.intern(&heads, &mut runs.groups)?;
        Ok(runs)
    }
}

/// Whether rows have several records on average, so that work by row is less than work by record.
fn has_wide_rows(records: &Records) -> bool {
    records.records.num_rows() >= 2 * records.ends.len()
}
