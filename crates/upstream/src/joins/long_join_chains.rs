//! Leaves long chains of joins as they are; see `docs/datafusion-workarounds.md`.
//!
//! DataFusion 55.2 looks for keys of cross joins by taking all inner joins apart and joining them again, once for each join
//! below another: the time grows with the cube of their number. Where all joins have keys there is nothing to find.

use std::fmt::{self, Formatter};
use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::logical_expr::{Join, JoinType, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use super::null_equal_keys::without_null_equal;

/// The name of DataFusion's rule.
const NAME: &str = "eliminate_cross_join";
/// Joins of a statement up to which the rule takes less than a tenth of a second.
const MAX_JOINS: usize = 24;

/// Puts the rule that leaves long chains alone in the place of DataFusion's.
pub(crate) fn replace(rules: &mut [Arc<dyn OptimizerRule + Send + Sync>]) {
    for rule in rules.iter_mut().filter(|rule| rule.name() == NAME) {
        *rule = Arc::new(OfCrossJoins(Arc::clone(rule)));
    }
}

/// DataFusion's rule, where there are cross joins or few joins.
struct OfCrossJoins(Arc<dyn OptimizerRule + Send + Sync>);

impl fmt::Debug for OfCrossJoins {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

impl OptimizerRule for OfCrossJoins {
    fn name(&self) -> &str {
        NAME
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match is_long_chain(&plan)? {
            true => Ok(Transformed::no(plan)),
            false => without_null_equal(plan, |plan| self.0.rewrite(plan, config)),
        }
    }
}

/// Whether a plan has many joins, none of which is a cross join.
fn is_long_chain(plan: &LogicalPlan) -> Result<bool> {
    let (mut joins, mut has_cross_join) = (0, false);
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Join(Join { join_type, on, .. }) = node {
            joins += 1;
            has_cross_join |= *join_type == JoinType::Inner && on.is_empty();
        }
        Ok(if has_cross_join { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(joins > MAX_JOINS && !has_cross_join)
}

#[cfg(test)]
mod tests {
    use datafusion::common::plan_err;
    use datafusion::logical_expr::{LogicalPlanBuilder, col, lit};
    use datafusion::optimizer::OptimizerContext;

    use super::*;

    /// Stands for DataFusion's rule, and fails where it is applied.
    #[derive(Debug)]
    struct Applied;

    impl OptimizerRule for Applied {
        fn name(&self) -> &str {
            NAME
        }

        fn rewrite(&self, _: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
            plan_err!("it was applied")
        }
    }

    fn is_applied(joins: usize, cross_joins: usize) -> bool {
        let table = |at: usize| {
            let rows = LogicalPlanBuilder::values(vec![vec![lit(1)]]).unwrap();
            rows.project(vec![col("column1").alias(format!("x{at}"))]).unwrap().build().unwrap()
        };
        let mut plan = LogicalPlanBuilder::from(table(0));
        for at in 1..=joins {
            let keys = (vec![format!("x{}", at - 1)], vec![format!("x{at}")]);
            plan = plan.join(table(at), JoinType::Inner, keys, None).unwrap();
        }
        for at in 0..cross_joins {
            plan = plan.cross_join(table(1_000 + at)).unwrap();
        }
        let mut rules: Vec<Arc<dyn OptimizerRule + Send + Sync>> = vec![Arc::new(Applied)];
        replace(&mut rules);
        rules[0].rewrite(plan.build().unwrap(), &OptimizerContext::new()).is_err()
    }

    #[test]
    fn only_long_chains_with_keys_are_left_alone() {
        assert!(is_applied(2, 0) && is_applied(MAX_JOINS, 0));
        assert!(!is_applied(MAX_JOINS + 1, 0));
        assert!(is_applied(MAX_JOINS + 1, 1));
    }
}
