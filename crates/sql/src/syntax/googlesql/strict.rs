//! Statements that Bigtable refuses, though they could be answered here.

use std::ops::ControlFlow;

use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, Expr, Function, LimitClause, ObjectName, ObjectNamePart, Query, Select, SetExpr,
    Statement, TableFactor, Visit, Visitor,
};

use crate::syntax::googlesql::documented::is_documented;

/// # Errors
/// If Bigtable refuses the statement: for a join, a set operation, a subquery, `WITH`, a window function, `OFFSET`, a table of
/// another schema, or a function that it does not have.
pub(crate) fn check(statement: &Statement) -> Result<()> {
    if !matches!(statement, Statement::Query(_)) {
        return plan_err!("Bigtable answers SELECT only (--strict)");
    }
    match statement.visit(&mut Strict { queries: 0, allowed: 1 }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(refused) => Err(refused),
    }
}

struct Strict {
    /// Queries that have begun.
    queries: usize,
    /// Queries that there may be: one, and the argument of each `UNPACK`.
    allowed: usize,
}

fn refused(what: &str) -> ControlFlow<DataFusionError> {
    match plan_err!("{what} is not supported by Bigtable (--strict)") {
        Err(error) => ControlFlow::Break(error),
        Ok(()) => ControlFlow::Continue(()),
    }
}

impl Visitor for Strict {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<DataFusionError> {
        self.queries += 1;
        if query.with.is_some() {
            return refused("a common table expression (WITH)");
        }
        if matches!(*query.body, SetExpr::SetOperation { .. }) {
            return refused("UNION, INTERSECT or EXCEPT");
        }
        if self.queries > self.allowed {
            return refused("a subquery");
        }
        let has_offset = match &query.limit_clause {
            Some(LimitClause::LimitOffset { offset, .. }) => offset.is_some(),
            Some(LimitClause::OffsetCommaLimit { .. }) => true,
            None => false,
        };
        if has_offset {
            return refused("OFFSET");
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<DataFusionError> {
        let joined = select.from.iter().flat_map(|table| &table.joins).map(|join| &join.relation);
        let relations = select.from.iter().map(|table| &table.relation).chain(joined);
        let tables = relations.filter(|relation| !matches!(relation, TableFactor::UNNEST { .. })).count();
        if tables > 1 { refused("JOIN") } else { ControlFlow::Continue(()) }
    }

    fn pre_visit_table_factor(&mut self, relation: &TableFactor) -> ControlFlow<DataFusionError> {
        match relation {
            TableFactor::Table { name, args, .. } => {
                let name = name_of(name);
                if args.is_some() && name == "unpack" {
                    self.allowed += 1;
                }
                if name.contains('.') || name == "rows" && args.is_some() {
                    return refused(&format!("the table {name}"));
                }
                ControlFlow::Continue(())
            }
            TableFactor::Derived { .. } => refused("a subquery"),
            TableFactor::UNNEST { .. } => ControlFlow::Continue(()),
            relation => refused(&format!("the relation {relation}")),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<DataFusionError> {
        if let Some(syntax) = other_syntax(expr) {
            return refused(syntax);
        }
        let Expr::Function(Function { name, over, .. }) = expr else { return ControlFlow::Continue(()) };
        if over.is_some() {
            return refused("a window function (OVER)");
        }
        let name = name_of(name);
        let plain = name.strip_prefix("safe.").unwrap_or(&name);
        if is_documented(plain) { ControlFlow::Continue(()) } else { refused(&format!("the function {name}")) }
    }
}

/// Syntax of other databases, which GoogleSQL does not have.
fn other_syntax(expr: &Expr) -> Option<&'static str> {
    Some(match expr {
        Expr::ILike { .. } => "ILIKE",
        Expr::SimilarTo { .. } => "SIMILAR TO",
        Expr::Position { .. } => "POSITION",
        Expr::Overlay { .. } => "OVERLAY",
        Expr::Cast { kind: CastKind::DoubleColon, .. } => "a cast by ::",
        Expr::BinaryOp {
            op: BinaryOperator::PGRegexMatch | BinaryOperator::PGRegexIMatch | BinaryOperator::PGRegexNotMatch,
            ..
        } => "the operator ~",
        _ => return None,
    })
}

/// The parts of a name in lower case.
fn name_of(name: &ObjectName) -> String {
    let parts: Vec<String> =
        name.0.iter().filter_map(ObjectNamePart::as_ident).map(|part| part.value.to_ascii_lowercase()).collect();
    parts.join(".")
}
