//! Optimizes queries on planning threads, and ends planning for callers that no longer wait.

use std::fmt::{self, Formatter};
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result as PlanResult;
use datafusion::execution::{SessionStateBuilder, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::{RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{AnalyzerRule, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::DataFrame;
use datafusion::sql::sqlparser::ast::TableFactor;
use tidetable_functions::check_abandoned;
use tidetable_upstream::rules::node_rule::Rule;

use crate::error::Result;
use crate::optimizer::balanced_filters::balanced_filters;
use crate::planning_thread::plan_on_thread;

/// Nodes above each other from which on a plan runs without tokio's budget. A task that has used its budget of 128 steps is asked
/// again from the start: in a chain of 160 joins none of them would ever get so far as to hand on a row.
pub(crate) const DEEP_PLAN: usize = 100;

/// A query that can be executed: its plan, and what it is executed in.
#[derive(Debug, Clone)]
pub struct PlannedQuery {
    /// The physical plan of the query.
    pub plan: Arc<dyn ExecutionPlan>,
    /// The settings and the memory that it runs with.
    pub context: Arc<TaskContext>,
}

/// Optimizes a query, on a planning thread.
///
/// # Errors
/// If it cannot be planned.
pub async fn plan_frame(frame: DataFrame) -> Result<PlannedQuery> {
    plan_on_thread(move || physical(frame)).await
}

/// Optimizes a planned query on this thread. A deep plan has one partition: it runs without tokio's budget, which tasks of other
/// partitions would have.
pub(crate) async fn physical(frame: DataFrame) -> Result<PlannedQuery> {
    let (state, query) = frame.into_parts();
    let plan = state.create_physical_plan(&query).await?;
    if state.config().target_partitions() == 1 || depth(&plan) <= DEEP_PLAN {
        return Ok(PlannedQuery { plan, context: state.task_ctx() });
    }

    let config = state.config().clone().with_target_partitions(1);
    let state = SessionStateBuilder::new_from_existing(state).with_config(config).build();
    Ok(PlannedQuery { plan: state.create_physical_plan(&query).await?, context: state.task_ctx() })
}

/// The most nodes above each other.
pub(crate) fn depth(plan: &Arc<dyn ExecutionPlan>) -> usize {
    1 + plan.children().into_iter().map(depth).max().unwrap_or_default()
}

/// Ends the planning of a long text for a caller that no longer waits, at the next table that it names.
#[derive(Debug)]
pub(crate) struct StopsPlanning;

impl RelationPlanner for StopsPlanning {
    fn plan_relation(&self, relation: TableFactor, _: &mut dyn RelationPlannerContext) -> PlanResult<RelationPlanning> {
        check_abandoned()?;
        Ok(RelationPlanning::Original(Box::new(relation)))
    }
}

/// The rules, each of which ends planning for a caller that no longer waits.
pub(crate) fn stoppable_analyzer(
    rules: Vec<Arc<dyn AnalyzerRule + Send + Sync>>,
) -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    rules.into_iter().map(|rule| Arc::new(Stoppable(rule)) as _).collect()
}

/// As [`stoppable_analyzer`], for the rules of the logical optimizer.
pub(crate) fn stoppable_logical(
    rules: Vec<Arc<dyn OptimizerRule + Send + Sync>>,
) -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    rules.into_iter().map(|rule| Arc::new(Stoppable(rule)) as _).collect()
}

/// As [`stoppable_analyzer`]; the last rule makes filters shallow, so that their evaluation does not need such a stack.
pub(crate) fn stoppable_physical(mut rules: Vec<Rule>) -> Vec<Rule> {
    rules.push(balanced_filters());
    rules.into_iter().map(|rule| Arc::new(Stoppable(rule)) as _).collect()
}

/// A rule that fails on a thread for which nobody waits any longer.
struct Stoppable<R>(R);

impl<R: fmt::Debug> fmt::Debug for Stoppable<R> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl AnalyzerRule for Stoppable<Arc<dyn AnalyzerRule + Send + Sync>> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> PlanResult<LogicalPlan> {
        check_abandoned()?;
        self.0.analyze(plan, config)
    }
}

impl OptimizerRule for Stoppable<Arc<dyn OptimizerRule + Send + Sync>> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> PlanResult<Transformed<LogicalPlan>> {
        check_abandoned()?;
        self.0.rewrite(plan, config)
    }
}

impl PhysicalOptimizerRule for Stoppable<Rule> {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> PlanResult<Arc<dyn ExecutionPlan>> {
        check_abandoned()?;
        self.0.optimize(plan, config)
    }

    fn optimize_with_context(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &dyn PhysicalOptimizerContext,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        check_abandoned()?;
        self.0.optimize_with_context(plan, context)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}
