//! Joins that do with little memory.
//!
//! The engine joins by a table of one side, which must fit. Where a session has a limit, and the side is not known to be
//! small, both sides are sorted instead, which spills, and merged.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Schema};
use datafusion::common::JoinSide;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};

/// What a table of rows takes beside their values, as a multiple of them.
const OVERHEAD: usize = 3;
/// Bytes of a text, for want of better knowledge.
const TEXT: usize = 64;

/// Sorts and merges what would not fit.
#[derive(Debug)]
pub(crate) struct JoinsThatSpill {
    /// Bytes that a side may take to be joined by a table of it.
    pub(crate) most: usize,
}

impl PhysicalOptimizerRule for JoinsThatSpill {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(Transformed::no(plan)) };
            // Of null-aware joins and embedded projections a merge knows nothing.
            let unknown = join.null_aware || join.contains_projection() || !is_compared(join)?;
            if unknown || self.fits(join.left())? {
                return Ok(Transformed::no(plan));
            }
            let merge = SortMergeJoinExec::try_new(
                Arc::clone(join.left()),
                Arc::clone(join.right()),
                join.on().to_vec(),
                join.filter().map(left_first).transpose()?,
                *join.join_type(),
                vec![SortOptions::default(); join.on().len()],
                join.null_equality(),
            );
            // There are kinds of joins that cannot be merged.
            Ok(merge.map_or(Transformed::no(Arc::clone(&plan)), |merge| Transformed::yes(Arc::new(merge) as _)))
        })
        .data()
    }

    fn name(&self) -> &str {
        "JoinsThatSpill"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

impl JoinsThatSpill {
    /// Whether a side is known to be small.
    fn fits(&self, side: &Arc<dyn ExecutionPlan>) -> Result<bool> {
        let rows =
            StatisticsContext::new().compute(side.as_ref(), &StatisticsArgs::default())?.num_rows.get_value().copied();
        let bytes = |rows: usize| rows.saturating_mul(OVERHEAD).saturating_mul(width(&side.schema()));
        Ok(rows.is_some_and(|rows| bytes(rows) <= self.most))
    }
}

/// Whether a merge knows how to compare the keys. It does not know all types, and of floats that are no numbers it panics
/// where one side only asks whether there is a match (DataFusion 55.2).
fn is_compared(join: &HashJoinExec) -> Result<bool> {
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

/// The same filter, of whose columns those of the left side come first: a merge hands them over so, whatever order the filter
/// states (DataFusion 55.2), and the sides may have been swapped.
fn left_first(filter: &JoinFilter) -> Result<JoinFilter> {
    let columns = filter.column_indices();
    let mut order: Vec<usize> = (0..columns.len()).collect();
    order.sort_by_key(|at| columns.get(*at).is_some_and(|column| column.side != JoinSide::Left));
    let moved = |expr: Arc<dyn PhysicalExpr>| {
        Ok(match expr.downcast_ref::<Column>() {
            Some(column) => {
                let place = order.iter().position(|at| *at == column.index()).unwrap_or(column.index());
                Transformed::yes(Arc::new(Column::new(column.name(), place)) as Arc<dyn PhysicalExpr>)
            }
            None => Transformed::no(expr),
        })
    };
    let expression = Arc::clone(filter.expression()).transform_up(moved).data()?;
    let columns = order.iter().filter_map(|at| columns.get(*at).cloned()).collect();
    Ok(JoinFilter::new(expression, columns, Arc::new(filter.schema().project(&order)?)))
}

/// Bytes of a row, about.
fn width(schema: &Schema) -> usize {
    let of = |kind: &DataType| kind.primitive_width().unwrap_or(if *kind == DataType::Boolean { 1 } else { TEXT });
    schema.fields().iter().map(|field| of(field.data_type())).sum()
}
