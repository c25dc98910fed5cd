//! Replaces hash joins by sort-merge joins under a memory limit; row "Hash joins" of `docs/datafusion-workarounds.md`.
//!
//! A hash join of DataFusion 55.2 keeps its build side in memory and fails if it does not fit. If the session has a
//! limit and the build side is not known to be small, both sides are sorted, which spills, and merged.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use crate::workarounds::merge_joins::{keys_are_comparable, left_columns_first};

/// Size of a hash table as a multiple of its values.
const OVERHEAD: usize = 3;
/// Assumed bytes of a text value.
const TEXT: usize = 64;

/// Replaces hash joins whose build side may not fit.
#[derive(Debug)]
pub(crate) struct JoinsThatSpill {
    /// Greatest bytes of a build side that is still hashed.
    pub(crate) most: usize,
}

impl PhysicalOptimizerRule for JoinsThatSpill {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let Some(join) = plan.downcast_ref::<HashJoinExec>() else { return Ok(Transformed::no(plan)) };
            // A merge join supports neither null-aware joins nor embedded projections.
            let unknown = join.null_aware || join.contains_projection() || !keys_are_comparable(join)?;
            if unknown || self.fits(join.left())? {
                return Ok(Transformed::no(plan));
            }
            let merge = SortMergeJoinExec::try_new(
                Arc::clone(join.left()),
                Arc::clone(join.right()),
                join.on().to_vec(),
                join.filter().map(left_columns_first).transpose()?,
                *join.join_type(),
                vec![SortOptions::default(); join.on().len()],
                join.null_equality(),
            );
            // Some join types have no merge join.
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
    /// Whether a side is known to fit.
    fn fits(&self, side: &Arc<dyn ExecutionPlan>) -> Result<bool> {
        let rows =
            StatisticsContext::new().compute(side.as_ref(), &StatisticsArgs::default())?.num_rows.get_value().copied();
        let bytes = |rows: usize| rows.saturating_mul(OVERHEAD).saturating_mul(width(&side.schema()));
        Ok(rows.is_some_and(|rows| bytes(rows) <= self.most))
    }
}

/// Estimated bytes of a row.
fn width(schema: &Schema) -> usize {
    let of = |kind: &DataType| kind.primitive_width().unwrap_or(if *kind == DataType::Boolean { 1 } else { TEXT });
    schema.fields().iter().map(|field| of(field.data_type())).sum()
}
