//! Replaces hash joins by sort-merge joins under a memory limit; row "Hash joins" of `docs/datafusion-workarounds.md`.
//!
//! A hash join of DataFusion 55.2 keeps its build side in memory and fails if it does not fit. If the session has a
//! limit and the build side is not known to be small, both sides are sorted, which spills, and merged.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Schema};
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{HashJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};

use tidetable_upstream::joins::merge_joins::{below_projections, keys_are_comparable, left_columns_first};
use tidetable_upstream::rules::node_rule::{Rule, node_rule};

/// Size of a hash table as a multiple of its values.
const OVERHEAD: usize = 3;
/// Bytes that a text value is assumed to have.
const TEXT: usize = 64;

/// Replaces hash joins whose build side may take more than `most` bytes.
pub(crate) fn joins_that_spill(most: usize) -> Rule {
    node_rule("JoinsThatSpill", move |plan| match plan.downcast_ref::<HashJoinExec>() {
        Some(join) => merge_join(join, most),
        None => Ok(None),
    })
}

fn merge_join(join: &HashJoinExec, most: usize) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    // A merge join supports neither null-aware joins nor embedded projections.
    let unknown = join.null_aware || join.contains_projection() || !keys_are_comparable(join)?;
    if unknown || fits(join.left(), most)? {
        return Ok(None);
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
    Ok(merge.ok().map(below_projections))
}

/// Whether a side is known to fit into `most` bytes.
fn fits(side: &Arc<dyn ExecutionPlan>, most: usize) -> Result<bool> {
    let rows =
        StatisticsContext::new().compute(side.as_ref(), &StatisticsArgs::default())?.num_rows.get_value().copied();
    let Some(rows) = rows else { return Ok(false) };
    Ok(rows.saturating_mul(OVERHEAD).saturating_mul(width(&side.schema())) <= most)
}

/// Estimated bytes of a row of this schema.
fn width(schema: &Schema) -> usize {
    let mut bytes = 0;
    for field in schema.fields() {
        let kind = field.data_type();
        bytes += kind.primitive_width().unwrap_or(if *kind == DataType::Boolean { 1 } else { TEXT });
    }
    bytes
}
