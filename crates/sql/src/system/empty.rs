//! Queries over tables without rows have no rows, so that what they ask for need not be planned: half of the system catalogs are
//! empty here, and the queries of drivers over these are the most elaborate.

use std::collections::HashMap;

use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, GroupByExpr, JoinOperator, Query, Select, SelectItem, SetExpr, TableFactor,
    TableWithJoins,
};

use crate::system::aggregates::is_empty_without_rows;
use crate::system::named::Named;
use crate::system::parse::relation_parts;
use crate::system::syntax::{boolean, column_name, last_name, null, quoted};
use crate::system::tables::SystemTables;

/// Functions that give a row for each item of an array.
const OF_ARRAYS: [&str; 5] = ["unnest", "generate_subscripts", "aclexplode", "pg_options_to_table", "_pg_expandarray"];

/// Replaces a query that has no rows by one that is planned at once, with columns of the same names; so, too, each part of a UNION.
pub(super) fn simplify(query: &mut Query, tables: &SystemTables, named: &Named) {
    if simplify_body(query.body.as_mut(), Catalogs { tables, named }) {
        (query.order_by, query.limit_clause, query.fetch) = (None, None, None);
        query.locks.clear();
    }
}

/// Whether all of a query has no rows, and was replaced.
fn simplify_body(body: &mut SetExpr, catalogs: Catalogs<'_>) -> bool {
    match body {
        SetExpr::Select(select) => simplify_select(select, catalogs),
        SetExpr::SetOperation { left, right, .. } => {
            let (left, right) = (simplify_body(left, catalogs), simplify_body(right, catalogs));
            left && right
        }
        _ => false,
    }
}

fn simplify_select(select: &mut Select, catalogs: Catalogs<'_>) -> bool {
    if !has_no_rows(select, catalogs) {
        return false;
    }
    let Some(projection) = without_values(&select.projection) else { return false };

    select.projection = projection;
    select.from.clear();
    select.selection = Some(boolean(false));
    select.group_by = GroupByExpr::Expressions(Vec::new(), Vec::new());
    (select.distinct, select.having, select.qualify) = (None, None, None);
    select.named_window.clear();
    true
}

/// Whether a query is one that [`simplify`] made, or as empty as these.
pub(super) fn is_simplified(query: &Query) -> bool {
    match query.body.as_ref() {
        SetExpr::Select(select) => {
            select.from.is_empty() && select.selection == Some(boolean(false)) && is_empty_without_rows(select)
        }
        _ => false,
    }
}

fn has_no_rows(select: &Select, catalogs: Catalogs<'_>) -> bool {
    is_empty_without_rows(select) && select.from.iter().any(|from| catalogs.join_to_nothing(from))
}

/// What is known of the tables of a query.
#[derive(Clone, Copy)]
struct Catalogs<'a> {
    tables: &'a SystemTables,
    named: &'a Named,
}

impl Catalogs<'_> {
    /// Whether tables that are joined give no rows.
    fn join_to_nothing(self, from: &TableWithJoins) -> bool {
        let mut is_empty = self.gives_nothing(&from.relation);
        for join in &from.joins {
            let right = self.gives_nothing(&join.relation);
            is_empty = match &join.join_operator {
                JoinOperator::Join(_) | JoinOperator::Inner(_) | JoinOperator::CrossJoin(_) => is_empty || right,
                JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => is_empty,
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) => right,
                JoinOperator::FullOuter(_) => is_empty && right,
                // Of joins that PostgreSQL does not have nothing is known.
                _ => false,
            };
        }
        is_empty
    }

    fn gives_nothing(self, factor: &TableFactor) -> bool {
        match factor {
            TableFactor::Table { name, args: Some(args), .. } => {
                // No column of these catalogs holds an array. What other columns hold is not known.
                let is_column = args.args.iter().any(|argument| match argument {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Identifier(_))) => {
                        self.named.are_all_of_catalogs()
                    }
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::CompoundIdentifier(names))) => {
                        names.first().is_some_and(|name| self.named.is_of_catalogs(&name.value))
                    }
                    _ => false,
                });
                is_column && OF_ARRAYS.contains(&last_name(name).as_str())
            }
            TableFactor::Table { name, .. } => {
                let (schema, table) = relation_parts(name);
                schema.is_some_and(|schema| self.tables.is_empty(&schema, &table))
            }
            TableFactor::Derived { subquery, .. } => is_simplified(subquery),
            TableFactor::NestedJoin { table_with_joins, .. } => self.join_to_nothing(table_with_joins),
            _ => false,
        }
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
