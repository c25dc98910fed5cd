//! Coercion of expressions that combine decimals and floats.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeRewriter};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Alias, Cast, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::coerce_plan_expr_for_schema;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, Subquery, cast, lit, when};
use datafusion::optimizer::analyzer::type_coercion::TypeCoercionRewriter;
use datafusion::scalar::ScalarValue;
use tidetable_functions::check_abandoned;
use tidetable_functions::{COMPARABLE_WITH, ChainBuilder, comparable_type, over_bytes, without_cast_label};

use crate::rounded_decimals::with_literal_places;
use crate::semantics::{as_cast, compared_times, with_own_semantics};

/// Operators from which on a chain is coerced as a whole.
const MIN_CHAIN: usize = 32;

/// Functions that return one of their arguments, or compare them.
const SAME_TYPE_FUNCTIONS: [&str; 6] = ["coalesce", "greatest", "least", "make_array", "nullif", "nvl"];

/// Coerces `expr` over `schema`, casting decimals to floats where both meet.
///
/// # Errors
/// Those of DataFusion.
pub fn coerce_expression(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.rewrite(&mut FloatsFirst { schema, coercion: TypeCoercionRewriter::new(schema) })
}

struct FloatsFirst<'a> {
    schema: &'a DFSchema,
    coercion: TypeCoercionRewriter<'a>,
}

impl FloatsFirst<'_> {
    /// Coerces a chain of operators from its left end, as bottom-up coercion does, but with a placeholder for what is done.
    fn coerce_chain(&mut self, chain: Expr) -> Result<Expr> {
        let mut links = Vec::new();
        let mut first = chain;
        while is_link(&first)
            && let Expr::BinaryExpr(BinaryExpr { left, op, right }) = first
        {
            links.push((op, *right));
            first = *left;
        }

        let first = coerce_expression(first, self.schema)?.data;
        let kind = first.get_type(self.schema)?;
        let mut chain = ChainBuilder::new(first, kind);
        for (op, right) in links.into_iter().rev() {
            check_abandoned()?;
            let right = coerce_expression(right, self.schema)?.data;
            let placeholder = placeholder(chain.data_type());
            let link = Expr::BinaryExpr(BinaryExpr::new(Box::new(placeholder.clone()), op, Box::new(right)));
            let link = self.f_up(link)?.data;
            let kind = link.get_type(self.schema)?;
            chain.add(link, kind, &placeholder)?;
        }
        Ok(chain.build())
    }
}

/// Whether an expression may be one of several in a chain.
fn is_link(expr: &Expr) -> bool {
    use Operator::{
        BitwiseAnd, BitwiseOr, BitwiseShiftLeft, BitwiseShiftRight, BitwiseXor, Divide, Minus, Modulo, Multiply, Plus,
        StringConcat,
    };
    let Expr::BinaryExpr(BinaryExpr { op, .. }) = expr else { return false };
    matches!(
        op,
        Plus | Minus
            | Multiply
            | Divide
            | Modulo
            | StringConcat
            | BitwiseAnd
            | BitwiseOr
            | BitwiseXor
            | BitwiseShiftLeft
            | BitwiseShiftRight
    )
}

/// Whether an expression is a chain of at least [`MIN_CHAIN`] operators.
fn is_long_chain(expr: &Expr) -> bool {
    let mut at = expr;
    for _ in 0..MIN_CHAIN {
        match at {
            Expr::BinaryExpr(BinaryExpr { left, .. }) if is_link(at) => at = left,
            _ => return false,
        }
    }
    true
}

/// A value of a type, which stands for an expression that is coerced.
fn placeholder(kind: &DataType) -> Expr {
    Expr::ScalarVariable(Arc::new(Field::new("chain", kind.clone(), true)), vec!["chain".to_owned()])
}

impl TreeNodeRewriter for FloatsFirst<'_> {
    type Node = Expr;

    fn f_down(&mut self, expr: Expr) -> Result<Transformed<Expr>> {
        if !is_long_chain(&expr) {
            return Ok(Transformed::no(expr));
        }
        Ok(Transformed::new(self.coerce_chain(expr)?, true, TreeNodeRecursion::Jump))
    }

    fn f_up(&mut self, expr: Expr) -> Result<Transformed<Expr>> {
        coerce_node(expr, self.schema)?
            .transform_data(|expr| self.coercion.f_up(expr))?
            .transform_data(|expr| Ok(with_literal_places(expr)))?
            .transform_data(|expr| with_own_semantics(expr, self.schema))
    }
}

/// Coerces one expression, whose own operands are coerced.
fn coerce_node(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (expr, was_labelled) = without_cast_label(expr);
    let expr = as_comparable(expr, schema)?;
    let Transformed { data: mut expr, transformed: was_other, .. } =
        as_case(expr)?.transform_data(|expr| Ok(as_cast(expr, schema)))?;

    expr = over_bytes(expr, schema);

    let changed = match &mut expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(*op) => {
            coerce_compared(&mut [left, right], schema)
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Minus, right }) => {
            coerce_time_difference(left, right, schema)
        }
        Expr::Between(between) => {
            coerce_compared(&mut [&mut between.expr, &mut between.low, &mut between.high], schema)
        }
        Expr::InList(list) => {
            let mut members: Vec<&mut Expr> = list.list.iter_mut().collect();
            members.push(&mut list.expr);
            let changed = coerce_compared(&mut members, schema);
            changed | with_both_zeroes(&list.expr, &mut list.list, schema)
        }
        Expr::Case(case) => {
            let (mut tests, mut given): (Vec<&mut Expr>, Vec<&mut Expr>) =
                case.when_then_expr.iter_mut().map(|(when, then)| (when.as_mut(), then.as_mut())).unzip();
            given.extend(case.else_expr.as_deref_mut());
            let given = coerce_same_type(&mut given, schema);
            match case.expr.as_deref_mut() {
                Some(base) => {
                    let is_float = base.get_type(schema).is_ok_and(|kind| kind == DataType::Float64);
                    tests.push(base);
                    let compared = coerce_compared(&mut tests, schema);
                    if is_float {
                        tests.into_iter().for_each(with_one_zero);
                    }
                    compared | given | is_float
                }
                None => given,
            }
        }
        Expr::ScalarFunction(function) if SAME_TYPE_FUNCTIONS.contains(&function.name()) => {
            coerce_same_type(&mut function.args.iter_mut().collect::<Vec<_>>(), schema)
        }
        Expr::InSubquery(inside) => beside_subquery(&mut inside.expr, &mut inside.subquery, schema)?,
        Expr::SetComparison(compared) => beside_subquery(&mut compared.expr, &mut compared.subquery, schema)?,
        _ => false,
    };

    Ok(Transformed::new_transformed(expr, changed | was_other | was_labelled))
}

/// Rewrites `comparable_with(value, other)` to `value`, or to a cast of it.
fn as_comparable(expr: Expr, schema: &DFSchema) -> Result<Expr> {
    let Expr::ScalarFunction(ScalarFunction { func, mut args }) = expr else { return Ok(expr) };
    if func.name() != COMPARABLE_WITH || args.len() != 2 {
        return Ok(Expr::ScalarFunction(ScalarFunction { func, args }));
    }
    let types = [args[0].get_type(schema)?, args[1].get_type(schema)?];
    let kind = comparable_type(&types[0], &types[1]);
    let mut value = args.swap_remove(0);
    match kind == types[0] {
        true => {}
        false if kind.is_floating() => as_float(&mut value, &kind),
        false => value = cast(value, kind),
    }
    Ok(value)
}

fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn beside_subquery(expr: &mut Expr, subquery: &mut Subquery, schema: &DFSchema) -> Result<bool> {
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

/// Coerces expressions that are compared with each other; returns whether one changed.
fn coerce_compared(exprs: &mut [&mut Expr], schema: &DFSchema) -> bool {
    let types: Result<Vec<DataType>> = exprs.iter().map(|expr| expr.get_type(schema)).collect();
    types.is_ok_and(|types| coerce_to_float(exprs, &types) || compared_times(exprs, &types))
}

/// Coerces the operands of a difference of times; text beside a time is an interval.
fn coerce_time_difference(left: &mut Expr, right: &mut Expr, schema: &DFSchema) -> bool {
    let (Ok(one), Ok(other)) = (left.get_type(schema), right.get_type(schema)) else { return false };
    let is_time = |kind: &DataType| matches!(kind, DataType::Timestamp(..) | DataType::Date32);
    is_time(&one) && is_time(&other) && compared_times(&mut [left, right], &[one, other])
}

/// Coerces expressions that are combined. DataFusion reports those without a type.
fn coerce_same_type(exprs: &mut [&mut Expr], schema: &DFSchema) -> bool {
    let types: Result<Vec<DataType>> = exprs.iter().map(|expr| expr.get_type(schema)).collect();
    types.is_ok_and(|types| coerce_to_float(exprs, &types))
}

pub(crate) fn coerce_to_float(exprs: &mut [&mut Expr], types: &[DataType]) -> bool {
    let Some(float) = common_float(types) else { return false };
    let decimals = exprs.iter_mut().zip(types).filter(|(_, kind)| kind.is_decimal());
    decimals.for_each(|(expr, _)| as_float(expr, &float));
    true
}

/// The widest float among `types`, if there are also decimals to cast.
pub(crate) fn common_float(types: &[DataType]) -> Option<DataType> {
    if !types.iter().any(DataType::is_decimal) {
        return None;
    }
    types.iter().filter(|kind| kind.is_floating()).max_by_key(|kind| kind.primitive_width()).cloned()
}

/// Replaces decimals of `schema` by the floats in `floats`.
pub(crate) fn with_floats(schema: &DFSchema, floats: &[Option<DataType>]) -> Result<DFSchema> {
    let fields = schema.iter().zip(floats).map(|((relation, field), float)| {
        let float = float.as_ref().filter(|_| field.data_type().is_decimal());
        let field = float
            .map_or_else(|| Arc::clone(field), |float| Arc::new(field.as_ref().clone().with_data_type(float.clone())));
        (relation.cloned(), field)
    });
    DFSchema::new_with_metadata(fields.collect(), schema.metadata().clone())
}

/// Rewrites `nvl2(tested, there, absent)` to CASE: DataFusion would coerce all three together, but `tested` is only
/// tested for null.
fn as_case(expr: Expr) -> Result<Transformed<Expr>> {
    match expr {
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == "nvl2" => {
            match <[Expr; 3]>::try_from(args) {
                Ok([tested, there, absent]) => {
                    when(tested.is_not_null(), there).otherwise(absent).map(Transformed::yes)
                }
                Err(args) => Ok(Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args }))),
            }
        }
        expr => Ok(Transformed::no(expr)),
    }
}

/// Adds the other zero to a list: DataFusion distinguishes `0.0` and `-0.0` in lists only.
fn with_both_zeroes(expr: &Expr, list: &mut Vec<Expr>, schema: &DFSchema) -> bool {
    if !list.iter().any(is_zero) || !expr.get_type(schema).is_ok_and(|kind| kind.is_floating()) {
        return false;
    }
    list.extend([lit(0.0_f64), lit(-0.0_f64)]);
    true
}

/// Adds zero to an operand of CASE, which compares bits: `-0.0 + 0.0` is `0.0`.
fn with_one_zero(expr: &mut Expr) {
    *expr = std::mem::take(expr) + lit(0.0_f64);
}

fn is_zero(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => {
            let value = value.cast_to(&DataType::Float64);
            value.is_ok_and(|value| matches!(value, ScalarValue::Float64(Some(value)) if value == 0.0))
        }
        Expr::Cast(Cast { expr, .. }) | Expr::Negative(expr) | Expr::Alias(Alias { expr, .. }) => is_zero(expr),
        _ => false,
    }
}

/// Replaces a literal by the nearest float, if a cast gives another; otherwise casts, which preserves expression names.
fn as_float(expr: &mut Expr, float: &DataType) {
    let exact = match expr {
        Expr::Literal(value, _) if *float == DataType::Float64 => nearest(value),
        _ => None,
    };
    *expr = match exact {
        Some(value) => lit(ScalarValue::Float64(Some(value))),
        None => cast(std::mem::take(expr), float.clone()),
    };
}

/// The float nearest to a literal, if a cast gives another.
fn nearest(value: &ScalarValue) -> Option<f64> {
    let nearest = digits(value)?.parse().ok()?;
    let cast = value.cast_to(&DataType::Float64).ok();
    (cast != Some(ScalarValue::Float64(Some(nearest)))).then_some(nearest)
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
