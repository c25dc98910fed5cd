//! A first look at filters that compare floats as decimals.
//!
//! `kwh > 2.54` compares decimals, for that is what `2.54` is, and so makes a decimal of every float. Here the floats are
//! compared first, with bounds so wide that all that could pass do; only what is left is compared as the query says.

use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Float64Type};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, CastExpr, Column, Literal};
use datafusion::physical_plan::PhysicalExpr;
use datafusion::scalar::ScalarValue;
use tidetable_store::Scalar;

/// Relative width of bounds: much more than floats and decimals of their digits differ by.
const MARGIN: f64 = 1e-9;

/// Floats that may pass a filter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NearFilter {
    /// Where the floats are in a batch.
    column: usize,
    low: f64,
    high: f64,
}

impl NearFilter {
    /// Bounds of what passes `filter`, over a batch; `None` if it is no comparison of a float, cast to a decimal, with one.
    pub(crate) fn of(filter: &Arc<dyn PhysicalExpr>) -> Option<Self> {
        let compare = filter.downcast_ref::<BinaryExpr>()?;
        let cast = compare.left().downcast_ref::<CastExpr>()?;
        let column = cast.expr().downcast_ref::<Column>()?.index();
        let literal = compare.right().downcast_ref::<Literal>()?;
        let (DataType::Decimal128(_, digits), ScalarValue::Decimal128(Some(units), _, scale)) =
            (cast.cast_type(), literal.value())
        else {
            return None;
        };
        let value = *units as f64 / 10f64.powi(i32::from(*scale));
        // A float is rounded to the digits of the decimal, too.
        let margin = value.abs() * MARGIN + 10f64.powi(-i32::from(*digits));
        let (low, high) = (value - margin, value + margin);
        let (low, high) = match compare.op() {
            Operator::Gt | Operator::GtEq => (low, f64::INFINITY),
            Operator::Lt | Operator::LtEq => (f64::NEG_INFINITY, high),
            Operator::Eq => (low, high),
            _ => return None,
        };
        Some(Self { column, low, high })
    }

    /// Whether a float of this range may pass.
    pub(crate) fn may_pass(&self, range: (Scalar, Scalar)) -> bool {
        match range {
            (Scalar::Float64(least), Scalar::Float64(greatest)) => greatest >= self.low && least <= self.high,
            _ => true,
        }
    }

    /// Which records may pass; `None` if the column holds no floats. What is null or no number passes no comparison.
    pub(crate) fn near(&self, batch: &RecordBatch) -> Option<BooleanArray> {
        let floats = batch.columns().get(self.column)?.as_primitive_opt::<Float64Type>()?;
        let values = floats.values();
        let near = BooleanBuffer::collect_bool(values.len(), |at| {
            values.get(at).is_some_and(|value| *value >= self.low && *value <= self.high)
        });
        let near = match floats.nulls() {
            Some(nulls) => &near & nulls.inner(),
            None => near,
        };
        Some(BooleanArray::new(near, None))
    }
}
