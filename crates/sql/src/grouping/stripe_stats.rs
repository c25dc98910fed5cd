//! Aggregates answered from stripe stats in the index, without reading the stripes.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::PhysicalExpr;
use tidetable_layout::Layout;
use tidetable_store::read::{Scalar, StripeMeta, StripeStats};

use crate::aggregate::row_states::{RowState, RowStates};
use crate::aggregate::spec::{Aggregate, ScanAggregate};
use crate::pushdown::pruning::value;
use crate::scan::spec::{ScanOutput, TableScan};

/// An aggregate that stripe stats answer, for a table whose records come from one column group.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StripeAggregate {
    /// `count(*)`: the number of records, whatever their values are.
    Records,
    /// `count(x)`: records with a value in this column of the group.
    Values(usize),
    /// `min` or `max`, of a type that a stripe has bounds of.
    Bound { of: BoundOf, kind: DataType, greatest: bool },
}

/// What `min` and `max` are taken of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BoundOf {
    Timestamps,
    /// A column of the group.
    Column(usize),
}

/// Totals over stripes, from their stats.
#[derive(Debug)]
pub(crate) struct StripeTotals {
    group: usize,
    aggregates: Vec<StripeAggregate>,
    /// The result of each aggregate so far; `None` before the first stripe.
    found: Mutex<Option<Vec<StripeValue>>>,
}

/// The result of an aggregate over the stripes so far.
#[derive(Debug, Clone, PartialEq)]
enum StripeValue {
    Count(u64),
    /// `None` if no record has a value.
    Bound(Option<Scalar>),
}

impl StripeTotals {
    /// For `aggregate` over all records of the scan; `None` if stripe stats cannot answer it.
    pub(crate) fn new(scan: &TableScan, table: &Schema, aggregate: &ScanAggregate) -> Option<Self> {
        let layout = scan.snapshot.layout();
        let group = layout.group_of_records()?;
        let whole = matches!(scan.output, ScanOutput::Records { within: None });
        if !whole || !aggregate.groups.is_empty() {
            return None;
        }
        let of_stripes = |aggregate: &Aggregate| stripe_aggregate(layout, group, table, aggregate);
        let aggregates = aggregate.aggregates.iter().map(of_stripes).collect::<Option<_>>()?;
        Some(Self { group, aggregates, found: Mutex::new(None) })
    }

    /// The states over all stripes whose stats sufficed; `None` if there was none.
    pub(crate) fn states(&self) -> Result<Option<RowStates>> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(found) = found.as_ref() else { return Ok(None) };
        let state = |(aggregate, found): (&StripeAggregate, &StripeValue)| -> Result<Vec<ArrayRef>> {
            Ok(vec![match (aggregate, found) {
                (StripeAggregate::Bound { kind, .. }, StripeValue::Bound(end)) => {
                    match end.and_then(|end| value(end, kind)) {
                        Some(value) => value.to_array()?,
                        None => ScalarValue::try_from(kind)?.to_array()?,
                    }
                }
                (_, StripeValue::Count(count)) => Arc::new(Int64Array::from(vec![count.cast_signed()])),
                (_, StripeValue::Bound(_)) => Arc::new(Int64Array::from(vec![0])),
            }])
        };
        let states = self.aggregates.iter().zip(found).map(state).collect::<Result<_>>()?;
        Ok(Some(RowStates { rows: RecordBatch::new_empty(Arc::new(Schema::empty())), states }))
    }

    /// The result for one stripe; `None` if its stats do not suffice.
    fn of_stripe(&self, aggregate: &StripeAggregate, stripe: &StripeMeta) -> Option<StripeValue> {
        let records = *stripe.records.get(self.group)?;
        let columns = stripe.columns.get(self.group)?;
        Some(match aggregate {
            StripeAggregate::Records => StripeValue::Count(records),
            StripeAggregate::Values(column) => StripeValue::Count(columns.get(*column)?.present),
            StripeAggregate::Bound { of, kind, greatest } => {
                let (present, range) = match of {
                    BoundOf::Timestamps => {
                        let range = |(least, greatest)| (Scalar::Timestamp(least), Scalar::Timestamp(greatest));
                        (records, stripe.timestamps.map(range))
                    }
                    BoundOf::Column(column) => {
                        let column = columns.get(*column)?;
                        (column.present, column.range)
                    }
                };
                match range.map(|(least, most)| if *greatest { most } else { least }) {
                    // Bounds do not distinguish `0.0` and `-0.0`.
                    Some(Scalar::Float64(0.0)) => return None,
                    Some(end) => StripeValue::Bound(value(end, kind).map(|_| end).map(Some)?),
                    None if present == 0 => StripeValue::Bound(None),
                    None => return None,
                }
            }
        })
    }
}

impl StripeStats for StripeTotals {
    fn suffices(&self, stripe: &StripeMeta) -> bool {
        // A row without events may become a record of its other groups.
        if stripe.fills_rows.get(self.group) != Some(&true) {
            return false;
        }
        let Some(more) =
            self.aggregates.iter().map(|aggregate| self.of_stripe(aggregate, stripe)).collect::<Option<Vec<_>>>()
        else {
            return false;
        };
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        *found = Some(match found.take() {
            None => more,
            Some(before) => {
                let pairs = before.into_iter().zip(more).zip(&self.aggregates);
                pairs.map(|((one, other), aggregate)| one.with(other, aggregate)).collect()
            }
        });
        true
    }
}

impl StripeValue {
    fn with(self, other: Self, aggregate: &StripeAggregate) -> Self {
        let greatest = matches!(aggregate, StripeAggregate::Bound { greatest: true, .. });
        match (self, other) {
            (Self::Count(one), Self::Count(other)) => Self::Count(one + other),
            (Self::Bound(Some(one)), Self::Bound(Some(other))) => {
                Self::Bound(Some(if is_less(one, other) == greatest { other } else { one }))
            }
            (Self::Bound(one), Self::Bound(other)) => Self::Bound(one.or(other)),
            (one, _) => one,
        }
    }
}

/// Less-than for values of one type; neither is NaN.
fn is_less(one: Scalar, other: Scalar) -> bool {
    match (one, other) {
        (Scalar::UInt64(one), Scalar::UInt64(other)) => one < other,
        (Scalar::Int64(one), Scalar::Int64(other)) | (Scalar::Timestamp(one), Scalar::Timestamp(other)) => one < other,
        (Scalar::Float64(one), Scalar::Float64(other)) => one < other,
        (Scalar::Decimal(one), Scalar::Decimal(other)) => one < other,
        (Scalar::Date(one), Scalar::Date(other)) => one < other,
        _ => false,
    }
}

/// How the stats of stripes answer an aggregate over the records of `group`; `None` if they do not.
fn stripe_aggregate(layout: &Layout, group: usize, table: &Schema, aggregate: &Aggregate) -> Option<StripeAggregate> {
    let Aggregate { function, arguments, filter: None } = aggregate else { return None };

    let greatest = match function.fun().name() {
        "max" => true,
        "min" => false,
        _ => {
            return match RowState::of(function, arguments)? {
                RowState::Records => Some(StripeAggregate::Records),
                RowState::Values => {
                    let field = argument_field(arguments)?;
                    Some(StripeAggregate::Values(summed_column(layout, group, field)?))
                }
                _ => None,
            };
        }
    };

    let field = argument_field(arguments)?;
    let of = match layout.is_timestamp_of(field, group) {
        true => BoundOf::Timestamps,
        false => BoundOf::Column(summed_column(layout, group, field)?),
    };

    let kind = table.fields().get(field)?.data_type().clone();
    let states = function.state_fields().ok()?;
    let [state] = states.as_slice() else { return None };
    (*state.data_type() == kind).then_some(StripeAggregate::Bound { of, kind, greatest })
}

/// The field that an aggregate with one plain argument is of.
fn argument_field(arguments: &[Arc<dyn PhysicalExpr>]) -> Option<usize> {
    match arguments {
        [argument] => argument.downcast_ref::<Column>().map(Column::index),
        _ => None,
    }
}

/// The column of `group` that a field is stored in, if the group has sums of it.
fn summed_column(layout: &Layout, group: usize, field: usize) -> Option<usize> {
    let at = layout.summed_column(field)?;
    (at.group == group).then_some(at.column)
}
