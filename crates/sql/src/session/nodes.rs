//! Physical planning of the nodes of this crate.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::error::Result;
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};

use crate::asof::physical::AsOfJoins;
use crate::gapfill::physical::GapFills;

/// DataFusion's planner, with the nodes of this crate.
pub(crate) struct NodePlanner;

impl fmt::Debug for NodePlanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodePlanner")
    }
}

#[async_trait]
impl QueryPlanner for NodePlanner {
    async fn create_physical_plan(&self, plan: &LogicalPlan, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(AsOfJoins), Arc::new(GapFills)]);
        planner.create_physical_plan(plan, session).await
    }
}
