//! Counts the texts that `||` makes: an operator is no function, so it becomes one under a memory limit.

use std::fmt::{self, Formatter};
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF};
use datafusion::optimizer::AnalyzerRule;

use crate::argument_types::is_text;
use crate::chain;
use crate::sized::planning::check_abandoned;

/// Replaces `||` of texts, and long chains of it, by functions whose values are counted. It follows type coercion.
pub(super) struct CountedConcatenations {
    /// Makes a function whose texts are counted of one whose texts are not.
    pub(super) counted: Box<dyn Fn(Arc<ScalarUDF>) -> Arc<ScalarUDF> + Send + Sync>,
}

impl fmt::Debug for CountedConcatenations {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl AnalyzerRule for CountedConcatenations {
    fn name(&self) -> &str {
        "counted_concatenations"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let counted = plan.transform_up_with_subqueries(|plan| self.of_node(plan))?;
        Ok(counted.data)
    }
}

impl CountedConcatenations {
    /// A node whose expressions are counted.
    fn of_node(&self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        check_abandoned()?;
        let names = NamePreserver::new(&plan);
        let schema = merge_schema(&plan.inputs());
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let counted = expr.transform_up(|expr| match expr {
                expr @ Expr::BinaryExpr(BinaryExpr { op: Operator::StringConcat, .. }) => {
                    Ok(self.of_operator(expr, &schema))
                }
                Expr::ScalarFunction(ScalarFunction { func, args }) if chain::concatenates(&func) => {
                    Ok(Transformed::yes(self.call(func, args)))
                }
                other => Ok(Transformed::no(other)),
            })?;
            Ok(counted.update_data(|expr| name.restore(expr)))
        })
    }

    /// `left || right` as a function; lists, and operands whose type is not known here, stay as they are.
    fn of_operator(&self, expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
        match (expr.get_type(schema), expr) {
            (Ok(kind), Expr::BinaryExpr(BinaryExpr { left, right, .. })) if is_text(&kind) => {
                Transformed::yes(self.call(chain::concatenation(kind), vec![*left, *right]))
            }
            (_, expr) => Transformed::no(expr),
        }
    }

    fn call(&self, function: Arc<ScalarUDF>, args: Vec<Expr>) -> Expr {
        Expr::ScalarFunction(ScalarFunction { func: (self.counted)(function), args })
    }
}
