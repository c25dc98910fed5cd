//! States of aggregates by row: what the records of each row add up to, for functions of which that is soon told.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array};
use arrow::datatypes::{DataType, Float64Type};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_plan::PhysicalExpr;

/// Floats that are added side by side.
const LANES: usize = 8;

/// A function whose state of a row is made here, and merged as the engine merges states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowState {
    /// How many records there are.
    Records,
    /// How many have a value.
    Values,
    /// The sum of floats.
    Sum,
}

impl RowState {
    /// The state of `function` of these arguments, all of whose records count; `None` if it is of another kind. The state
    /// of a count is a number, that of a sum of floats a float, null where there is no value.
    pub(crate) fn of(function: &AggregateFunctionExpr, arguments: &[Arc<dyn PhysicalExpr>]) -> Option<Self> {
        let [argument] = arguments else { return None };
        let states = function.state_fields().ok()?;
        let [state] = states.as_slice() else { return None };
        match (function.fun().name(), state.data_type()) {
            ("count", DataType::Int64) => match argument.downcast_ref::<Literal>() {
                Some(value) if value.value().is_null() => None,
                Some(_) => Some(Self::Records),
                None => Some(Self::Values),
            },
            ("sum", DataType::Float64) => Some(Self::Sum),
            _ => None,
        }
    }

    /// Whether values must be there.
    pub(crate) fn looks_at_values(self) -> bool {
        self != Self::Records
    }

    /// The state of each row, of which `counts` gives the records, one at least; `None` if values are of another type.
    pub(crate) fn states(self, counts: &[usize], values: Option<&ArrayRef>) -> Option<ArrayRef> {
        if self == Self::Records {
            return Some(Arc::new(Int64Array::from_iter_values(counts.iter().map(|count| *count as i64))));
        }
        let values = values?;
        let mut start = 0;
        let rows = counts.iter().map(|count| {
            start += count;
            start - count..start
        });
        if self == Self::Values {
            let present = |rows: std::ops::Range<usize>| match values.logical_nulls() {
                Some(nulls) => rows.len() - nulls.slice(rows.start, rows.len()).null_count(),
                None => rows.len(),
            };
            return Some(Arc::new(Int64Array::from_iter_values(rows.map(|rows| present(rows) as i64))));
        }
        let floats = values.as_primitive_opt::<Float64Type>()?;
        if floats.null_count() > 0 {
            let sum = |rows: std::ops::Range<usize>| {
                floats.slice(rows.start, rows.len()).iter().flatten().reduce(|sum, value| sum + value)
            };
            return Some(Arc::new(rows.map(sum).collect::<Float64Array>()));
        }
        let all = floats.values();
        Some(Arc::new(Float64Array::from_iter_values(rows.map(|rows| sum(all.get(rows).unwrap_or_default())))))
    }
}

fn sum(values: &[f64]) -> f64 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, value)| *lane += value);
    }
    lanes.iter().chain(rest).sum()
}
