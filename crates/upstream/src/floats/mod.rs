//! Coerces decimals to floats where both meet; row "Decimals and floats" of `docs/datafusion-workarounds.md`.
//!
//! `kwh = 17.4` over a column of floats compares with the float nearest to 17.4, as in PostgreSQL, DuckDB and
//! GoogleSQL. DataFusion 55.2 coerces the floats to decimals of 15 fractional digits instead: 17.4 becomes
//! 17.399999999999999, and 1e300 is an error.
//!
//! Coercion runs bottom-up, with DataFusion's own rewriter after each node: an expression, or a column of a subquery,
//! that is not coerced yet reports the type of its first operand.

pub(crate) mod coerce;

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::{NamePreserver, coerce_plan_expr_for_schema};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Subquery, Union};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::Analyzer;
use datafusion::optimizer::analyzer::type_coercion::TypeCoercionRewriter;

pub use crate::floats::coerce::coerce_expression;
use crate::floats::coerce::{coerce_to_float, common_float, with_floats};
use crate::semantics::compared_times;

/// DataFusion's analyzer rules, with [`DecimalsAsFloats`] before type coercion.
pub(crate) fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let mut rules = Analyzer::new().rules;
    let place = rules.iter().position(|rule| rule.name() == "type_coercion").unwrap_or(rules.len());
    rules.insert(place, Arc::new(DecimalsAsFloats));
    rules
}

/// The rule that casts decimals to floats wherever the two meet.
#[derive(Debug)]
struct DecimalsAsFloats;

impl AnalyzerRule for DecimalsAsFloats {
    fn name(&self) -> &str {
        "decimals_as_floats"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        in_plan(plan)
    }
}

/// Coerces a plan bottom-up; correlated subqueries after the outer columns that they reference.
fn in_plan(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = match plan {
        LogicalPlan::Join(mut join) => {
            let left = in_plan(Arc::unwrap_or_clone(join.left))?;
            let right = laterals(Arc::unwrap_or_clone(join.right), left.schema())?;
            (join.left, join.right) = (Arc::new(left), Arc::new(in_plan(right)?));
            LogicalPlan::Join(join)
        }
        plan => plan.map_children(|plan| in_plan(plan).map(Transformed::yes))?.data,
    };
    Ok(of_node(plan)?.data)
}

/// Coerces the expressions of a node whose inputs are coerced.
fn of_node(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
    }

    let names = NamePreserver::new(&plan);
    let mut coercion = TypeCoercionRewriter::new(&schema);
    let coerced = |expr: Expr| {
        let name = names.save(&expr);
        let refreshed = expr.transform_up(|expr| with_subquery(expr, &schema))?;
        refreshed
            .transform_data(|expr| coerce_expression(expr, &schema))
            .map(|done| done.update_data(|expr| name.restore(expr)))
    };

    plan.map_expressions(|expr| match expr {
        // The names are those of the keys.
        sets @ Expr::GroupingSet(_) => sets.map_children(&coerced),
        expr => coerced(expr),
    })?
    .transform_data(between_inputs)?
    .map_data(|plan| coercion.coerce_plan(plan))?
    .map_data(LogicalPlan::recompute_schema)
}

/// Coerces the subquery of an expression; outer columns have the types of `schema`.
fn with_subquery(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let subquery = match &mut expr {
        Expr::ScalarSubquery(subquery) => subquery,
        Expr::Exists(exists) => &mut exists.subquery,
        Expr::InSubquery(inside) => &mut inside.subquery,
        Expr::SetComparison(compared) => &mut compared.subquery,
        _ => return Ok(Transformed::no(expr)),
    };
    let plan = with_outer_types(subquery, schema)?;
    subquery.subquery = Arc::new(in_plan(plan)?);
    Ok(Transformed::yes(expr))
}

/// Updates outer column types in lateral subqueries to those of `schema`.
fn laterals(plan: LogicalPlan, schema: &DFSchema) -> Result<LogicalPlan> {
    let changed = plan.transform_up(|plan| match plan {
        LogicalPlan::Subquery(mut subquery) => {
            subquery.subquery = Arc::new(with_outer_types(&mut subquery, schema)?);
            Ok(Transformed::yes(LogicalPlan::Subquery(subquery)))
        }
        plan => Ok(Transformed::no(plan)),
    })?;
    Ok(changed.data)
}

/// The plan of a subquery with outer column types updated to those of `schema`.
fn with_outer_types(subquery: &mut Subquery, schema: &DFSchema) -> Result<LogicalPlan> {
    for outer in &mut subquery.outer_ref_columns {
        *outer = outer_column(std::mem::take(outer), schema).data;
    }
    let plan = subquery.subquery.as_ref().clone().transform_down_with_subqueries(|plan| {
        plan.map_expressions(|expr| expr.transform_up(|expr| Ok(outer_column(expr, schema))))
    })?;
    Ok(plan.data)
}

fn outer_column(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::OuterReferenceColumn(field, column) = expr else { return Transformed::no(expr) };
    let now = schema
        .qualified_field_from_column(&column)
        .ok()
        .map(|(_, now)| now)
        .filter(|now| now.data_type() != field.data_type());
    let now = now.map(|now| Arc::new(field.as_ref().clone().with_data_type(now.data_type().clone())));
    match now {
        Some(now) => Transformed::yes(Expr::OuterReferenceColumn(now, column)),
        None => Transformed::no(Expr::OuterReferenceColumn(field, column)),
    }
}

/// Coerces columns of two inputs: join keys and unions.
fn between_inputs(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Join(mut join) => {
            let mut changed = false;
            for (left, right) in &mut join.on {
                let types = [left.get_type(join.left.schema())?, right.get_type(join.right.schema())?];
                changed |= coerce_to_float(&mut [left, right], &types) || compared_times(&mut [left, right], &types);
            }
            Ok(Transformed::new_transformed(LogicalPlan::Join(join), changed))
        }
        LogicalPlan::Union(union) => of_union(union),
        plan => Ok(Transformed::no(plan)),
    }
}

/// Coerces the inputs of a union to floats, in the columns in which one of them has floats.
fn of_union(union: Union) -> Result<Transformed<LogicalPlan>> {
    let mut floats: Vec<Option<DataType>> = Vec::with_capacity(union.schema.fields().len());
    for at in 0..union.schema.fields().len() {
        let schemas = union.inputs.iter().map(|input| input.schema().as_ref()).chain([union.schema.as_ref()]);
        let kinds = schemas.filter_map(|schema| Some(schema.fields().get(at)?.data_type().clone()));
        floats.push(common_float(&kinds.collect::<Vec<_>>()));
    }
    if floats.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }

    let inputs = union.inputs.into_iter().map(|input| {
        let schema = with_floats(input.schema(), &floats)?;
        coerce_plan_expr_for_schema(Arc::unwrap_or_clone(input), &schema).map(Arc::new)
    });
    let (inputs, schema) = (inputs.collect::<Result<_>>()?, Arc::new(with_floats(&union.schema, &floats)?));
    Ok(Transformed::yes(LogicalPlan::Union(Union { inputs, schema })))
}
