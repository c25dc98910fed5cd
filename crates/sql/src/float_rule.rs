//! Decimals that meet floats become floats.
//!
//! `kwh = 17.4` over a column of floats asks for the float nearest to 17.4, as it does in PostgreSQL, DuckDB and GoogleSQL. The
//! engine (DataFusion 55.2) would make decimals of the floats instead, cut after 15 digits: of 17.4 that is
//! 17.399999999999999, and of 1e300 it is an error.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::{NamePreserver, coerce_plan_expr_for_schema};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, Subquery, Union, cast, lit};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::Analyzer;
use datafusion::scalar::ScalarValue;

/// The engine's rules, after [`DecimalsAsFloats`]: it looks at types before they are brought together.
pub(crate) fn analyzer_rules() -> Vec<Arc<dyn AnalyzerRule + Send + Sync>> {
    let mut rules = Analyzer::new().rules;
    let place = rules.iter().position(|rule| rule.name() == "type_coercion").unwrap_or(rules.len());
    rules.insert(place, Arc::new(DecimalsAsFloats));
    rules
}

/// Casts decimals to floats wherever the two meet.
#[derive(Debug)]
struct DecimalsAsFloats;

impl AnalyzerRule for DecimalsAsFloats {
    fn name(&self) -> &str {
        "decimals_as_floats"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(of_plan)?.data)
    }
}

fn of_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = &plan {
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
    }
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        Ok(in_expression(expr, &schema)?.update_data(|expr| name.restore(expr)))
    })?
    .transform_data(between_inputs)?
    .map_data(LogicalPlan::recompute_schema)
}

/// Columns of two inputs that are matched, or follow one another.
fn between_inputs(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match plan {
        LogicalPlan::Join(mut join) => {
            let mut changed = false;
            for (left, right) in &mut join.on {
                let types = [left.get_type(join.left.schema())?, right.get_type(join.right.schema())?];
                changed |= meet(&mut [left, right], &types);
            }
            Ok(Transformed::new_transformed(LogicalPlan::Join(join), changed))
        }
        LogicalPlan::Union(union) => of_union(union),
        plan => Ok(Transformed::no(plan)),
    }
}

fn of_union(union: Union) -> Result<Transformed<LogicalPlan>> {
    let kind = |input: &Arc<LogicalPlan>, at: usize| Some(input.schema().fields().get(at)?.data_type().clone());
    let floats: Vec<Option<DataType>> = (0..union.schema.fields().len())
        .map(|at| common_float(&union.inputs.iter().filter_map(|input| kind(input, at)).collect::<Vec<_>>()))
        .collect();
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

/// `schema` with floats for those of its decimals that have one in `floats`.
fn with_floats(schema: &DFSchema, floats: &[Option<DataType>]) -> Result<DFSchema> {
    let fields = schema.iter().zip(floats).map(|((relation, field), float)| {
        let float = float.as_ref().filter(|_| field.data_type().is_decimal());
        let field = float
            .map_or_else(|| Arc::clone(field), |float| Arc::new(field.as_ref().clone().with_data_type(float.clone())));
        (relation.cloned(), field)
    });
    DFSchema::new_with_metadata(fields.collect(), schema.metadata().clone())
}

/// `expr` over columns of `schema`, with floats for the decimals that meet floats.
///
/// # Errors
/// Those of the engine.
pub(crate) fn in_expression(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| one(expr, schema))
}

fn one(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let changed = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => alike(&mut [left, right], schema),
        Expr::Between(between) => alike(&mut [&mut between.expr, &mut between.low, &mut between.high], schema),
        Expr::InList(list) => {
            let mut members: Vec<&mut Expr> = list.list.iter_mut().collect();
            members.push(&mut list.expr);
            alike(&mut members, schema)
        }
        Expr::Case(case) => {
            let (mut compared, mut given): (Vec<&mut Expr>, Vec<&mut Expr>) =
                case.when_then_expr.iter_mut().map(|(when, then)| (when.as_mut(), then.as_mut())).unzip();
            given.extend(case.else_expr.as_deref_mut());
            let given = alike(&mut given, schema);
            match case.expr.as_deref_mut() {
                Some(base) => {
                    compared.push(base);
                    alike(&mut compared, schema) | given
                }
                None => given,
            }
        }
        Expr::ScalarFunction(function) => alike(&mut function.args.iter_mut().collect::<Vec<_>>(), schema),
        Expr::InSubquery(inside) => with_subquery(&mut inside.expr, &mut inside.subquery, schema)?,
        Expr::SetComparison(compared) => with_subquery(&mut compared.expr, &mut compared.subquery, schema)?,
        _ => false,
    };
    Ok(Transformed::new_transformed(expr, changed))
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn with_subquery(expr: &mut Expr, subquery: &mut Subquery, schema: &DFSchema) -> Result<bool> {
    let given = subquery.subquery.schema();
    let (Ok(own), Some(field)) = (expr.get_type(schema), given.fields().first()) else { return Ok(false) };
    let Some(float) = common_float(&[own.clone(), field.data_type().clone()]) else { return Ok(false) };
    if own.is_decimal() {
        as_float(expr, &float);
    } else {
        let wanted = with_floats(given, &[Some(float)])?;
        let plan = coerce_plan_expr_for_schema(subquery.subquery.as_ref().clone(), &wanted)?;
        subquery.subquery = Arc::new(plan);
    }
    Ok(true)
}

/// Expressions whose values meet. What has no type yet is for the engine to complain of.
fn alike(exprs: &mut [&mut Expr], schema: &DFSchema) -> bool {
    let types: Result<Vec<DataType>> = exprs.iter().map(|expr| expr.get_type(schema)).collect();
    types.is_ok_and(|types| meet(exprs, &types))
}

fn meet(exprs: &mut [&mut Expr], types: &[DataType]) -> bool {
    let Some(float) = common_float(types) else { return false };
    let decimals = exprs.iter_mut().zip(types).filter(|(_, kind)| kind.is_decimal());
    decimals.for_each(|(expr, _)| as_float(expr, &float));
    true
}

/// The float that decimals among `types` become: the widest of those they meet. `None` if there is nothing to be done.
fn common_float(types: &[DataType]) -> Option<DataType> {
    if !types.iter().any(DataType::is_decimal) {
        return None;
    }
    types.iter().filter(|kind| kind.is_floating()).max_by_key(|kind| kind.primitive_width()).cloned()
}

/// A literal becomes the float nearest to what was written.
fn as_float(expr: &mut Expr, float: &DataType) {
    let written = match expr {
        Expr::Literal(value, _) if *float == DataType::Float64 => digits(value).and_then(|text| text.parse().ok()),
        _ => None,
    };
    *expr = match written {
        Some(value) => lit(ScalarValue::Float64(Some(value))),
        None => cast(std::mem::take(expr), float.clone()),
    };
}

fn digits(value: &ScalarValue) -> Option<String> {
    Some(match value {
        ScalarValue::Decimal32(Some(units), _, scale) => format!("{units}e{}", -i16::from(*scale)),
        ScalarValue::Decimal64(Some(units), _, scale) => format!("{units}e{}", -i16::from(*scale)),
        ScalarValue::Decimal128(Some(units), _, scale) => format!("{units}e{}", -i16::from(*scale)),
        ScalarValue::Decimal256(Some(units), _, scale) => format!("{units}e{}", -i16::from(*scale)),
        _ => return None,
    })
}
