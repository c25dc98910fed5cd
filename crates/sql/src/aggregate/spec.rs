//! Specification of a partial aggregation in a scan.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::PhysicalExpr;

use crate::aggregate::row_states::RowState;

type Expr = Arc<dyn PhysicalExpr>;

/// A partial aggregation. All expressions are over the table's columns.
#[derive(Debug)]
pub(crate) struct ScanAggregate {
    /// Group expressions in the order of the output, each with what it depends on.
    pub(crate) groups: Vec<(Expr, GroupOf)>,
    pub(crate) aggregates: Vec<Aggregate>,
    /// The field of the event time, if records have one.
    pub(crate) time: Option<usize>,
    /// Whether only the newest record of each row decides the result.
    pub(crate) newest_only: bool,
    /// Whether states are output in key order, which needs rows in that order.
    pub(crate) in_key_order: bool,
    /// Groups, then aggregate states, as DataFusion's partial stage outputs them.
    pub(crate) schema: SchemaRef,
}

/// What a group expression depends on, and so how often it is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupOf {
    /// Fields of the row key: once a row.
    Row,
    /// The event time: once a time, which many rows share.
    Time,
}

/// An aggregate function of the query, with the expressions that it takes.
#[derive(Debug)]
pub(crate) struct Aggregate {
    pub(crate) function: Arc<AggregateFunctionExpr>,
    /// The arguments of the function, and behind them its ordering expressions.
    pub(crate) arguments: Vec<Expr>,
    /// The `FILTER` clause: only records for which it holds are aggregated.
    pub(crate) filter: Option<Expr>,
}

impl Aggregate {
    /// What its states by row are made by; `None` if it needs single records.
    pub(crate) fn row_state(&self) -> Option<RowState> {
        RowState::of(&self.function, &self.arguments).filter(|_| self.filter.is_none())
    }
}

impl ScanAggregate {
    /// The states by row; `None` if a row may have several groups, or a function needs single records.
    pub(crate) fn row_states(&self) -> Option<Vec<RowState>> {
        let one_group_each = self.groups.iter().all(|(_, of)| *of == GroupOf::Row);
        (one_group_each && !self.newest_only)
            .then(|| self.aggregates.iter().map(Aggregate::row_state).collect())
            .flatten()
    }
}

impl fmt::Display for ScanAggregate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("by=[")?;
        for (at, (expr, of)) in self.groups.iter().enumerate() {
            let of = match of {
                GroupOf::Row => "row",
                GroupOf::Time => "time",
            };
            write!(f, "{}{expr} of {of}", if at == 0 { "" } else { ", " })?;
        }
        f.write_str("], aggregates=[")?;
        for (at, aggregate) in self.aggregates.iter().enumerate() {
            write!(f, "{}{}", if at == 0 { "" } else { ", " }, aggregate.function.name())?;
        }
        f.write_str(if self.newest_only { "], newest records only" } else { "]" })?;
        f.write_str(if self.in_key_order { ", in key order" } else { "" })
    }
}
