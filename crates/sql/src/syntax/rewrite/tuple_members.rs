//! `(a, b) IN (SELECT x, y ..)`, `= ANY` and `<> ALL` of it: whether a tuple is among the rows of a subquery. DataFusion 55.2
//! compares one column only.
//!
//! As in the SQL standard and in DuckDB, it is true if a row has equal values, else null if a row could have them, were its nulls
//! or those of the tuple known, and otherwise false.

use std::ops::ControlFlow;

use datafusion::error::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Expr, Query, Select, SelectItem, SetExpr, TableFactor, UnaryOperator, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;

use crate::error::{SqlError, external};
use crate::syntax::dialect::TidetableDialect;
use crate::syntax::relations::{check_copies, relations_of};

/// The name of the subquery in what replaces it, and the start of the names of its columns.
const MEMBERS: &str = "__members";
/// The start of the names that stand for the items of the tuple.
const ITEM: &str = "__item_";

/// Replaces memberships of tuples by `EXISTS`.
///
/// # Errors
/// [`SqlError::TupleWidth`], where the subquery has another number of columns; [`SqlError::TooManyRelations`], where memberships
/// are nested so deeply that their copies cannot be planned.
pub(crate) fn replace_tuple_members(statement: &mut ast::Statement) -> Result<()> {
    let mut rewriter = Rewriter { copies: 0, fault: None };
    let _: ControlFlow<()> = statement.visit(&mut rewriter);
    rewriter.fault.map_or(Ok(()), Err)
}

struct Rewriter {
    /// The relations that memberships as values have added: their subquery and items stand in the statement twice.
    copies: usize,
    fault: Option<DataFusionError>,
}

/// A membership of a tuple: its items, the subquery, and whether it is negated.
struct Membership {
    items: Vec<Expr>,
    subquery: Box<Query>,
    is_negated: bool,
}

impl VisitorMut for Rewriter {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        match &mut select.selection {
            Some(condition) => self.replace_conditions(condition),
            None => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Some(membership) = take_membership(expr) else { return ControlFlow::Continue(()) };
        let replacement = membership.replacement(value_template);
        let counted = replacement.and_then(|replacement| self.count_copies(&replacement).map(|()| replacement));
        self.put(counted, expr)
    }
}

impl Rewriter {
    /// Replaces memberships that a row must fulfil: null counts as false there, which one join can answer.
    fn replace_conditions(&mut self, condition: &mut Expr) -> ControlFlow<()> {
        match condition {
            Expr::Nested(inner) => self.replace_conditions(inner),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                self.replace_conditions(left)?;
                self.replace_conditions(right)
            }
            other => match take_membership(other) {
                Some(membership) => self.put(membership.replacement(condition_template), other),
                None => ControlFlow::Continue(()),
            },
        }
    }

    /// Counts the relations that a membership as a value adds: half of its replacement is a copy, with all memberships below it.
    fn count_copies(&mut self, replacement: &Expr) -> Result<()> {
        self.copies = self.copies.saturating_add(relations_of(replacement) / 2);
        check_copies(self.copies)
    }

    /// Puts a replacement where `expr` was, or ends the walk with its error.
    fn put(&mut self, replacement: Result<Expr>, expr: &mut Expr) -> ControlFlow<()> {
        match replacement {
            Ok(replacement) => {
                *expr = replacement;
                ControlFlow::Continue(())
            }
            Err(error) => {
                self.fault = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

impl Membership {
    /// The expression that `template` makes of it: `template` is given the equality of the tuple and a row.
    fn replacement(self, template: fn(&str, bool) -> String) -> Result<Expr> {
        let wanted = self.items.len();
        if let Some(found) = width_of(&self.subquery.body).filter(|found| *found != wanted) {
            return Err(external(SqlError::TupleWidth { wanted, found }));
        }

        let equal: Vec<String> = (0..wanted).map(|at| format!("{ITEM}{at} = {MEMBERS}.{MEMBERS}_{at}")).collect();
        let columns: Vec<String> = (0..wanted).map(|at| format!("{MEMBERS}_{at}")).collect();
        let text = template(&equal.join(" AND "), self.is_negated)
            .replace("FROM ROWS", &format!("FROM (SELECT 1) AS {MEMBERS}({})", columns.join(", ")));

        let parsed = Parser::new(&TidetableDialect).try_with_sql(&text).and_then(|mut parser| parser.parse_expr());
        let mut replacement = parsed.map_err(|error| DataFusionError::SQL(Box::new(error), None))?;
        let _: ControlFlow<()> = VisitMut::visit(&mut replacement, &mut Filling { membership: self });
        Ok(Expr::Nested(Box::new(replacement)))
    }
}

/// A membership as a value: true, false or null.
fn value_template(equal: &str, is_negated: bool) -> String {
    let (found, not_found) = if is_negated { ("false", "true") } else { ("true", "false") };
    format!(
        "CASE WHEN EXISTS (SELECT 1 FROM ROWS WHERE {equal}) THEN {found} \
         WHEN EXISTS (SELECT 1 FROM ROWS WHERE ({equal}) IS NULL) THEN NULL ELSE {not_found} END"
    )
}

/// A membership as a condition: true, or anything else.
fn condition_template(equal: &str, is_negated: bool) -> String {
    match is_negated {
        true => format!("NOT EXISTS (SELECT 1 FROM ROWS WHERE ({equal}) IS NOT FALSE)"),
        false => format!("EXISTS (SELECT 1 FROM ROWS WHERE {equal})"),
    }
}

/// Puts the items and the subquery into what was made of a template.
struct Filling {
    membership: Membership,
}

impl VisitorMut for Filling {
    type Break = ();

    // After the walk of the relation, which would meet the relations of the same name that a membership below this one has left.
    fn post_visit_table_factor(&mut self, relation: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Derived { subquery, alias: Some(alias), .. } = relation
            && alias.name.value == MEMBERS
        {
            subquery.clone_from(&self.membership.subquery);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(name) = expr
            && let Some(item) = name.value.strip_prefix(ITEM).and_then(|at| at.parse::<usize>().ok())
            && let Some(item) = self.membership.items.get(item)
        {
            *expr = Expr::Nested(Box::new(item.clone()));
        }
        ControlFlow::Continue(())
    }
}

/// The membership that an expression is, taken out of it; `None` for other expressions, and for a subquery with one column, whose
/// values may be tuples themselves.
fn take_membership(expr: &mut Expr) -> Option<Membership> {
    let (tuple, rows, is_negated) = match expr {
        Expr::InSubquery { expr, subquery, negated } => (expr.as_mut(), subquery, *negated),
        Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => match right.as_mut() {
            Expr::Subquery(subquery) => (left.as_mut(), subquery, false),
            _ => return None,
        },
        Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => match right.as_mut() {
            Expr::Subquery(subquery) => (left.as_mut(), subquery, true),
            _ => return None,
        },
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
            let membership = take_membership(expr)?;
            return Some(Membership { is_negated: !membership.is_negated, ..membership });
        }
        _ => return None,
    };
    let Expr::Tuple(items) = tuple else { return None };
    if width_of(&rows.body) == Some(1) {
        return None;
    }
    Some(Membership { items: std::mem::take(items), subquery: rows.clone(), is_negated })
}

/// The number of columns of a query, if it is known before the query is planned.
fn width_of(body: &SetExpr) -> Option<usize> {
    match body {
        SetExpr::Select(select) => {
            let is_one =
                |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
            select.projection.iter().all(is_one).then_some(select.projection.len()).filter(|width| *width > 0)
        }
        SetExpr::Query(query) => width_of(&query.body),
        SetExpr::SetOperation { left, .. } => width_of(left),
        SetExpr::Values(values) => values.rows.first().map(|row| row.content.len()),
        _ => None,
    }
}
