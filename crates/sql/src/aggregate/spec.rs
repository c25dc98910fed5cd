//! The first stage of an aggregation, as a scan is given it.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_plan::PhysicalExpr;

use crate::aggregate::row_states::RowState;

type Expr = Arc<dyn PhysicalExpr>;

/// The first stage of an aggregation. All expressions are over the table.
#[derive(Debug)]
pub(crate) struct ScanAggregate {
    /// What is grouped by, in the order of the output.
    pub(crate) groups: Vec<(Expr, GroupOf)>,
    pub(crate) aggregates: Vec<Aggregate>,
    /// The event time.
    pub(crate) time: Option<usize>,
    /// Whether only the newest record of each row matters.
    pub(crate) newest_only: bool,
    /// Groups, then the states of aggregates, as the engine's first stage gives them.
    pub(crate) schema: SchemaRef,
}

/// What the value that records are grouped by depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupOf {
    /// The row's key.
    Row,
    /// The event time.
    Time,
}

/// An aggregate function.
#[derive(Debug)]
pub(crate) struct Aggregate {
    pub(crate) function: Arc<AggregateFunctionExpr>,
    /// Its arguments, and what they are ordered by.
    pub(crate) arguments: Vec<Expr>,
    /// Which records count.
    pub(crate) filter: Option<Expr>,
}

impl ScanAggregate {
    /// The states that rows are summed up to first; `None` if rows may have several groups, or records are looked at.
    pub(crate) fn row_states(&self) -> Option<Vec<RowState>> {
        let one_group_each = self.groups.iter().all(|(_, of)| *of == GroupOf::Row);
        let state = |aggregate: &Aggregate| {
            let state = RowState::of(&aggregate.function, &aggregate.arguments);
            state.filter(|_| aggregate.filter.is_none())
        };
        (one_group_each && !self.newest_only).then(|| self.aggregates.iter().map(state).collect()).flatten()
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
        f.write_str(if self.newest_only { "], newest records only" } else { "]" })
    }
}
