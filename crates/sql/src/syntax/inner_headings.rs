//! Names of the columns of subqueries as the query wrote them, so that `SELECT * FROM (SELECT count(*), 1 FROM t)` has the columns
//! `count(*)` and `1`. DataFusion calls them `count(*)` and `Int64(1)`.
//!
//! A query may refer to a column by DataFusion's name, as in `SELECT "Int64(1)" FROM (SELECT 1)`. Such a query does not resolve
//! with the written names, and is planned without them. Columns that have the name of the column that they are made of, as
//! `CAST(v AS INT)` has, keep it. Where equal names would pair columns, nothing is renamed.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, Expr, Ident, JoinConstraint, JoinOperator, Query, Select, SelectItem, SetExpr, SetQuantifier, TableFactor,
    VisitMut, VisitorMut,
};

use crate::syntax::rewrite::syntax::take;
use crate::syntax::select_lists::SelectLists;

/// `statement`, as the parser made it, with written names in its subqueries; `None` if it has none to be named.
pub(crate) fn with_inner_names(statement: &Statement, lists: &SelectLists) -> Option<Statement> {
    let Statement::Statement(inner) = statement else { return None };
    let ast::Statement::Query(query) = inner.as_ref() else { return None };

    let mut named = query.clone();
    let mut naming = Naming { lists, is_changed: false };
    if named.visit(&mut naming).is_break() {
        return None;
    }
    // Other lists get their names when the statement is planned; that with a wildcard has more columns than items.
    if let Some(select) = first_select(&mut named)
        && select
            .projection
            .iter()
            .any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)))
    {
        naming.name_items(select);
    }
    naming.is_changed.then(|| Statement::Statement(Box::new(ast::Statement::Query(named))))
}

/// Names the columns of CTEs and of subqueries in `FROM`; breaks where equal names pair columns.
struct Naming<'a> {
    lists: &'a SelectLists,
    is_changed: bool,
}

impl VisitorMut for Naming<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        for cte in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            self.name_columns(&mut cte.query);
        }
        if pairs_by_name(&query.body) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let mut joins = select.from.iter().flat_map(|tables| &tables.joins);
        if joins.any(|join| is_natural(&join.join_operator)) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn pre_visit_table_factor(&mut self, relation: &mut TableFactor) -> ControlFlow<()> {
        match relation {
            TableFactor::Derived { subquery, .. } => self.name_columns(subquery),
            TableFactor::NestedJoin { table_with_joins, .. }
                if table_with_joins.joins.iter().any(|join| is_natural(&join.join_operator)) =>
            {
                return ControlFlow::Break(());
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Naming<'_> {
    /// Names the columns of a query; those of a set operation are those of its first query.
    fn name_columns(&mut self, query: &mut Query) {
        if let Some(select) = first_select(query) {
            self.name_items(select);
        }
    }

    fn name_items(&mut self, select: &mut Select) {
        let Some(texts) = self.lists.items(select) else { return };
        let mut uses: HashMap<&str, usize> = HashMap::new();
        for (item, text) in select.projection.iter_mut().zip(texts) {
            let SelectItem::UnnamedExpr(expr) = item else { continue };
            if has_name_of_column(expr) {
                continue;
            }
            let before = uses.entry(text).or_default();
            let name = if *before == 0 { text.clone() } else { format!("{text}_{before}") };
            *before += 1;
            *item = SelectItem::ExprWithAlias { expr: take(expr), alias: Ident::with_quote('"', name) };
            self.is_changed = true;
        }
    }
}

/// The `SELECT` that gives the columns of a query their names.
fn first_select(query: &mut Query) -> Option<&mut Select> {
    let mut body = query.body.as_mut();
    loop {
        body = match body {
            SetExpr::Select(select) => return Some(select),
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Query(inner) => inner.body.as_mut(),
            _ => return None,
        };
    }
}

/// Whether the column of an expression has the name of a column that the expression is made of.
fn has_name_of_column(mut expr: &Expr) -> bool {
    while let Expr::Cast { expr: inner, .. } | Expr::Nested(inner) = expr {
        expr = inner;
    }
    matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
}

/// Whether it is a set operation `BY NAME`.
fn pairs_by_name(body: &SetExpr) -> bool {
    match body {
        SetExpr::SetOperation { set_quantifier, left, right, .. } => {
            let by_name = matches!(
                set_quantifier,
                SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName
            );
            by_name || pairs_by_name(left) || pairs_by_name(right)
        }
        _ => false,
    }
}

fn is_natural(operator: &JoinOperator) -> bool {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint)
        | JoinOperator::CrossJoin(constraint)
        | JoinOperator::Semi(constraint)
        | JoinOperator::LeftSemi(constraint)
        | JoinOperator::RightSemi(constraint)
        | JoinOperator::Anti(constraint)
        | JoinOperator::LeftAnti(constraint)
        | JoinOperator::RightAnti(constraint)
        | JoinOperator::AsOf { constraint, .. }
        | JoinOperator::StraightJoin(constraint) => matches!(constraint, JoinConstraint::Natural),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParserBuilder;

    use super::*;
    use crate::syntax::dialect::TidetableDialect;

    fn named(query: &str) -> Option<String> {
        let mut parser = DFParserBuilder::new(query).with_dialect(&TidetableDialect).build().unwrap();
        let statement = parser.parse_statement().unwrap();
        with_inner_names(&statement, &SelectLists::read(query)).map(|named| named.to_string())
    }

    #[test]
    fn columns_of_subqueries_get_written_names() {
        for (query, wanted) in [
            (
                "select * from (select count(*), 1, x, y as z, 1 from t)",
                "SELECT * FROM (SELECT count(*) AS \"count(*)\", 1 AS \"1\", x, y AS z, 1 AS \"1_1\" FROM t)",
            ),
            (
                "with a as (select sum( x ) from t union all select 2) select *, 1+1 from a",
                "WITH a AS (SELECT sum(x) AS \"sum( x )\" FROM t UNION ALL SELECT 2) SELECT *, 1 + 1 AS \"1+1\" FROM a",
            ),
            ("from (from t select -x) select 1", "FROM (FROM t SELECT -x AS \"-x\") SELECT 1"),
        ] {
            assert_eq!(named(query).as_deref(), Some(wanted), "{query}");
        }
    }

    #[test]
    fn other_columns_keep_their_names() {
        for query in [
            "select 1, count(*) from t",
            "select * from t",
            "select * from (select (x), cast(t.x as int), x::text from t)",
            "select x in (select count(*) from u), (select 1) from t",
            "select * from (select 1) a natural join (select 1) b",
            "select * from (select 1 union by name select 2)",
            "show tables",
        ] {
            assert_eq!(named(query), None, "{query}");
        }
    }
}
