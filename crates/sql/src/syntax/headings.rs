//! Names of the columns of a result as the query wrote them: `sum(kwh)` where DataFusion has `sum(SENSOR.kwh)`, and `1`
//! where it has `Int64(1)`. Exports keep DataFusion's names, which their files have had from the start.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

use datafusion::common::Column;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::prelude::DataFrame;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, Ident, Select, SelectItem, SetExpr, VisitMut, VisitorMut};

use crate::syntax::rewrite::syntax::take;
use crate::syntax::select_lists::SelectLists;

/// The text of each item of the outermost select list that has no name of its own, and `None` for the others.
pub(crate) type WrittenNames = Vec<Option<String>>;

/// `frame` with the names of its columns as its query wrote them. Columns that are written alike are numbered; if two columns
/// would still have one name, all keep theirs.
///
/// # Errors
/// If the columns cannot be selected from it.
pub(crate) fn with_written_names(frame: DataFrame, written: &WrittenNames) -> Result<DataFrame> {
    let schema = frame.schema();
    if written.len() != schema.fields().len() {
        return Ok(frame);
    }

    let mut uses: HashMap<&str, usize> = HashMap::new();
    let mut names: Vec<String> = Vec::with_capacity(written.len());
    for (text, field) in written.iter().zip(schema.fields()) {
        let Some(text) = text.as_deref() else {
            names.push(field.name().clone());
            continue;
        };
        let before = uses.entry(text).or_default();
        names.push(if *before == 0 { text.to_owned() } else { format!("{text}_{before}") });
        *before += 1;
    }
    if names.iter().collect::<HashSet<_>>().len() != names.len() {
        return Ok(frame);
    }
    if names.iter().zip(schema.fields()).all(|(name, field)| name == field.name()) {
        return Ok(frame);
    }
    let columns: Vec<Expr> = schema
        .iter()
        .zip(names)
        .map(|((table, field), name)| {
            let column = Expr::Column(Column::from((table, field)));
            if name == *field.name() { column } else { column.alias(name) }
        })
        .collect();
    frame.select(columns)
}

/// The names of `statement`, as the parser made it, whose select lists are `lists`; of a set operation those of the first query.
/// `None` if the list has a wildcard, or there is none.
pub(crate) fn written_names(statement: &Statement, lists: &SelectLists) -> Option<WrittenNames> {
    let select = outermost_select(statement)?;
    let texts = lists.items(select)?;
    let mut names = Vec::with_capacity(texts.len());
    for (item, text) in select.projection.iter().zip(texts) {
        names.push(match item {
            SelectItem::UnnamedExpr(ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_)) => None,
            SelectItem::UnnamedExpr(_) => Some(text.clone()),
            SelectItem::ExprWithAlias { .. } => None,
            _ => return None,
        });
    }
    Some(names)
}

/// The outermost `SELECT`; of a set operation the first.
fn outermost_select(statement: &Statement) -> Option<&Select> {
    let Statement::Statement(statement) = statement else { return None };
    let ast::Statement::Query(query) = statement.as_ref() else { return None };
    let mut body = &query.body;
    loop {
        match body.as_ref() {
            SetExpr::Select(select) => return Some(select),
            SetExpr::SetOperation { left, .. } => body = left,
            _ => return None,
        }
    }
}

/// Gives each column of `statement` that is an expression without a name its text: for lists in which DataFusion's names of two
/// expressions are equal.
pub(crate) fn name_all(statement: &mut ast::Statement) {
    let _: ControlFlow<()> = statement.visit(&mut AllNames);
}

/// Names the columns of select lists that are expressions.
struct AllNames;

impl VisitorMut for AllNames {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expr) = item
                && !matches!(expr, ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_))
            {
                let alias = Ident::with_quote('"', expr.to_string());
                *item = SelectItem::ExprWithAlias { expr: take(expr), alias };
            }
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParserBuilder;

    use super::*;
    use crate::syntax::dialect::TidetableDialect;

    fn names_of(query: &str) -> Option<WrittenNames> {
        let mut parser = DFParserBuilder::new(query).with_dialect(&TidetableDialect).build().unwrap();
        written_names(&parser.parse_statement().unwrap(), &SelectLists::read(query))
    }

    #[test]
    fn items_are_named_as_written() {
        let some = |text: &str| Some(text.to_owned());
        for (query, names) in [
            ("select 1, sum(kwh), meter from SENSOR", vec![some("1"), some("sum(kwh)"), None]),
            ("SELECT  a  IS DISTINCT FROM b, c AS d, e f FROM t", vec![some("a IS DISTINCT FROM b"), None, None]),
            ("with x as (select 1, 2) select distinct on (a, b) t.a, a + -- sum\n b from x", vec![None, some("a + b")]),
            ("select all 1 + 1, 2 from t", vec![some("1 + 1"), some("2")]),
            ("from t select count(*), [1, 2][1] order by 1", vec![some("count(*)"), some("[1, 2][1]")]),
            (
                "select extract(hour from ts), (select max(x), 1 from u), 'é, x' union all select 1, 2, 3",
                vec![some("extract(hour from ts)"), some("(select max(x), 1 from u)"), some("'é, x'")],
            ),
        ] {
            assert_eq!(names_of(query), Some(names), "{query}");
        }
        for query in ["select *, 1 from t", "select t.* from t", "show tables", "values (1)", "explain select 1"] {
            assert_eq!(names_of(query), None, "{query}");
        }
    }
}
