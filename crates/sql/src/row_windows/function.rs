//! The window functions that are evaluated by batch: `lag`, and aggregates over the rows before.
//!
//! The aggregate of 60 rows is that of 4, of the 8 before them, of the 16 before these, and of 32: the states of 1, 2, 4, .. rows that
//! end at each row are merged with one another, a whole batch at a time, by the function's own accumulator of groups, in which
//! each row is a group.

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, BooleanBufferBuilder, RecordBatch, new_null_array};
use arrow::compute::{concat, nullif};
use datafusion::error::Result;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator, WindowFrame, WindowFrameBound, WindowFrameUnits};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_expr::window::{SlidingAggregateWindowExpr, StandardWindowExpr, WindowExpr};
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::windows::WindowUDFExpr;
use datafusion::scalar::ScalarValue;

use crate::grouping::exec::evaluate;

type Expr = Arc<dyn PhysicalExpr>;

/// Maximum number of rows of a frame, or that `lag` looks back: so many are kept, and looked at again with each batch.
const MAX_ROWS: usize = 4096;
/// Aggregates whose states merge to the same value in any division.
const AGGREGATES: [&str; 5] = ["avg", "count", "max", "min", "sum"];

/// A function, and the values that the next batch needs.
pub(crate) struct RowFunction {
    kind: Kind,
    arguments: Vec<Expr>,
    /// How many values before its own a row needs.
    reach: usize,
    /// The arguments of that many rows before the next, or of all.
    before: Vec<ArrayRef>,
}

enum Kind {
    Lag,
    Aggregate(Box<AggregateFunctionExpr>),
}

/// The rows of a batch, and those before it that are of the first row's partition.
pub(crate) struct Partitions<'a> {
    /// For each partition that has rows in the batch, the range of these rows.
    pub(crate) runs: &'a [Range<usize>],
    /// Rows before the batch of the partition of the first run.
    pub(crate) before: usize,
}

impl RowFunction {
    /// `None` for functions and frames that are not evaluated here.
    pub(crate) fn of(window: &dyn WindowExpr) -> Option<Self> {
        let (kind, arguments, reach) = match window.as_any().downcast_ref::<SlidingAggregateWindowExpr>() {
            Some(sliding) => {
                let aggregate = sliding.get_aggregate_expr();
                // There is no other way to ask for the filter.
                let is_plain = format!("{sliding:?}").ends_with("filter: None }") && !aggregate.is_distinct();
                let is_known = AGGREGATES.contains(&aggregate.fun().name()) && aggregate.order_bys().is_empty();
                if !is_plain || !is_known || !aggregate.groups_accumulator_supported() {
                    return None;
                }
                (
                    Kind::Aggregate(Box::new(aggregate.clone())),
                    aggregate.expressions(),
                    rows_before(sliding.get_window_frame())?,
                )
            }
            None => {
                let standard = window.as_any().downcast_ref::<StandardWindowExpr>()?.get_standard_func_expr();
                let function = standard.as_any().downcast_ref::<WindowUDFExpr>()?;
                if function.fun().name() != "lag" || format!("{function:?}").contains("ignore_nulls: true") {
                    return None;
                }
                let (value, reach) = match function.args() {
                    [value] => (value, 1),
                    [value, rows] => (value, constant(rows)?),
                    [value, rows, default] => {
                        let default = default.downcast_ref::<Literal>()?;
                        default.value().is_null().then_some((value, constant(rows)?))?
                    }
                    _ => return None,
                };
                (Kind::Lag, vec![Arc::clone(value)], reach)
            }
        };

        let fits = reach < MAX_ROWS && (reach > 0 || matches!(kind, Kind::Aggregate(_)));
        fits.then_some(Self { kind, arguments, reach, before: Vec::new() })
    }

    /// The value of each row of `batch`, which follows the batches before.
    pub(crate) fn add(&mut self, batch: &RecordBatch, partitions: &Partitions<'_>) -> Result<ArrayRef> {
        let values = evaluate(&self.arguments, batch)?;
        let kept = self.before.first().map_or(0, Array::len);
        let before = kept.min(partitions.before);

        let all: Vec<ArrayRef> = match before {
            0 => values,
            _ => {
                let mut joined = Vec::with_capacity(values.len());
                for (earlier, values) in self.before.iter().zip(&values) {
                    joined.push(concat(&[last_rows(earlier, before).as_ref(), values.as_ref()])?);
                }
                joined
            }
        };
        let rows = before + batch.num_rows();
        self.before = all.iter().map(|array| last_rows(array, self.reach.min(rows))).collect();

        // The rows before the batch are of the partition of its first run.
        let mut runs: Vec<Range<usize>> = Vec::with_capacity(partitions.runs.len());
        for run in partitions.runs {
            let start = if runs.is_empty() { 0 } else { before + run.start };
            runs.push(start..before + run.end);
        }

        let found = match &self.kind {
            Kind::Lag => lag(all.first(), self.reach, &runs)?,
            Kind::Aggregate(aggregate) => moving(aggregate, &all, self.reach + 1, &runs)?,
        };
        Ok(last_rows(&found, batch.num_rows()))
    }
}

/// The number of rows before its own that a frame has.
fn rows_before(frame: &WindowFrame) -> Option<usize> {
    let ends_here = match &frame.end_bound {
        WindowFrameBound::CurrentRow => true,
        WindowFrameBound::Preceding(rows) | WindowFrameBound::Following(rows) => *rows == ScalarValue::UInt64(Some(0)),
    };
    match &frame.start_bound {
        WindowFrameBound::Preceding(ScalarValue::UInt64(Some(rows)))
            if frame.units == WindowFrameUnits::Rows && ends_here =>
        {
            usize::try_from(*rows).ok()
        }
        _ => None,
    }
}

fn constant(expr: &Expr) -> Option<usize> {
    match expr.downcast_ref::<Literal>()?.value() {
        ScalarValue::Int64(Some(rows)) => usize::try_from(*rows).ok(),
        ScalarValue::UInt64(Some(rows)) => usize::try_from(*rows).ok(),
        _ => None,
    }
}

/// For each row the value `by` rows before it; null where its run has none.
fn lag(values: Option<&ArrayRef>, by: usize, runs: &[Range<usize>]) -> Result<ArrayRef> {
    let Some(values) = values else { return Ok(new_null_array(&arrow::datatypes::DataType::Null, 0)) };
    let rows = values.len();
    let missing = new_null_array(values.data_type(), by.min(rows));
    let shifted = concat(&[missing.as_ref(), values.slice(0, rows - by.min(rows)).as_ref()])?;
    if runs.len() < 2 {
        return Ok(shifted);
    }
    let mut first = BooleanBufferBuilder::new(rows);
    for run in runs {
        let few = by.min(run.len());
        first.append_n(few, true);
        first.append_n(run.len() - few, false);
    }
    Ok(nullif(&shifted, &BooleanArray::new(first.finish(), None))?)
}

/// The last `rows` rows of an array that has at least as many.
fn last_rows(array: &ArrayRef, rows: usize) -> ArrayRef {
    array.slice(array.len() - rows, rows)
}

/// For each row the aggregate of the last `rows` rows of its run up to it.
fn moving(
    aggregate: &AggregateFunctionExpr,
    values: &[ArrayRef],
    rows: usize,
    runs: &[Range<usize>],
) -> Result<ArrayRef> {
    let all: Vec<usize> = (0..runs.last().map_or(0, |run| run.end)).collect();

    // Adds the states of the rows `by` before each. An accumulator must see all rows first: from a call without nulls it
    // concludes that all groups have values.
    let add = |total: &mut Box<dyn GroupsAccumulator>, states: &[ArrayRef], by: usize| -> Result<()> {
        if by == 0 {
            return total.merge_batch(states, &all, all.len());
        }
        for run in runs.iter().filter(|run| run.len() > by) {
            let earlier: Vec<ArrayRef> = states.iter().map(|state| state.slice(run.start, run.len() - by)).collect();
            total.merge_batch(&earlier, all.get(run.start + by..run.end).unwrap_or_default(), all.len())?;
        }
        Ok(())
    };

    let mut single = aggregate.create_groups_accumulator()?;
    single.update_batch(values, &all, None, all.len())?;
    let mut states = single.state(EmitTo::All)?;
    let mut total = aggregate.create_groups_accumulator()?;
    let (mut size, mut done) = (1, 0);

    loop {
        if rows & size > 0 {
            add(&mut total, &states, done)?;
            done += size;
        }
        if 2 * size > rows {
            return total.evaluate(EmitTo::All);
        }
        let mut wider = aggregate.create_groups_accumulator()?;
        add(&mut wider, &states, 0)?;
        add(&mut wider, &states, size)?;
        states = wider.state(EmitTo::All)?;
        size *= 2;
    }
}
