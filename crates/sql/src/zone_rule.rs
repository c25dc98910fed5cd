//! Casts of local times to times of a zone, `AT TIME ZONE` among them, by the one rule for local times.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

use crate::functions::in_zone;

/// Adds [`LocalTimes`] as the last: casts that bring types together are there by then.
pub(crate) fn insert(rules: &mut Vec<Arc<dyn AnalyzerRule + Send + Sync>>) {
    rules.push(Arc::new(LocalTimes));
}

/// Replaces casts by the function of [`in_zone`].
#[derive(Debug)]
struct LocalTimes;

impl AnalyzerRule for LocalTimes {
    fn name(&self) -> &str {
        "local_times"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        let changed = plan.transform_up_with_subqueries(|plan| {
            let mut schema = merge_schema(&plan.inputs());
            if let LogicalPlan::TableScan(scan) = &plan {
                let own = DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?;
                schema.merge(&own);
            }
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                in_zones(expr, &schema).map(|done| done.update_data(|expr| name.restore(expr)))
            })
        })?;
        Ok(changed.data)
    }
}

/// What is cast, to what, and whether what cannot be becomes null.
fn cast_of(expr: &Expr) -> Option<(&Expr, DataType, bool)> {
    match expr {
        Expr::Cast(cast) => Some((&cast.expr, cast.field.data_type().clone(), false)),
        Expr::TryCast(cast) => Some((&cast.expr, cast.field.data_type().clone(), true)),
        Expr::ScalarFunction(function) => match (function.name(), function.args.as_slice()) {
            (name @ ("arrow_cast" | "arrow_try_cast"), [inner, Expr::Literal(wanted, _)]) => {
                let wanted = wanted.try_as_str().flatten()?.parse().ok()?;
                Some((inner, wanted, name == "arrow_try_cast"))
            }
            _ => None,
        },
        _ => None,
    }
}

/// `expr` over columns of `schema`, with local times read by the one rule.
pub(crate) fn in_zones(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| {
        let Some((inner, wanted, safe)) = cast_of(&expr) else { return Ok(Transformed::no(expr)) };
        if !matches!(wanted, DataType::Timestamp(_, Some(_))) {
            return Ok(Transformed::no(expr));
        }
        Ok(match in_zone(inner, &inner.get_type(schema)?, &wanted, safe) {
            Some(function) => Transformed::yes(function),
            None => Transformed::no(expr),
        })
    })
}
