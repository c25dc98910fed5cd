//! Logical rule that places the nodes that fill gaps.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, ScalarValue, internal_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Between, BinaryExpr, ScalarFunction};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Aggregate, Cast, Expr, Extension, Filter, LogicalPlan, Operator, ScalarUDF, TryCast};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use tidetable_functions::{GAPFILL, INTERPOLATE, LOCF, TimeGrid};

use crate::gapfill::node::{Fill, FillKind, GapFill, Grid};

type LogicalRule = Arc<dyn OptimizerRule + Send + Sync>;

/// Inserts the rule: bounds are constants once expressions are simplified, and filters stand above scans until they are pushed down.
pub(crate) fn insert(rules: &mut Vec<LogicalRule>) {
    let simplified = rules.iter().position(|rule| rule.name() == "simplify_expressions").map_or(0, |at| at + 1);
    rules.insert(simplified, Arc::new(FillGaps));
}

#[derive(Debug)]
struct FillGaps;

impl OptimizerRule for FillGaps {
    fn name(&self) -> &str {
        "fill_gaps"
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if !is_asked(&plan)? {
            return Ok(Transformed::no(plan));
        }
        let Some(bucket) = config.function_registry().and_then(|registry| registry.udf("time_bucket").ok()) else {
            return Ok(Transformed::no(plan));
        };
        plan.transform_up_with_subqueries(|node| match node {
            LogicalPlan::Aggregate(aggregate) => with_gaps(aggregate, &bucket),
            node => with_fills(node),
        })
    }
}

/// Whether a plan has one of the functions.
fn is_asked(plan: &LogicalPlan) -> Result<bool> {
    let mut is_asked = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            is_asked |= expr.exists(|expr| {
                Ok(matches!(expr, Expr::ScalarFunction(call) if [GAPFILL, LOCF, INTERPOLATE].contains(&call.func.name())))
            })?;
            Ok(if is_asked { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(is_asked)
}

/// The call of `name` that `expr` is, below an alias.
fn call_of<'a>(expr: &'a Expr, name: &str) -> Option<&'a ScalarFunction> {
    match expr {
        Expr::Alias(alias) => call_of(&alias.expr, name),
        Expr::ScalarFunction(call) if call.func.name() == name => Some(call),
        _ => None,
    }
}

/// Puts a node above an aggregation that groups by `time_bucket_gapfill`.
fn with_gaps(aggregate: Aggregate, bucket: &Arc<ScalarUDF>) -> Result<Transformed<LogicalPlan>> {
    let Some((at, call)) = aggregate
        .group_expr
        .iter()
        .enumerate()
        .find_map(|(at, key)| call_of(key, GAPFILL).map(|call| (at, call.clone())))
    else {
        if aggregate.group_expr.iter().any(|key| matches!(key, Expr::GroupingSet(sets) if sets.distinct_expr().iter().any(|key| call_of(key, GAPFILL).is_some()))) {
            return plan_err!("{GAPFILL} is a key of a plain GROUP BY, not of grouping sets");
        }
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    };
    if aggregate.group_expr.iter().filter(|key| call_of(key, GAPFILL).is_some()).count() > 1 {
        return plan_err!("a query groups by one {GAPFILL}");
    }

    let [width, times, options @ ..] = call.args.as_slice() else { return internal_err!("{GAPFILL} takes times") };
    let grid = grid(width, times, options, &aggregate.input)?;
    let columns: Vec<Expr> = aggregate.schema.iter().map(|field| Expr::Column(Column::from(field))).collect();
    let Some(Expr::Column(name)) = columns.get(at).cloned() else { return internal_err!("a group without its key") };

    let mut args = vec![width.clone(), times.clone()];
    args.extend(grid.zone.iter().map(|zone| Expr::Literal(ScalarValue::Utf8(Some(zone.clone())), None)));
    let mut keys = aggregate.group_expr.clone();
    if let Some(key) = keys.get_mut(at) {
        let call = ScalarFunction { func: Arc::clone(bucket), args };
        *key = Expr::ScalarFunction(call).alias_qualified(name.relation.clone(), name.name.clone());
    }
    let others = columns.iter().take(keys.len()).enumerate().filter(|(key, _)| *key != at);
    let others: Vec<Expr> = others.map(|(_, column)| column.clone()).collect();
    let buckets = LogicalPlan::Aggregate(Aggregate::try_new(aggregate.input, keys, aggregate.aggr_expr)?);
    let node = GapFill::try_new(buckets, grid, Expr::Column(name), others, Vec::new())?;
    Ok(Transformed::yes(LogicalPlan::Extension(Extension { node: Arc::new(node) })))
}

/// The grid of the arguments, or of the filter below.
fn grid(width: &Expr, times: &Expr, options: &[Expr], input: &LogicalPlan) -> Result<Grid> {
    let constant = |expr: &Expr| match expr {
        Expr::Literal(value, _) => Ok(value.clone()),
        other => plan_err!("{GAPFILL}: {other} is not a constant"),
    };
    let (mut zone, mut bounds) = (None, Vec::new());
    for option in options {
        match constant(option)? {
            ScalarValue::Utf8(name) => zone = name,
            time => bounds.push(micros(&time)),
        }
    }
    let width = constant(width)?;
    let Some(_) = TimeGrid::new(&width, zone.as_deref())? else { return plan_err!("{GAPFILL}: the width is NULL") };

    let (start, end) = match bounds.as_slice() {
        [] => bounds_of_filter(times, input),
        [start, end] => (*start, *end),
        _ => return plan_err!("{GAPFILL} takes a start and an end together"),
    };
    Ok(Grid { width, zone, start, end })
}

fn micros(time: &ScalarValue) -> Option<i64> {
    match time.cast_to(&DataType::Timestamp(TimeUnit::Microsecond, None)) {
        Ok(ScalarValue::TimestampMicrosecond(time, _)) => time,
        _ => None,
    }
}

/// `expr` without casts.
fn plain(expr: &Expr) -> &Expr {
    match expr {
        Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => plain(expr),
        Expr::Alias(alias) => plain(&alias.expr),
        expr => expr,
    }
}

/// The first time of the filters right below, and the time after their last.
fn bounds_of_filter(times: &Expr, input: &LogicalPlan) -> (Option<i64>, Option<i64>) {
    let (mut start, mut end) = (None::<i64>, None::<i64>);
    let mut least = |time: i64| start = Some(start.map_or(time, |start| start.max(time)));
    let mut last = |time: i64| end = Some(end.map_or(time, |end| end.min(time)));
    let constant = |expr: &Expr| match plain(expr) {
        Expr::Literal(value, _) => micros(value),
        _ => None,
    };

    let mut input = input;
    while let LogicalPlan::Filter(Filter { predicate, input: below, .. }) = input {
        for part in split_conjunction(predicate) {
            match part {
                Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                    let (op, bound) = match (plain(left) == plain(times), plain(right) == plain(times)) {
                        (true, false) => (Some(*op), constant(right)),
                        (false, true) => (op.swap(), constant(left)),
                        _ => continue,
                    };
                    match (op, bound) {
                        (Some(Operator::GtEq), Some(bound)) => least(bound),
                        (Some(Operator::Gt), Some(bound)) => least(bound.saturating_add(1)),
                        (Some(Operator::Lt), Some(bound)) => last(bound),
                        (Some(Operator::LtEq), Some(bound)) => last(bound.saturating_add(1)),
                        _ => {}
                    }
                }
                Expr::Between(Between { expr, negated: false, low, high }) if plain(expr) == plain(times) => {
                    constant(low).into_iter().for_each(&mut least);
                    constant(high).into_iter().for_each(|high| last(high.saturating_add(1)));
                }
                _ => {}
            }
        }
        input = below;
    }
    (start, end)
}

/// Replaces `locf` and `interpolate` in a node above one that fills gaps.
fn with_fills(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let is_fill = |expr: &Expr| call_of(expr, LOCF).is_some() || call_of(expr, INTERPOLATE).is_some();
    let has_fill = |expr: &Expr| expr.exists(|expr| Ok(is_fill(expr)));
    let mut asked = false;
    for expr in node.expressions() {
        asked |= has_fill(&expr)?;
    }
    if !asked {
        return Ok(Transformed::no(node));
    }
    let inputs = node.inputs();
    let [input] = inputs.as_slice() else { return misplaced() };
    let Some(gaps) = gap_fill(input) else { return misplaced() };

    let mut more: Vec<(Fill, Expr)> = Vec::new();
    let names = NamePreserver::new(&node);
    let mut exprs = Vec::new();
    for expr in node.expressions() {
        let name = names.save(&expr);
        let replaced = expr.transform_up(|expr| {
            let (kind, value) = match (&expr, call_of(&expr, LOCF), call_of(&expr, INTERPOLATE)) {
                (Expr::ScalarFunction(_), Some(call), _) => (FillKind::Last, call.args.first().cloned()),
                (Expr::ScalarFunction(_), _, Some(call)) => (FillKind::Line, call.args.first().cloned()),
                _ => return Ok(Transformed::no(expr)),
            };
            let Some(value) = value else { return internal_err!("a fill of nothing") };
            let name = expr.schema_name().to_string();
            let is_known = gaps.fills.iter().chain(more.iter().map(|(fill, _)| fill)).any(|fill| fill.name == name);
            if !is_known {
                more.push((Fill { kind, name: name.clone() }, value));
            }
            Ok(Transformed::yes(Expr::Column(Column::new_unqualified(name))))
        })?;
        exprs.push(name.restore(replaced.data));
    }
    let input = extended(input, more)?;
    Ok(Transformed::yes(node.with_new_exprs(exprs, vec![input])?))
}

fn misplaced<T>() -> Result<T> {
    plan_err!("{LOCF} and {INTERPOLATE} fill gaps of values in a query that groups by {GAPFILL}")
}

/// The node that fills gaps below filters.
fn gap_fill(plan: &LogicalPlan) -> Option<&GapFill> {
    match plan {
        LogicalPlan::Filter(filter) => gap_fill(&filter.input),
        LogicalPlan::Extension(extension) => extension.node.as_any().downcast_ref(),
        _ => None,
    }
}

/// `plan` with more fills in its node that fills gaps.
fn extended(plan: &LogicalPlan, more: Vec<(Fill, Expr)>) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Filter(filter) => {
            let input = Arc::new(extended(&filter.input, more)?);
            Ok(LogicalPlan::Filter(Filter::try_new(filter.predicate.clone(), input)?))
        }
        plan => match gap_fill(plan) {
            Some(gaps) => Ok(LogicalPlan::Extension(Extension { node: Arc::new(gaps.with_fills(more)?) })),
            None => misplaced(),
        },
    }
}
