//! Plans `SELECT *` of one relation without expanding its columns.
//!
//! DataFusion 55.2 expands `*` and several times searches all columns for each, which takes most of a minute for 10,000
//! columns. The query is planned without its select list, and the empty projections over the relation are removed.

use std::sync::Arc;

use datafusion::logical_expr::{Limit, LogicalPlan, Sort};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, Expr, GroupByExpr, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr, WildcardAdditionalOptions,
};

/// `statement` without its select list, if that is `*` and nothing else adds or removes columns.
pub(crate) fn without_select_list(statement: &Statement) -> Option<Statement> {
    let Statement::Statement(inner) = statement else { return None };
    let ast::Statement::Query(query) = inner.as_ref() else { return None };
    let is_plain = query.pipe_operators.is_empty() && query.order_by.as_ref().is_none_or(is_by_values);
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    if !is_plain || !is_of_all(select) {
        return None;
    }
    let select = Select { projection: Vec::new(), ..select.as_ref().clone() };
    let query = Query { body: Box::new(SetExpr::Select(Box::new(select))), ..query.as_ref().clone() };
    Some(Statement::Statement(Box::new(ast::Statement::Query(Box::new(query)))))
}

/// Whether it is `SELECT *` of one relation, with at most filters on rows.
fn is_of_all(select: &Select) -> bool {
    let all = match select.projection.as_slice() {
        [SelectItem::Wildcard(options)] => *options == WildcardAdditionalOptions::default(),
        _ => false,
    };
    let one = matches!(select.from.as_slice(), [relation] if relation.joins.is_empty());
    let grouped = match &select.group_by {
        GroupByExpr::Expressions(exprs, modifiers) => !exprs.is_empty() || !modifiers.is_empty(),
        GroupByExpr::All(_) => true,
    };
    let extra = select.distinct.is_some()
        || select.exclude.is_some()
        || select.into.is_some()
        || select.having.is_some()
        || select.qualify.is_some()
        || select.value_table_mode.is_some();
    all && one && !grouped && !extra
}

/// Whether no ORDER BY item is a position in the select list.
fn is_by_values(order: &OrderBy) -> bool {
    match &order.kind {
        OrderByKind::Expressions(exprs) => exprs.iter().all(|by| !matches!(by.expr, Expr::Value(_))),
        OrderByKind::All(_) => false,
    }
}

/// The plan of such a query without its empty projections; `None` if it contains other nodes.
pub(crate) fn without_empty_projections(plan: LogicalPlan) -> Option<LogicalPlan> {
    match plan {
        LogicalPlan::Limit(Limit { skip, fetch, input }) => {
            let input = Arc::new(without_empty_projections(Arc::unwrap_or_clone(input))?);
            Some(LogicalPlan::Limit(Limit { skip, fetch, input }))
        }
        LogicalPlan::Projection(empty) if empty.expr.is_empty() => match Arc::unwrap_or_clone(empty.input) {
            // Below it is a projection of the sort expressions.
            LogicalPlan::Sort(sort) => ordered(sort, true),
            relation => is_relation(&relation).then_some(relation),
        },
        LogicalPlan::Sort(sort) => ordered(sort, false),
        _ => None,
    }
}

fn ordered(sort: Sort, projected: bool) -> Option<LogicalPlan> {
    let LogicalPlan::Projection(list) = sort.input.as_ref() else { return None };
    if list.expr.is_empty() == projected || !is_relation(&list.input) {
        return None;
    }
    Some(LogicalPlan::Sort(Sort { input: Arc::clone(&list.input), ..sort }))
}

/// Whether the plan has exactly the columns of `*`.
fn is_relation(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Filter(filter) => is_relation(&filter.input),
        LogicalPlan::TableScan(_) | LogicalPlan::SubqueryAlias(_) => true,
        _ => false,
    }
}
