//! Optimizer rule: makes filters of many conditions shallow.
//!
//! DataFusion joins the conditions of a filter from the left, into a tree as deep as there are conditions. Its evaluation
//! recurses, on the stack of a thread of the runtime.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::physical_expr::split_conjunction;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::{FilterExec, FilterExecBuilder};

use tidetable_upstream::rules::node_rule::{Rule, node_rule};

use crate::conjunction::conjunction;

/// A filter with fewer conditions than these is left as it is.
const MIN_CONDITIONS: usize = 32;

/// The rule that makes a balanced tree of the conditions of a long filter.
pub(crate) fn balanced_filters() -> Rule {
    node_rule("balanced_filters", balanced)
}

fn balanced(plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(filter) = plan.downcast_ref::<FilterExec>() else { return Ok(None) };
    let conditions: Vec<_> = split_conjunction(filter.predicate()).into_iter().map(Arc::clone).collect();
    if conditions.len() < MIN_CONDITIONS {
        return Ok(None);
    }
    let Some(predicate) = conjunction(conditions) else { return Ok(None) };
    let filter = FilterExecBuilder::from(filter).with_predicate(predicate).build()?;
    Ok(Some(Arc::new(filter)))
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::logical_expr::Operator;
    use datafusion::physical_expr::expressions::{BinaryExpr, col, lit};
    use datafusion::physical_plan::PhysicalExpr;
    use datafusion::physical_plan::empty::EmptyExec;

    use super::*;

    fn depth(expr: &Arc<dyn PhysicalExpr>) -> usize {
        1 + expr.children().into_iter().map(depth).max().unwrap_or_default()
    }

    #[test]
    fn many_conditions_are_a_shallow_tree_in_order() {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, true)]));
        let condition = |value: i32| -> Arc<dyn PhysicalExpr> {
            Arc::new(BinaryExpr::new(col("a", &schema).unwrap(), Operator::NotEq, lit(value)))
        };
        let chain = |conditions: i32| {
            let join = |left, right| Arc::new(BinaryExpr::new(left, Operator::And, right)) as Arc<dyn PhysicalExpr>;
            let predicate = (0..conditions).map(condition).reduce(join).unwrap();
            let input = Arc::new(EmptyExec::new(Arc::clone(&schema)));
            Arc::new(FilterExec::try_new(predicate, input).unwrap()) as Arc<dyn ExecutionPlan>
        };
        assert!(balanced(&chain(31)).unwrap().is_none());
        let plan = balanced(&chain(1_000)).unwrap().unwrap();
        let predicate = plan.downcast_ref::<FilterExec>().unwrap().predicate();
        assert!(depth(predicate) <= 12, "{}", depth(predicate));
        let found: Vec<String> = split_conjunction(predicate).iter().map(ToString::to_string).collect();
        assert_eq!(found, (0..1_000).map(|value| condition(value).to_string()).collect::<Vec<_>>());
    }
}
