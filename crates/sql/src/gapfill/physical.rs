//! Physical planning of nodes that fill gaps.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNode, UserDefinedLogicalNodeCore};
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use datafusion::physical_planner::{ExtensionPlanner, PhysicalPlanner};

use crate::gapfill::exec::GapFillExec;
use crate::gapfill::filling::Filling;
use crate::gapfill::node::GapFill;

/// Plans nodes that fill gaps.
pub(crate) struct GapFills;

#[async_trait]
impl ExtensionPlanner for GapFills {
    async fn plan_extension(
        &self,
        planner: &dyn PhysicalPlanner,
        node: &dyn UserDefinedLogicalNode,
        _: &[&LogicalPlan],
        inputs: &[Arc<dyn ExecutionPlan>],
        session: &dyn Session,
        planning: &PhysicalPlanningContext,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(gaps) = node.as_any().downcast_ref::<GapFill>() else { return Ok(None) };
        let [input] = inputs else { return internal_err!("a GapFill has one input") };

        let planned = |expr: &Expr| planner.create_physical_expr(expr, gaps.input.schema(), session, planning);
        let all = |exprs: &[Expr]| exprs.iter().map(planned).collect::<Result<Vec<Arc<dyn PhysicalExpr>>>>();
        let kinds = gaps.fills.iter().map(|fill| fill.kind);
        let filling = Filling {
            grid: gaps.grid.clone(),
            time: planned(&gaps.time)?,
            keys: all(&gaps.keys)?,
            fills: kinds.zip(all(&gaps.values)?).collect(),
        };
        let schema = Arc::new(UserDefinedLogicalNodeCore::schema(gaps).as_arrow().clone());
        Ok(Some(Arc::new(GapFillExec::new(Arc::clone(input), filling, schema))))
    }
}
