//! `FROM t, UNNEST(array) AS item [WITH OFFSET AS place]`: arrays of a row as relations beside it.
//!
//! DataFusion plans `UNNEST` in a select list, so such a relation becomes `(SELECT *, UNNEST(array) AS item FROM t) AS t`.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Join, JoinConstraint, JoinOperator, ObjectNamePart, Query, Select, SelectItem, SetExpr, TableAlias,
    TableFactor, TableWithJoins, Value, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;

use crate::syntax::dialect::TidetableDialect;
use crate::syntax::rewrite::syntax::call;

/// Rewrites relations that are arrays.
pub(crate) struct Unnested;

impl VisitorMut for Unnested {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if select.from.iter().any(has_array) {
            unnest(select);
        }
        ControlFlow::Continue(())
    }
}

/// Whether a relation has an array with one name for its items.
fn has_array(relation: &TableWithJoins) -> bool {
    is_array(&relation.relation) || relation.joins.iter().any(|join| is_array(&join.relation))
}

fn is_array(relation: &TableFactor) -> bool {
    let TableFactor::UNNEST { alias: Some(alias), array_exprs, with_ordinality: false, .. } = relation else {
        return false;
    };
    array_exprs.len() == 1 && alias.columns.is_empty()
}

/// Whether a join is a product, as `,` is.
fn is_product(join: &Join) -> bool {
    let (JoinOperator::Join(constraint) | JoinOperator::Inner(constraint) | JoinOperator::CrossJoin(constraint)) =
        &join.join_operator
    else {
        return false;
    };
    matches!(constraint, JoinConstraint::None)
}

fn unnest(select: &mut Select) {
    let mut relations: Vec<TableWithJoins> = Vec::new();
    for TableWithJoins { relation, joins } in std::mem::take(&mut select.from) {
        add(&mut relations, relation);
        for join in joins {
            match relations.last_mut() {
                Some(last) if !(is_array(&join.relation) && is_product(&join)) => last.joins.push(join),
                _ => add(&mut relations, join.relation),
            }
        }
    }
    select.from = relations;
}

/// Adds a relation of a product; an array goes around the relation before it.
fn add(relations: &mut Vec<TableWithJoins>, relation: TableFactor) {
    if !is_array(&relation) {
        relations.push(TableWithJoins { relation, joins: Vec::new() });
        return;
    }
    let TableFactor::UNNEST { alias: Some(alias), array_exprs: arrays, with_offset, with_offset_alias, .. } = relation
    else {
        return;
    };
    let offset = with_offset.then(|| with_offset_alias.unwrap_or_else(|| Ident::new("offset")));
    let Some(array) = arrays.into_iter().next() else { return };
    let before = relations.pop();
    let name = before.as_ref().and_then(|before| name_of(&before.relation));
    let item = alias.name;
    let around = name.unwrap_or_else(|| item.clone());
    if let Some(relation) = with_items(before, array, item, offset, around) {
        relations.push(TableWithJoins { relation, joins: Vec::new() });
    }
}

/// The name by which columns of a relation are qualified.
fn name_of(relation: &TableFactor) -> Option<Ident> {
    match relation {
        TableFactor::Table { alias: Some(alias), .. } | TableFactor::Derived { alias: Some(alias), .. } => {
            Some(alias.name.clone())
        }
        TableFactor::Table { name, .. } => name.0.last().and_then(ObjectNamePart::as_ident).cloned(),
        _ => None,
    }
}

/// `(SELECT *, UNNEST(array) AS item FROM before) AS around`.
fn with_items(
    before: Option<TableWithJoins>,
    array: Expr,
    item: Ident,
    offset: Option<Ident>,
    around: Ident,
) -> Option<TableFactor> {
    const TEMPLATE: &str = "SELECT * FROM x";
    let mut query: Query = *Parser::new(&TidetableDialect).try_with_sql(TEMPLATE).ok()?.parse_query().ok()?;
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    if before.is_none() {
        select.projection.clear();
    }
    if let Some(name) = offset {
        let places = call("range", vec![number(0), call("array_length", vec![array.clone()])]);
        let places = call("unnest", vec![places]);
        select.projection.push(SelectItem::ExprWithAlias { expr: call("unnest", vec![array]), alias: item });
        select.projection.push(SelectItem::ExprWithAlias { expr: places, alias: name });
    } else {
        select.projection.push(SelectItem::ExprWithAlias { expr: call("unnest", vec![array]), alias: item });
    }
    select.from = before.into_iter().collect();
    let alias = TableAlias { explicit: true, name: around, columns: Vec::new(), at: None };
    Some(TableFactor::Derived { lateral: false, subquery: Box::new(query), alias: Some(alias), sample: None })
}

fn number(value: u8) -> Expr {
    Expr::Value(Value::Number(value.to_string(), false).with_empty_span())
}
