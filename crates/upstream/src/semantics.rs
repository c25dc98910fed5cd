//! Rewrites typed expressions whose meaning in DataFusion 55.2 differs from PostgreSQL and DuckDB: text is parsed as a
//! time in more forms, times of several units are compared without overflow, casts of fractions to integers round, casts
//! of decimals give the nearest float, and integer overflow is an error.

use std::str::FromStr;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, ExprSchemable, cast};
use tidetable_functions::{
    as_nanos, checked_arithmetic, exact_float_cast, is_text, local_to_instant, parse_time_casts, rounding_cast,
};

/// Replaces parts of `expr`, which DataFusion has coerced, by the functions of `tidetable_functions`.
///
/// # Errors
/// If a constant text is not a time.
pub(crate) fn with_own_semantics(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    // Casts inserted by coercion.
    let expr = expr.map_children(|child| read(child, schema))?;
    let Transformed { data, transformed, .. } = expr;
    let Transformed { data, transformed: was_read, .. } = read(data, schema)?;
    let data = match data {
        cast @ (Expr::Cast(_) | Expr::TryCast(_)) => rounding_cast(cast, schema),
        other => checked_arithmetic(other, schema),
    };
    let is_ours = matches!(data, Expr::ScalarFunction(_));
    Ok(Transformed::new_transformed(data, transformed || was_read || is_ours))
}

fn read(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expr {
        Expr::Cast(_) | Expr::TryCast(_) => {
            let expr = exact_float_cast(local_to_instant(parse_time_casts(expr, schema)?, schema), schema);
            let changed = matches!(expr, Expr::ScalarFunction(_));
            Ok(Transformed::new_transformed(expr, changed))
        }
        expr => Ok(Transformed::no(expr)),
    }
}

/// Casts compared operands to the unit and zone of the times among them; DataFusion would cast text and dates to
/// nanoseconds, which end in 2262.
pub(crate) fn compared_times(exprs: &mut [&mut Expr], types: &[DataType]) -> bool {
    let Some(common) = common_time(types) else { return false };
    let mut changed = false;
    for (expr, kind) in exprs.iter_mut().zip(types) {
        if *kind == common || !(is_text(kind) || matches!(kind, DataType::Date32 | DataType::Timestamp(..))) {
            continue;
        }
        let is_coarser = matches!(kind, DataType::Timestamp(unit, _) if *unit != TimeUnit::Nanosecond);
        let mut value = std::mem::take(*expr);
        if is_coarser && matches!(common, DataType::Timestamp(TimeUnit::Nanosecond, _)) {
            value = as_nanos(value);
        }
        **expr = cast(value, common.clone());
        changed = true;
    }
    changed
}

/// The finest unit and the first zone of the times among `types`; `None` without times, or with types not comparable to
/// times.
fn common_time(types: &[DataType]) -> Option<DataType> {
    let mut common: Option<(TimeUnit, Option<std::sync::Arc<str>>)> = None;
    for kind in types {
        match kind {
            DataType::Timestamp(unit, zone) => {
                common = Some(match common {
                    None => (*unit, zone.clone()),
                    Some((known, own)) => (known.max(*unit), own.or_else(|| zone.clone())),
                });
            }
            DataType::Date32 | DataType::Null => {}
            text if is_text(text) => {}
            _ => return None,
        }
    }
    // Text may have any fraction of a second; columns are in microseconds.
    common.map(|(unit, zone)| DataType::Timestamp(unit.max(TimeUnit::Microsecond), zone))
}

/// Rewrites functions to casts: `arrow_cast`, so that it converts as casts do, and `to_timestamp(text)` and
/// `to_timestamp(seconds)` to microseconds, because DataFusion's nanoseconds end in 2262.
pub(crate) fn as_cast(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = &expr else { return Transformed::no(expr) };
    let micros = DataType::Timestamp(TimeUnit::Microsecond, None);

    match (func.name(), args.as_slice()) {
        ("arrow_cast", [value, Expr::Literal(kind, _)]) => {
            match kind.try_as_str().flatten().and_then(|kind| DataType::from_str(kind).ok()) {
                Some(kind) => Transformed::yes(cast(value.clone(), kind)),
                None => Transformed::no(expr),
            }
        }
        ("to_timestamp", [only]) => match only.get_type(schema) {
            Ok(text) if is_text(&text) => Transformed::yes(cast(only.clone(), micros)),
            Ok(whole) if whole.is_integer() => {
                let seconds = cast(cast(only.clone(), DataType::Int64), DataType::Timestamp(TimeUnit::Second, None));
                Transformed::yes(cast(seconds, micros))
            }
            _ => Transformed::no(expr),
        },
        _ => Transformed::no(expr),
    }
}
