//! Eager aggregation: moves the partial stage of an aggregation below a join, into the scan.
//!
//! `SELECT zone, sum(kwh) FROM readings JOIN meters USING (meter) GROUP BY zone` need not join each reading, because
//! readings of one meter have one zone. The scan aggregates by the join keys and by its own group expressions, the join
//! sees one row per such group, and the next stage merges states. A group that joins several rows is merged once for
//! each, as its records would have been counted.

use std::sync::Arc;

use arrow::datatypes::{Field, Schema};
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::JoinType;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::{HashJoinExec, HashJoinExecBuilder};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};

use crate::aggregate::spec::{GroupOf, ScanAggregate};
use crate::optimizer::record_scan::RecordScan;

type Expr = Arc<dyn PhysicalExpr>;

/// Functions whose state has the same form with and without groups.
const PLAIN: [&str; 5] = ["avg", "count", "max", "min", "sum"];

/// Replaces `first`, the partial stage of an aggregation, by one below its join. `None` unless: the join is an inner
/// equi-join without a filter; one side is a scan; its join keys and group expressions depend on rows or times; all
/// arguments come from that side; and no group expression uses both sides.
pub(crate) fn below_join(first: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let (mut plan, mut projections) = (first.input(), Vec::new());
    while let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        projections.push(projection.projection_expr());
        plan = projection.input();
    }
    let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(None) };

    if *join.join_type() != JoinType::Inner
        || join.filter().is_some()
        || !first.aggr_expr().iter().all(|function| PLAIN.contains(&function.fun().name()))
    {
        return Ok(None);
    }

    for scan_is_left in [false, true] {
        let side = if scan_is_left { join.left() } else { join.right() };
        let Some(scan) = RecordScan::below(side)? else { continue };
        let joined = AggregatedJoin { join, projections: &projections, scan_is_left, scan };
        if let Some(plan) = joined.rewritten(first)? {
            return Ok(Some(plan));
        }
    }
    Ok(None)
}

struct AggregatedJoin<'a> {
    join: &'a HashJoinExec,
    /// Nodes between the aggregation and the join, top first.
    projections: &'a [&'a ProjectionExprs],
    scan_is_left: bool,
    scan: RecordScan<'a>,
}

/// The side of the join that an expression's columns come from.
#[derive(Debug, PartialEq, Eq)]
enum Side {
    Neither,
    Scan,
    Other,
    Both,
}

impl AggregatedJoin<'_> {
    fn left_width(&self) -> usize {
        self.join.left().schema().fields().len()
    }

    /// Rewrites an expression over the aggregation's input to one over the join's columns.
    fn of_join(&self, expr: &Expr) -> Result<Expr> {
        let mut expr = Arc::clone(expr);
        for projection in self.projections {
            expr = projection.unproject_expr(&expr)?;
        }
        let Some(kept) = &self.join.projection else { return Ok(expr) };
        moved(&expr, |index| kept.get(index).copied())
    }

    fn side(&self, expr: &Expr) -> Side {
        let left = self.left_width();
        let columns = collect_columns(expr);
        let of_scan = columns.iter().filter(|column| (column.index() < left) == self.scan_is_left).count();
        match (of_scan, columns.len() - of_scan) {
            (0, 0) => Side::Neither,
            (_, 0) => Side::Scan,
            (0, _) => Side::Other,
            _ => Side::Both,
        }
    }

    /// Rewrites an expression over the join's columns to one over the scan's table.
    fn of_table(&self, expr: &Expr) -> Result<Expr> {
        let before = if self.scan_is_left { 0 } else { self.left_width() };
        self.scan.of_table(&moved(expr, |index| index.checked_sub(before))?)
    }

    /// The plan with the partial aggregation below the join; `None` if a key, group or argument does not allow it.
    fn rewritten(&self, first: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        // The scan groups by the join keys, then by the group expressions of its side.
        let mut groups: Vec<(Expr, GroupOf)> = Vec::new();
        let mut fields: Vec<Field> = Vec::new();
        let side = if self.scan_is_left { self.join.left() } else { self.join.right() };
        for (left, right) in self.join.on() {
            let expr = if self.scan_is_left { left } else { right };
            let Some(group) = self.scan.group(self.scan.of_table(expr)?) else { return Ok(None) };
            fields.push(Field::new(format!("on {}", groups.len()), expr.data_type(&side.schema())?, true));
            groups.push(group);
        }

        let mut own_groups = Vec::new();
        for ((expr, _), field) in first.group_expr().expr().iter().zip(first.schema().fields()) {
            let expr = self.of_join(expr)?;
            match self.side(&expr) {
                Side::Both => return Ok(None),
                Side::Scan => {
                    let Some(group) = self.scan.group(self.of_table(&expr)?) else { return Ok(None) };
                    own_groups.push((None, groups.len()));
                    fields.push(Field::new(format!("by {}", groups.len()), field.data_type().clone(), true));
                    groups.push(group);
                }
                Side::Other | Side::Neither => own_groups.push((Some(expr), 0)),
            }
        }

        let aggregates = RecordScan::aggregates(first, |expr| {
            let expr = self.of_join(expr)?;
            match self.side(&expr) {
                Side::Other | Side::Both => Ok(None),
                Side::Scan | Side::Neither => self.of_table(&expr).map(Some),
            }
        })?;
        let Some(aggregates) = aggregates else { return Ok(None) };

        let states = first.schema().fields().len() - own_groups.len();
        fields.extend(first.schema().fields().iter().skip(own_groups.len()).map(|field| field.as_ref().clone()));
        let by = groups.len();
        let schema = Arc::new(Schema::new(fields));
        let time = self.scan.time();
        let plan = ScanAggregate { groups, aggregates, time, newest_only: false, in_key_order: false, schema };
        let summed = self.scan.with(plan)?;

        // The same join over the partial states.
        let mut on = Vec::with_capacity(self.join.on().len());
        for (at, (left, right)) in self.join.on().iter().enumerate() {
            let key: Expr = Arc::new(Column::new(summed.schema().field(at).name(), at));
            on.push(if self.scan_is_left { (key, Arc::clone(right)) } else { (Arc::clone(left), key) });
        }
        let (left, right) = if self.scan_is_left {
            (Arc::clone(&summed), Arc::clone(self.join.right()))
        } else {
            (Arc::clone(self.join.left()), Arc::clone(&summed))
        };
        let width = left.schema().fields().len();
        let join = HashJoinExecBuilder::new(left, right, on, JoinType::Inner)
            .with_partition_mode(*self.join.partition_mode())
            .with_null_equality(self.join.null_equality())
            .build_exec()?;

        // Projects the columns of the partial stage.
        let before = if self.scan_is_left { 0 } else { width };
        let of_scan = |at: usize| Arc::new(Column::new(join.schema().field(before + at).name(), before + at)) as Expr;
        let mut columns: Vec<(Expr, String)> = Vec::new();
        for ((other, at), field) in own_groups.into_iter().zip(first.schema().fields()) {
            let expr = match other {
                // The scan's width has changed, so columns of the other side move if they follow it.
                Some(expr) if self.scan_is_left => {
                    moved(&expr, |index| Some(index.checked_sub(self.left_width())? + width))?
                }
                Some(expr) => expr,
                None => of_scan(at),
            };
            columns.push((expr, field.name().clone()));
        }
        for (at, field) in first.schema().fields().iter().rev().take(states).rev().enumerate() {
            columns.push((of_scan(by + at), field.name().clone()));
        }
        let plan: Arc<dyn ExecutionPlan> = Arc::new(ProjectionExec::try_new(columns, join)?);
        Ok(has_same_columns(&plan.schema(), &first.schema()).then_some(plan))
    }
}

/// Whether the columns of both schemas agree in names and types.
fn has_same_columns(one: &Schema, other: &Schema) -> bool {
    let mut pairs = one.fields().iter().zip(other.fields());
    one.fields().len() == other.fields().len()
        && pairs.all(|(one, other)| one.name() == other.name() && one.data_type() == other.data_type())
}

/// Rewrites column indexes; an error if `place` has no index for one.
fn moved(expr: &Expr, place: impl Fn(usize) -> Option<usize>) -> Result<Expr> {
    Arc::clone(expr)
        .transform_up(|expr| {
            let Some(column) = expr.downcast_ref::<Column>() else { return Ok(Transformed::no(expr)) };
            let Some(at) = place(column.index()) else {
                return internal_err!("the column {} is on neither side", column.name());
            };
            Ok(Transformed::yes(Arc::new(Column::new(column.name(), at)) as Expr))
        })
        .data()
}
