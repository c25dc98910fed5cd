//! Queries over tables without rows have no rows, so that what they ask for need not be planned: half of the system catalogs are
//! empty here, and the queries of drivers over these are the most elaborate.

use std::collections::HashMap;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, GroupByExpr, JoinOperator, Query, Select, SelectItem, SetExpr, TableFactor,
    TableWithJoins,
};

use crate::system::parse::relation_parts;
use crate::system::syntax::{boolean, column_name, function_name, last_name, null, quoted};
use crate::system::tables::SystemTables;

/// Functions that give a row for each item of an array.
const OF_ARRAYS: [&str; 5] = ["unnest", "generate_subscripts", "aclexplode", "pg_options_to_table", "_pg_expandarray"];

/// Functions that give a row for no rows.
const AGGREGATES: [&str; 13] = [
    "count",
    "min",
    "max",
    "sum",
    "avg",
    "array_agg",
    "string_agg",
    "bool_or",
    "bool_and",
    "every",
    "json_agg",
    "jsonb_agg",
    "json_object_agg",
];

/// Whether a function is an aggregate.
pub(super) fn is_aggregate(name: &str) -> bool {
    AGGREGATES.contains(&name)
}

/// Whether an expression is, or holds, an aggregate of its own level.
pub(super) fn has_aggregate(expr: &Expr) -> bool {
    match expr {
        Expr::Function(function) => {
            (function.over.is_none() && is_aggregate(&function_name(function)))
                || super::syntax::arguments(function).iter().any(has_aggregate)
        }
        Expr::Cast { expr, .. } | Expr::Nested(expr) | Expr::UnaryOp { expr, .. } | Expr::IsNotNull(expr) => {
            has_aggregate(expr)
        }
        Expr::BinaryOp { left, right, .. } => has_aggregate(left) || has_aggregate(right),
        Expr::Case { conditions, else_result, .. } => {
            conditions.iter().any(|when| has_aggregate(&when.condition) || has_aggregate(&when.result))
                || else_result.as_deref().is_some_and(has_aggregate)
        }
        _ => false,
    }
}

/// Replaces a query that has no rows by one that is planned at once, with columns of the same names; so, too, each part of a UNION.
pub(super) fn simplify(query: &mut Query, tables: &SystemTables) {
    if simplify_body(query.body.as_mut(), tables) {
        (query.order_by, query.limit_clause, query.fetch) = (None, None, None);
        query.locks.clear();
    }
}

/// Whether all of a query has no rows, and was replaced.
fn simplify_body(body: &mut SetExpr, tables: &SystemTables) -> bool {
    match body {
        SetExpr::Select(select) => simplify_select(select, tables),
        SetExpr::SetOperation { left, right, .. } => {
            let (left, right) = (simplify_body(left, tables), simplify_body(right, tables));
            left && right
        }
        _ => false,
    }
}

fn simplify_select(select: &mut Select, tables: &SystemTables) -> bool {
    if !has_no_rows(select, tables) {
        return false;
    }
    let Some(projection) = without_values(&select.projection) else { return false };

    select.projection = projection;
    select.from.clear();
    select.selection = Some(boolean(false));
    select.group_by = GroupByExpr::Expressions(Vec::new(), Vec::new());
    (select.distinct, select.having) = (None, None);
    select.named_window.clear();
    true
}

/// Whether a query is one that [`simplify`] made.
pub(super) fn is_simplified(query: &Query) -> bool {
    match query.body.as_ref() {
        SetExpr::Select(select) => select.from.is_empty() && select.selection == Some(boolean(false)),
        _ => false,
    }
}

fn has_no_rows(select: &Select, tables: &SystemTables) -> bool {
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    let aggregates = select.projection.iter().any(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => has_aggregate(expr),
        _ => false,
    });
    (is_grouped || !aggregates) && select.from.iter().any(|from| joins_nothing(from, tables))
}

/// Whether tables that are joined give no rows.
fn joins_nothing(from: &TableWithJoins, tables: &SystemTables) -> bool {
    let mut is_empty = gives_nothing(&from.relation, tables);
    for join in &from.joins {
        let right = gives_nothing(&join.relation, tables);
        is_empty = match &join.join_operator {
            JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_) => is_empty || right,
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => right,
            JoinOperator::FullOuter(_) => is_empty && right,
            _ => is_empty,
        };
    }
    is_empty
}

fn gives_nothing(factor: &TableFactor, tables: &SystemTables) -> bool {
    match factor {
        TableFactor::Table { name, args: Some(args), .. } => {
            // No column of these catalogs holds an array.
            let is_column = args.args.iter().any(|argument| {
                matches!(
                    argument,
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(_) | Expr::CompoundIdentifier(_)))
                )
            });
            is_column && OF_ARRAYS.contains(&last_name(name).as_str())
        }
        TableFactor::Table { name, .. } => {
            let (schema, table) = relation_parts(name);
            let schema = schema.as_deref().or_else(|| tables.schema_of(&table));
            schema.is_some_and(|schema| tables.is_empty(schema, &table))
        }
        TableFactor::Derived { subquery, .. } => is_simplified(subquery),
        TableFactor::NestedJoin { table_with_joins, .. } => joins_nothing(table_with_joins, tables),
        _ => false,
    }
}

/// The columns as nulls with the names that they had; `None` if these are not known.
fn without_values(projection: &[SelectItem]) -> Option<Vec<SelectItem>> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut items = Vec::with_capacity(projection.len());
    for item in projection {
        let name = match item {
            SelectItem::UnnamedExpr(expr) => column_name(expr),
            SelectItem::ExprWithAlias { alias, .. } => alias.value.clone(),
            _ => return None,
        };
        let count = seen.entry(name.clone()).or_default();
        let mark =
            if *count == 0 { String::new() } else { format!("{}{count}", crate::syntax::googlesql::DUPLICATE_MARK) };
        *count += 1;
        items.push(SelectItem::ExprWithAlias { expr: null(), alias: quoted(&format!("{name}{mark}")) });
    }
    Some(items)
}
