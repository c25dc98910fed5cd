//! Guards against wrong results of sort-merge joins; rows "Merge join: floats", "Merge join: filters" and "Merge join:
//! projections" of `docs/datafusion-workarounds.md`.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::JoinSide;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};

use crate::barrier::{BarrierExec, Stopped};

/// Whether a merge compares the keys correctly. It does not support all types, and a semi or anti join of DataFusion
/// 55.2 panics on NaN if equal keys span batches.
pub fn keys_are_comparable(join: &HashJoinExec) -> Result<bool> {
    use DataType::{Binary, Boolean, Date32, Date64, Decimal128, LargeUtf8, Timestamp, Utf8, Utf8View};
    for (key, _) in join.on() {
        let kind = key.data_type(&join.left().schema())?;
        let known = matches!(
            kind,
            Binary | Boolean | Date32 | Date64 | Decimal128(..) | LargeUtf8 | Timestamp(..) | Utf8 | Utf8View
        );
        if !known && !kind.is_integer() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The join, with a node above it that no projection passes if it has a filter. DataFusion 55.2 moves projections below a merge
/// join, and leaves its filter with the numbers that columns had before: rows are compared by other columns.
pub fn below_projections(join: SortMergeJoinExec) -> Arc<dyn ExecutionPlan> {
    let has_filter = join.filter().is_some();
    let join: Arc<dyn ExecutionPlan> = Arc::new(join);
    if has_filter { BarrierExec::over(join, Stopped::Projections) } else { join }
}

/// The same filter with the columns of the left side first. A merge join of DataFusion 55.2 passes its columns in this
/// order and ignores the order that the filter declares; a swap of the sides puts the right side first.
pub fn left_columns_first(filter: &JoinFilter) -> Result<JoinFilter> {
    let columns = filter.column_indices();
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.sort_by_key(|at| columns.get(*at).is_some_and(|column| column.side != JoinSide::Left));

    let expression = Arc::clone(filter.expression()).transform_up(|expr| {
        Ok(match expr.downcast_ref::<Column>() {
            Some(column) => {
                let place = order.iter().position(|at| *at == column.index()).unwrap_or(column.index());
                Transformed::yes(Arc::new(Column::new(column.name(), place)) as Arc<dyn PhysicalExpr>)
            }
            None => Transformed::no(expr),
        })
    });
    let expression = expression.data()?;
    let columns = order.iter().filter_map(|at| columns.get(*at).cloned()).collect();
    Ok(JoinFilter::new(expression, columns, Arc::new(filter.schema().project(&order)?)))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, Schema};
    use datafusion::common::{JoinType, NullEquality};
    use datafusion::config::ConfigOptions;
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::BinaryExpr;
    use datafusion::physical_optimizer::PhysicalOptimizerRule;
    use datafusion::physical_optimizer::projection_pushdown::ProjectionPushdown;
    use datafusion::physical_plan::coop::CooperativeExec;
    use datafusion::physical_plan::empty::EmptyExec;
    use datafusion::physical_plan::joins::utils::ColumnIndex;
    use datafusion::physical_plan::projection::ProjectionExec;
    use datafusion::physical_plan::{PhysicalExpr, displayable};

    use super::*;

    /// A join of `l (x, k, a)` and `r (y, j, b)` by `k = j` and, if `has_filter`, `x > y`.
    fn join(has_filter: bool) -> SortMergeJoinExec {
        let side = |names: [&str; 3]| -> Arc<dyn ExecutionPlan> {
            let fields: Vec<Field> = names.iter().map(|name| Field::new(*name, DataType::Int64, false)).collect();
            Arc::new(EmptyExec::new(Arc::new(Schema::new(fields))))
        };
        let column = |name: &str, at: usize| -> Arc<dyn PhysicalExpr> { Arc::new(Column::new(name, at)) };

        let compared =
            Schema::new(vec![Field::new("x", DataType::Int64, false), Field::new("y", DataType::Int64, false)]);
        let greater = Arc::new(BinaryExpr::new(column("x", 0), Operator::Gt, column("y", 1)));
        let columns = [JoinSide::Left, JoinSide::Right].map(|side| ColumnIndex { index: 0, side });
        let filter = JoinFilter::new(greater, columns.to_vec(), Arc::new(compared));

        SortMergeJoinExec::try_new(
            side(["x", "k", "a"]),
            side(["y", "j", "b"]),
            vec![(column("k", 1), column("j", 1))],
            has_filter.then_some(filter),
            JoinType::Inner,
            vec![Default::default()],
            NullEquality::NullEqualsNothing,
        )
        .unwrap()
    }

    /// The plan of `SELECT k, a, j, b`, all but what the filter compares, over `input` after projections were moved.
    fn pushed(input: Arc<dyn ExecutionPlan>) -> String {
        let outputs = ["k", "a", "j", "b"].map(|name| {
            let at = input.schema().index_of(name).unwrap();
            (Arc::new(Column::new(name, at)) as Arc<dyn PhysicalExpr>, name.to_owned())
        });
        let plan = Arc::new(ProjectionExec::try_new(outputs, input).unwrap());
        let plan = ProjectionPushdown::new().optimize(plan, &ConfigOptions::default()).unwrap();
        displayable(plan.as_ref()).indent(false).to_string()
    }

    #[test]
    fn projections_stay_above_joins_with_filters_whatever_stands_between() {
        let guarded = [below_projections(join(true)), Arc::new(CooperativeExec::new(below_projections(join(true))))];
        for input in guarded {
            let plan = pushed(input);
            assert!(plan.starts_with("ProjectionExec: expr=[k@1 as k, a@2 as a, j@4 as j, b@5 as b]"), "{plan}");
            assert_eq!(plan.matches("ProjectionExec").count(), 1, "{plan}");
        }

        // Without a filter, the join takes the columns that it needs.
        let plan = pushed(below_projections(join(false)));
        assert!(plan.matches("ProjectionExec").count() > 1, "{plan}");
    }
}
