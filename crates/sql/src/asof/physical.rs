//! Physical planning of ASOF joins.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{LogicalPlan, UserDefinedLogicalNode};
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

use crate::asof::exec::AsOfJoinExec;
use crate::asof::node::AsOfJoin;

/// Plans ASOF joins.
pub(crate) struct AsOfJoins;

#[async_trait]
impl ExtensionPlanner for AsOfJoins {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        planning: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(join) = node.as_any().downcast_ref::<AsOfJoin>() else { return Ok(None) };
        let [left, right] = inputs else { return internal_err!("an ASOF join has two inputs") };

        let of_left = |expr| planner.create_physical_expr(expr, join.left.schema(), session, planning);
        let of_right = |expr| planner.create_physical_expr(expr, join.right.schema(), session, planning);
        let mut sides: [Vec<Arc<dyn PhysicalExpr>>; 2] = [Vec::new(), Vec::new()];
        for (left, right) in join.keys.iter().chain([&join.times]) {
            sides[0].push(of_left(left)?);
            sides[1].push(of_right(right)?);
        }
        let inputs = [Arc::clone(left), Arc::clone(right)];
        let schema = Arc::new(join.schema().as_arrow().clone());
        let join = AsOfJoinExec::try_new(inputs, sides, join.comparison, join.keeps_left, schema)?;
        Ok(Some(Arc::new(join)))
    }
}
