//! Leaves filters above projections whose expressions they would copy too often; see `docs/datafusion-workarounds.md`.
//!
//! To move a filter below a projection, DataFusion 55.2 puts the expression of a column in each place where the filter names it. In
//! `SELECT x + x AS x FROM (SELECT x + x AS x FROM ..) WHERE x > 5` every subquery doubles the filter: eighteen of them take ten
//! seconds. Both the logical and the physical rule do so.

use std::fmt::{self, Formatter};
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, Projection};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use datafusion::physical_expr::expressions::Column as PhysicalColumn;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};

use crate::rules::node_rule::Rule;

/// The name of DataFusion's logical rule.
const LOGICAL: &str = "push_down_filter";
/// The start of the names of its physical rules.
const PHYSICAL: &str = "FilterPushdown";
/// The most parts of expressions that a filter gains below a projection, and that a column stands for in the projections below it.
const MAX_GROWTH: usize = 2048;

/// Puts the logical rule that bounds filters in the place of DataFusion's.
pub(crate) fn replace(rules: &mut [Arc<dyn OptimizerRule + Send + Sync>]) {
    for rule in rules.iter_mut().filter(|rule| rule.name() == LOGICAL) {
        *rule = Arc::new(BoundedFilters(Arc::clone(rule)));
    }
}

/// Puts the physical rules that bound filters in the places of DataFusion's.
pub(crate) fn replace_physical(rules: &mut [Rule]) {
    for rule in rules.iter_mut().filter(|rule| rule.name().starts_with(PHYSICAL)) {
        *rule = Arc::new(OfSmallProjections(Arc::clone(rule)));
    }
}

/// DataFusion's logical rule, but for filters that it would make much larger.
struct BoundedFilters(Arc<dyn OptimizerRule + Send + Sync>);

impl fmt::Debug for BoundedFilters {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(LOGICAL)
    }
}

impl OptimizerRule for BoundedFilters {
    fn name(&self) -> &str {
        LOGICAL
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if let LogicalPlan::Filter(Filter { predicate, input, .. }) = &plan
            && let LogicalPlan::Projection(projection) = input.as_ref()
            && growth(predicate, projection)? > MAX_GROWTH
        {
            return Ok(Transformed::no(plan));
        }
        self.0.rewrite(plan, config)
    }
}

/// How many parts of expressions a filter gains when columns of a projection are replaced by what they stand for.
fn growth(predicate: &Expr, projection: &Projection) -> Result<usize> {
    let mut growth: usize = 0;
    for (column, times) in predicate.column_refs_counts() {
        let Some(at) = projection.schema.maybe_index_of_column(column) else { continue };
        let Some(expr) = projection.expr.get(at) else { continue };
        growth = growth.saturating_add(times.saturating_mul(parts(expr)? - 1));
    }
    Ok(growth)
}

/// The number of parts of an expression, at least one.
fn parts(expr: &Expr) -> Result<usize> {
    let mut parts: usize = 0;
    expr.apply(|part| {
        parts += usize::from(!matches!(part, Expr::Alias(_)));
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(parts.max(1))
}

/// DataFusion's physical rule, over plans without projections that stand for very large expressions.
struct OfSmallProjections(Rule);

impl fmt::Debug for OfSmallProjections {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

impl PhysicalOptimizerRule for OfSmallProjections {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let mut most = 0;
        sizes_of(&plan, &mut most)?;
        match most > MAX_GROWTH {
            true => Ok(plan),
            false => self.0.optimize(plan, config),
        }
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}

/// The size of what each column of a plan stands for, in terms of the columns below the projections; `most` becomes the greatest size
/// in the plan.
fn sizes_of(plan: &Arc<dyn ExecutionPlan>, most: &mut usize) -> Result<Vec<usize>> {
    let mut below = Vec::new();
    for child in plan.children() {
        below = sizes_of(child, most)?;
    }
    let columns = plan.schema().fields().len();

    let Some(projection) = plan.downcast_ref::<ProjectionExec>() else {
        // Nodes such as filters and exchanges have the columns of their input.
        let keeps = plan.children().len() == 1 && below.len() == columns;
        return Ok(if keeps { below } else { vec![1; columns] });
    };
    let mut sizes = Vec::with_capacity(columns);
    for projected in projection.expr() {
        let size = size_of(&projected.expr, &below)?;
        *most = size.max(*most);
        sizes.push(size);
    }
    Ok(sizes)
}

/// The size of an expression whose columns have the sizes `below`.
fn size_of(expr: &Arc<dyn PhysicalExpr>, below: &[usize]) -> Result<usize> {
    let mut size: usize = 0;
    expr.apply(|part| {
        let own = match part.downcast_ref::<PhysicalColumn>() {
            Some(column) => below.get(column.index()).copied().unwrap_or(1),
            None => 1,
        };
        size = size.saturating_add(own);
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(size)
}

#[cfg(test)]
mod tests {
    use datafusion::execution::SessionStateBuilder;
    use datafusion::logical_expr::{LogicalPlanBuilder, col, lit};
    use datafusion::prelude::SessionContext;

    use super::*;

    fn nested(levels: usize) -> LogicalPlan {
        let mut plan = LogicalPlanBuilder::empty(true).project([lit(1).alias("x")]).unwrap();
        for _ in 0..levels {
            plan = plan.project([(col("x") + col("x")).alias("x")]).unwrap();
        }
        plan.build().unwrap()
    }

    /// A sum of so many terms, as flat as can be.
    fn sum_of(term: Expr, terms: usize) -> Expr {
        match terms {
            0 | 1 => term,
            terms => sum_of(term.clone(), terms / 2) + sum_of(term, terms - terms / 2),
        }
    }

    #[test]
    fn filters_that_would_double_too_often_stay() {
        for projected in [col("x"), col("x") + lit(1)] {
            let plan = LogicalPlanBuilder::from(nested(0)).project([projected.alias("y")]).unwrap();
            let LogicalPlan::Projection(projection) = plan.build().unwrap() else { panic!("no projection") };
            let many = (0..200).fold(col("y").gt(lit(1)), |all, at| all.or(col("y").eq(lit(at))));
            assert!(growth(&many, &projection).unwrap() <= MAX_GROWTH);
        }

        let sum = sum_of(col("x"), MAX_GROWTH);
        let plan = LogicalPlanBuilder::from(nested(0)).project([sum.alias("y")]).unwrap();
        let LogicalPlan::Projection(projection) = plan.build().unwrap() else { panic!("no projection") };
        assert!(growth(&col("y").gt(lit(1)), &projection).unwrap() > MAX_GROWTH);
    }

    #[tokio::test]
    async fn sizes_double_with_each_projection() {
        let mut rules = crate::logical_rules();
        rules.clear();
        let state = SessionStateBuilder::new().with_default_features().with_optimizer_rules(rules);
        let state = state.with_physical_optimizer_rules(Vec::new()).build();
        let context = SessionContext::new_with_state(state);
        for (levels, expected) in [(1, 3), (2, 7), (10, 2047), (70, usize::MAX)] {
            let plan = context.state().query_planner().create_physical_plan(&nested(levels), &context.state()).await;
            let mut most = 0;
            sizes_of(&plan.unwrap(), &mut most).unwrap();
            assert_eq!(most, expected, "{levels}");
        }
    }
}
