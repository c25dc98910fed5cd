//! Guards against wrong results of sort-merge joins; rows "Merge join: floats", "Merge join: filters" and "Merge join:
//! projections" of `docs/datafusion-workarounds.md`.

use std::fmt::{self, Formatter};
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinSide, Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::execution_plan::CardinalityEffect;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
    ReplaceChildrenOptions,
};

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
    if has_filter { Arc::new(BelowProjectionsExec { join }) } else { join }
}

/// A node that passes the batches of a join on, with all its properties. It says of no projection that it may go below.
#[derive(Debug, Clone)]
struct BelowProjectionsExec {
    join: Arc<dyn ExecutionPlan>,
}

impl DisplayAs for BelowProjectionsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("BelowProjectionsExec")
    }
}

impl ExecutionPlan for BelowProjectionsExec {
    fn name(&self) -> &'static str {
        "BelowProjectionsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.join.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.join]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.is_empty()) {
            (Some(join), true) => Ok(Arc::new(Self { join })),
            _ => internal_err!("a BelowProjectionsExec has one input"),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.join.execute(partition, context)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(&self, inputs: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(inputs.first().map_or_else(|| Arc::new(Statistics::new_unknown(&self.schema())), Arc::clone))
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
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
