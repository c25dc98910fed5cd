//! Which expressions aggregate rows: a query with one, and without groups, has a row also where it reads none.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArgumentClause, FunctionArguments, GroupByExpr, Query, Select, SelectItem, Visit, Visitor,
};

use crate::system::syntax::function_name;

/// Aggregates by their names, of PostgreSQL and of DataFusion; those of [`FAMILIES`] are not repeated.
const AGGREGATES: [&str; 40] = [
    "any_value",
    "array_agg",
    "array_concat_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "cume_dist",
    "dense_rank",
    "every",
    "first_value",
    "grouping",
    "json_arrayagg",
    "json_objectagg",
    "last_value",
    "listagg",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "nth_value",
    "percent_rank",
    "percentile_cont",
    "percentile_disc",
    "quantile_cont",
    "range_agg",
    "range_intersect_agg",
    "rank",
    "string_agg",
    "sum",
    "var",
    "variance",
    "var_pop",
    "var_samp",
    "xmlagg",
];

/// Aggregates by how their names begin.
const FAMILIES: [&str; 8] =
    ["approx_", "covar", "json_agg", "json_object_agg", "jsonb_agg", "jsonb_object_agg", "regr_", "stddev"];

/// Whether an expression is, or holds, an aggregate of its own level; those of its subqueries are of theirs.
pub(super) fn has_aggregate(expr: &Expr) -> bool {
    expr.visit(&mut Aggregates { queries: 0 }).is_break()
}

/// Whether a SELECT has one row for each group of the rows that it reads, and none if it reads none.
pub(super) fn is_empty_without_rows(select: &Select) -> bool {
    let (keys, modifiers) = match &select.group_by {
        GroupByExpr::Expressions(keys, modifiers) => (keys, modifiers),
        // It depends on the columns.
        GroupByExpr::All(_) => return false,
    };
    if !modifiers.is_empty() || keys.iter().any(is_grouping_set) {
        return false;
    }

    let aggregates = select.having.is_some()
        || select.projection.iter().any(|item| match item {
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => has_aggregate(expr),
            _ => false,
        });
    !keys.is_empty() || !aggregates
}

/// Whether a key of GROUP BY stands for several sets of keys, one of which may be that without keys: it has a row for no rows.
fn is_grouping_set(key: &Expr) -> bool {
    match key {
        Expr::Cube(_) | Expr::Rollup(_) | Expr::GroupingSets(_) => true,
        Expr::Tuple(keys) => keys.is_empty(),
        _ => false,
    }
}

/// Finds an aggregate outside of subqueries.
struct Aggregates {
    /// The subqueries that are walked now.
    queries: usize,
}

impl Visitor for Aggregates {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.queries = self.queries.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(function) if self.queries == 0 && is_aggregate(function) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Whether a function is called as an aggregate, by its name or by how it is written.
fn is_aggregate(function: &Function) -> bool {
    if function.over.is_some() {
        return false;
    }
    let is_written_so = match &function.args {
        FunctionArguments::List(list) => {
            let is_ordered = |clause: &FunctionArgumentClause| matches!(clause, FunctionArgumentClause::OrderBy(_));
            list.duplicate_treatment.is_some() || list.clauses.iter().any(is_ordered)
        }
        _ => false,
    };
    let name = function_name(function);
    is_written_so
        || function.filter.is_some()
        || !function.within_group.is_empty()
        || AGGREGATES.contains(&name.as_str())
        || FAMILIES.iter().any(|family| name.starts_with(family))
}
