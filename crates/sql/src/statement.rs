//! Statements, brought from what people write for Bigtable to what the engine plans.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::config::Dialect;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::prelude::SQLOptions;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, AccessExpr, CastKind, Expr, Subscript, Value, ValueWithSpan, VisitMut, VisitorMut,
};

/// Reads a statement. Bytes may be written `b'..'`, and fields of structs in a list `list[1].field`.
///
/// # Errors
/// If it is not SQL.
pub(crate) fn parse(state: &SessionState, query: &str) -> Result<Statement> {
    let mut statement = state.sql_to_statement(query, &Dialect::Generic)?;
    if let Some(statement) = inner(&mut statement) {
        let _: ControlFlow<()> = statement.visit(&mut AsPlanned);
    }
    Ok(statement)
}

/// Plans a query. It reads: tables are made by jobs, and files are written by exports.
///
/// # Errors
/// If it is no query, or not valid.
pub(crate) async fn plan(state: &SessionState, query: &str) -> Result<LogicalPlan> {
    let only_queries = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    let plan = state.statement_to_plan(parse(state, query)?).await?;
    only_queries.verify_plan(&plan)?;
    Ok(plan)
}

/// The SQL statement in a statement of the engine.
pub(crate) fn inner(statement: &mut Statement) -> Option<&mut ast::Statement> {
    match statement {
        Statement::Statement(statement) => Some(statement),
        Statement::Explain(explain) => inner(&mut explain.statement),
        _ => None,
    }
}

struct AsPlanned;

impl VisitorMut for AsPlanned {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundFieldAccess { access_chain, .. } = expr {
            let first = access_chain.iter().position(|access| matches!(access, AccessExpr::Subscript(_)));
            for access in access_chain.iter_mut().skip(first.unwrap_or(usize::MAX)) {
                if let AccessExpr::Dot(Expr::Identifier(name)) = access {
                    let index = Expr::Value(Value::SingleQuotedString(name.value.clone()).with_empty_span());
                    *access = AccessExpr::Subscript(Subscript::Index { index });
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// A number with an exponent is a float, which may be larger than any decimal.
    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) = expr
            && number.bytes().any(|byte| matches!(byte, b'e' | b'E'))
        {
            let text = Value::SingleQuotedString(number.clone()).with_empty_span();
            *expr = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(Expr::Value(text)),
                data_type: ast::DataType::DoublePrecision,
                array: false,
                format: None,
            };
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        if let Value::SingleQuotedByteStringLiteral(text) | Value::DoubleQuotedByteStringLiteral(text) = &value.value {
            let digits = text.bytes().map(|byte| format!("{byte:02x}")).collect();
            value.value = Value::HexStringLiteral(digits);
        }
        ControlFlow::Continue(())
    }
}

/// The types of GoogleSQL that the engine knows by other names.
#[derive(Debug)]
pub(crate) struct GoogleTypes;

impl TypePlanner for GoogleTypes {
    fn plan_type_field(&self, kind: &ast::DataType) -> Result<Option<FieldRef>> {
        let kind = match kind {
            ast::DataType::Bytes(None) => DataType::Binary,
            ast::DataType::Int64 => DataType::Int64,
            ast::DataType::Float64 => DataType::Float64,
            _ => return Ok(None),
        };
        Ok(Some(Arc::new(Field::new("", kind, true))))
    }
}
