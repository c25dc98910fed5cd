//! `ARRAY(query)` as an aggregate of the items of the query, in its order.

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArgumentClause, FunctionArguments, GroupByExpr, Ident, OrderBy, OrderByExpr, OrderByKind, Query,
    Select, SelectItem, SetExpr, TableFactor, Value, ValueWithSpan,
};

use crate::system::aggregates::is_empty_without_rows;
use crate::system::empty::is_simplified;
use crate::system::functions::filled;
use crate::system::syntax::quoted;

/// The column of the items of a query that has to be a subquery.
const ITEM: &str = "item";
/// How the columns of its other sort keys begin.
const KEY: &str = "key";

/// What stands for `ARRAY(query)`; `None` if the query is none that can be an array.
///
/// # Errors
/// If the query has not exactly one column, or an order of all of them.
pub(super) fn array_of(query: &Query) -> Result<Option<Expr>> {
    if is_simplified(query) {
        return filled("make_array()", &[]).map(Some);
    }
    let mut query = query.clone();
    let order = order_of(&mut query)?;

    let is_cut = query.limit_clause.is_some() || query.fetch.is_some();
    let array = match query.body.as_mut() {
        SetExpr::Select(select) if !is_cut && is_row_by_row(select) => {
            let item = item_of(select)?;
            let order = order.into_iter().map(|key| in_terms_of(key, &item)).collect();
            let mut array = filled("array_agg($1)", std::slice::from_ref(&item.expr))?;
            set_order(&mut array, order);
            select.projection = vec![SelectItem::UnnamedExpr(array)];
            query
        }
        _ => of_subquery(query, order)?,
    };
    // No rows are an array without items, and no null.
    let array = Expr::Subquery(Box::new(array));
    filled("coalesce($1, make_array())", std::slice::from_ref(&array)).map(Some)
}

/// The only column of a query.
struct Item {
    expr: Expr,
    alias: Option<Ident>,
}

/// Takes the order out of a query.
fn order_of(query: &mut Query) -> Result<Vec<OrderByExpr>> {
    match query.order_by.take().map(|order| order.kind) {
        None => Ok(Vec::new()),
        Some(OrderByKind::Expressions(keys)) => Ok(keys),
        Some(OrderByKind::All(_)) => plan_err!("ARRAY(query) takes an order of expressions, not ORDER BY ALL"),
    }
}

fn item_of(select: &Select) -> Result<Item> {
    match select.projection.as_slice() {
        [SelectItem::UnnamedExpr(expr)] => Ok(Item { expr: expr.clone(), alias: None }),
        [SelectItem::ExprWithAlias { expr, alias }] => Ok(Item { expr: expr.clone(), alias: Some(alias.clone()) }),
        _ => plan_err!("ARRAY(query) takes a query of one column"),
    }
}

/// Whether each row that a SELECT reads is one of its result.
fn is_row_by_row(select: &Select) -> bool {
    let has_groups = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    !has_groups && select.distinct.is_none() && select.qualify.is_none() && is_empty_without_rows(select)
}

/// A sort key that names the column by its place or alias, as one that has the expression of the column.
fn in_terms_of(mut key: OrderByExpr, item: &Item) -> OrderByExpr {
    if is_item(&key.expr, item) {
        key.expr = item.expr.clone();
    }
    key
}

fn is_item(key: &Expr, item: &Item) -> bool {
    match key {
        Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) => number == "1",
        Expr::Identifier(name) if item.alias.as_ref().is_some_and(|alias| alias.value == name.value) => true,
        key => *key == item.expr,
    }
}

/// An aggregate over the query as a subquery: it groups, is cut, or is of several parts. Its sort keys become columns of it.
fn of_subquery(mut query: Query, mut order: Vec<OrderByExpr>) -> Result<Query> {
    let mut columns = vec![quoted(ITEM)];
    let mut outer = order.clone();
    match query.body.as_mut() {
        SetExpr::Select(select) => {
            let item = item_of(select)?;
            let mut projection = vec![SelectItem::ExprWithAlias { expr: item.expr.clone(), alias: quoted(ITEM) }];
            for (place, (key, outer)) in order.iter_mut().zip(&mut outer).enumerate() {
                let name = match is_item(&key.expr, &item) {
                    true => quoted(ITEM),
                    false => {
                        let name = quoted(&format!("{KEY}{place}"));
                        let expr = std::mem::replace(&mut key.expr, Expr::Identifier(name.clone()));
                        projection.push(SelectItem::ExprWithAlias { expr, alias: name.clone() });
                        columns.push(name.clone());
                        name
                    }
                };
                (key.expr, outer.expr) = (Expr::Identifier(name.clone()), Expr::Identifier(name));
            }
            select.projection = projection;
        }
        // The parts of a UNION are ordered by their only column.
        _ => {
            for (key, outer) in order.iter_mut().zip(&mut outer) {
                outer.expr = Expr::Identifier(quoted(ITEM));
                if !matches!(key.expr, Expr::Value(_)) {
                    key.expr = Expr::Value(Value::Number("1".to_owned(), false).with_empty_span());
                }
            }
        }
    }
    if !order.is_empty() {
        let kind = OrderByKind::Expressions(order);
        query.order_by = Some(OrderBy { kind, interpolate: None });
    }
    aggregated(query, &columns, outer)
}

/// `SELECT array_agg(item ORDER BY ..) FROM (query) AS items (item, ..)`.
fn aggregated(query: Query, columns: &[Ident], order: Vec<OrderByExpr>) -> Result<Query> {
    let names = columns.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let template = format!("(SELECT array_agg(\"{ITEM}\") FROM (SELECT 1) AS items ({names}))");
    let Expr::Nested(outer) = filled(&template, &[])? else { return plan_err!("ARRAY(query) cannot be read") };
    let Expr::Subquery(mut outer) = *outer else { return plan_err!("ARRAY(query) cannot be read") };
    let SetExpr::Select(select) = outer.body.as_mut() else { return plan_err!("ARRAY(query) cannot be read") };

    for from in &mut select.from {
        if let TableFactor::Derived { subquery, .. } = &mut from.relation {
            **subquery = query.clone();
        }
    }
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(array) = item {
            set_order(array, order.clone());
        }
    }
    Ok(*outer)
}

/// Gives an aggregate the order of its items.
fn set_order(array: &mut Expr, order: Vec<OrderByExpr>) {
    if order.is_empty() {
        return;
    }
    match array {
        Expr::Nested(inner) => set_order(inner, order),
        Expr::Function(function) => {
            if let FunctionArguments::List(list) = &mut function.args {
                list.clauses.push(FunctionArgumentClause::OrderBy(order));
            }
        }
        _ => {}
    }
}
