//! Runs of consecutive records with one group.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow::compute::{interleave, partition, take, take_record_batch};
use datafusion::error::Result;
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::aggregates::group_values::GroupValues;
use tidetable_layout::decode::{is_one_each, record_counts};

use crate::aggregate::row_patterns::RowPatterns;
use crate::aggregate::spec::GroupOf;
use crate::scan::records::Records;

type Expr = Arc<dyn PhysicalExpr>;

/// Records of a run, on average, from which on work by run is less than work by record.
const SHORTEST_RUN: usize = 4;

/// The records of a block as runs of one group each.
#[derive(Default)]
pub(crate) struct Runs {
    /// For each run, the end of its records; no run is empty.
    pub(crate) ends: Vec<u32>,
    /// For each run, the number of its group.
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

    /// The group number of each record.
    pub(crate) fn by_record(&self) -> Vec<usize> {
        let mut numbers = Vec::with_capacity(self.ends.last().map_or(0, |end| *end as usize));
        for (end, group) in self.ends.iter().zip(&self.groups) {
            numbers.resize(*end as usize, *group);
        }
        numbers
    }

    /// The runs of `records` by `groups`, which are interned in `values`: once a row, or once a run of a timestamp list that
    /// rows share, or once a run of equal values.
    pub(crate) fn of(
        records: &Records,
        groups: &[(Expr, GroupOf)],
        patterns: &mut RowPatterns,
        values: &mut dyn GroupValues,
    ) -> Result<Self> {
        if has_wide_rows(records) {
            let of_times: Vec<Expr> =
                groups.iter().filter(|(_, of)| *of == GroupOf::Time).map(|(expr, _)| Arc::clone(expr)).collect();
            if of_times.is_empty() {
                return Self::of_rows(records, groups, values);
            }
            if let Some(rows) = patterns.of_rows(&records.records, &records.ends, &of_times)? {
                return match of_times.len() == groups.len() {
                    true => Self::of_patterns(&rows, patterns, values),
                    false => Self::of_rows_and_patterns(&rows, records, groups, patterns, values),
                };
            }
        }
        Self::of_values(records, groups, values)
    }

    /// A run a row.
    fn of_rows(records: &Records, groups: &[(Expr, GroupOf)], values: &mut dyn GroupValues) -> Result<Self> {
        let filled =
            record_counts(&records.ends).enumerate().filter(|(_, count)| *count > 0).map(|(row, _)| row as u32);
        let filled = UInt32Array::from_iter_values(filled);
        let mut runs = Self { within_rows: true, ..Self::default() };
        let rows = match filled.len() == records.ends.len() {
            true => records.rows.clone(),
            false => take_record_batch(&records.rows, &filled)?,
        };
        runs.ends.extend(filled.values().iter().filter_map(|row| records.ends.get(*row as usize)));
        let columns = groups.iter().map(|(expr, _)| expr.evaluate(&rows)?.into_array(rows.num_rows()));
        values.intern(&columns.collect::<Result<Vec<_>>>()?, &mut runs.groups)?;
        Ok(runs)
    }

    /// The runs of the pattern of each row.
    fn of_patterns(rows: &[Option<usize>], patterns: &mut RowPatterns, values: &mut dyn GroupValues) -> Result<Self> {
        let mut runs = Self { within_rows: true, ..Self::default() };
        for pattern in rows.iter().flatten() {
            runs.groups.extend_from_slice(patterns.groups(*pattern, values)?);
            runs.extend(patterns.runs(*pattern));
        }
        Ok(runs)
    }

    /// The runs of the pattern of each row, which the row divides further.
    fn of_rows_and_patterns(
        rows: &[Option<usize>],
        records: &Records,
        groups: &[(Expr, GroupOf)],
        patterns: &RowPatterns,
        values: &mut dyn GroupValues,
    ) -> Result<Self> {
        let mut runs = Self { within_rows: true, ..Self::default() };
        // Of each run its row, and its pattern and place there.
        let (mut of_row, mut of_time) = (Vec::new(), Vec::new());
        for (row, pattern) in rows.iter().enumerate() {
            let Some(pattern) = pattern else { continue };
            let lengths = patterns.runs(*pattern);
            runs.extend(lengths);
            of_row.extend(std::iter::repeat_n(row as u32, lengths.len()));
            of_time.extend((0..lengths.len()).map(|run| (*pattern, run)));
        }
        let by_row = take_record_batch(&records.rows, &UInt32Array::from(of_row))?;
        let mut times = 0..;
        let column = |(expr, of): &(Expr, GroupOf)| match of {
            GroupOf::Row => expr.evaluate(&by_row)?.into_array(by_row.num_rows()),
            GroupOf::Time => {
                let arrays = patterns.values(times.next().unwrap_or_default());
                let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
                Ok(interleave(&arrays, &of_time)?)
            }
        };
        values.intern(&groups.iter().map(column).collect::<Result<Vec<_>>>()?, &mut runs.groups)?;
        Ok(runs)
    }

    /// Runs of equal group values, of rows of single records, or where timestamp lists do not repeat. Neighbours often share
    /// a group: an hour has sixty minutes, an entity all its rows.
    fn of_values(records: &Records, groups: &[(Expr, GroupOf)], values: &mut dyn GroupValues) -> Result<Self> {
        let Records { rows, records, ends } = records;
        let mut runs = Self::default();
        let counts = record_counts(ends).enumerate();
        let one_each = is_one_each(ends);
        let row_of = (!one_each).then(|| {
            UInt32Array::from_iter_values(counts.flat_map(|(row, count)| std::iter::repeat_n(row as u32, count)))
        });
        let column = |(expr, of): &(Expr, GroupOf)| -> Result<ArrayRef> {
            let batch: &RecordBatch = if *of == GroupOf::Row { rows } else { records };
            let column = expr.evaluate(batch)?.into_array(batch.num_rows())?;
            match &row_of {
                Some(row_of) if *of == GroupOf::Row => Ok(take(&column, row_of, None)?),
                _ => Ok(column),
            }
        };
        let columns: Vec<ArrayRef> = groups.iter().map(column).collect::<Result<_>>()?;
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

    /// Appends runs of these lengths.
    fn extend(&mut self, lengths: &[usize]) {
        let mut end = self.ends.last().copied().unwrap_or(0);
        self.ends.extend(lengths.iter().map(|length| {
            end += *length as u32;
            end
        }));
    }
}

/// Whether rows have several records on average, so that work by row is less than work by record.
fn has_wide_rows(records: &Records) -> bool {
    records.records.num_rows() >= 2 * records.ends.len()
}
