//! Relation planner of views with options in `FROM`: `T(with_history => true)`, `rows(T, ..)`, `unpack(T, ..)` and
//! `unpack((SELECT ..))`.
//!
//! DataFusion's table functions take no named arguments.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::common::{DFSchema, TableReference};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, FunctionArg, FunctionArgExpr, Ident, ObjectName, ObjectNamePart, Query, TableFactor, Value, VisitMut,
    VisitorMut,
};
use tidetable_functions::{TIMESTAMP, has_history, unpack};
use tidetable_upstream::floats::coerce_expression;

use crate::error::{SqlError, external};
use crate::names::{CATALOG, CELLS, EXPORTS, RECORDS, ROWS, of_version};
use crate::syntax::statement::inner;
use crate::view_options::{CellsShown, ViewOption};

/// The tables that have views of rows, in a store or declared.
pub(crate) trait Views: fmt::Debug + Send + Sync {
    /// Names of the tables.
    ///
    /// # Errors
    /// If they cannot be listed.
    fn names(&self) -> Result<Vec<String>>;

    /// The rows of a table.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn rows(&self, table: &str, shown: CellsShown) -> Result<Arc<dyn TableProvider>>;
}

/// Plans views of rows in `FROM`, for the parser's calls of functions.
#[derive(Debug)]
pub(crate) struct ViewPlanner(pub(crate) Arc<dyn Views>);

/// A relation that is written as a call with arguments.
#[derive(Debug)]
enum ViewCall {
    /// The rows of a table, and its options.
    Rows { table: String, options: Vec<FunctionArg> },
    /// The rows of a table, expanded by `UNPACK`, and its options.
    Unpack { table: String, options: Vec<FunctionArg> },
    /// The result of a query, expanded by `UNPACK`.
    UnpackQuery(Box<Query>),
}

impl ViewCall {
    /// Reads a call; `None` if it is a table function of DataFusion.
    fn read(name: &ObjectName, args: &[FunctionArg], tables: &[String]) -> Result<Option<Self>, SqlError> {
        let parts: Vec<&Ident> = name.0.iter().filter_map(ObjectNamePart::as_ident).collect();
        let parts: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
        let is_table = |name: &str| tables.iter().any(|table| table == name || table == of_version(name).0);
        let known = |table: &str| match is_table(table) {
            true => Ok(table.to_owned()),
            false => Err(SqlError::UnknownTable { table: table.to_owned(), known: tables.to_vec() }),
        };

        let parts = match parts.as_slice() {
            [CATALOG, rest @ ..] if !rest.is_empty() => rest,
            all => all,
        };

        match parts {
            [ROWS, table] => Ok(Some(Self::Rows { table: known(table)?, options: args.to_vec() })),
            [schema @ (RECORDS | CELLS | EXPORTS), table] => {
                Err(SqlError::NoOptions { schema: (*schema).to_owned(), table: (*table).to_owned() })
            }
            [table] if is_table(table) && args.iter().all(is_named) => {
                Ok(Some(Self::Rows { table: (*table).to_owned(), options: args.to_vec() }))
            }
            [function] if function.eq_ignore_ascii_case(ROWS) => {
                let (table, options) = table_first(ROWS, args)?;
                Ok(Some(Self::Rows { table: known(&table)?, options }))
            }
            [function] if function.eq_ignore_ascii_case(UNPACK) => {
                if let [FunctionArg::Unnamed(FunctionArgExpr::Expr(ast::Expr::Subquery(query)))] = args {
                    return Ok(Some(Self::UnpackQuery(query.clone())));
                }
                let (table, options) = table_first(UNPACK, args)?;
                Ok(Some(Self::Unpack { table: known(&table)?, options }))
            }
            // Without named arguments it is a DataFusion table function.
            [table] if args.iter().any(is_named) => known(table).map(|_| None),
            _ => Ok(None),
        }
    }
}

const UNPACK: &str = "unpack";

fn is_named(arg: &FunctionArg) -> bool {
    !matches!(arg, FunctionArg::Unnamed(_))
}

/// The table named by the first argument, and the other arguments.
fn table_first(view: &'static str, args: &[FunctionArg]) -> Result<(String, Vec<FunctionArg>), SqlError> {
    let [first, options @ ..] = args else {
        return Err(SqlError::NoTableName { view, found: "nothing".to_owned() });
    };

    let name = match first {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => table_name(expr),
        _ => None,
    };
    match name {
        Some(name) => Ok((name.to_owned(), options.to_vec())),
        None => Err(SqlError::NoTableName { view, found: first.to_string() }),
    }
}

/// The table that an expression names: `T`, `rows.T` or `'T'`.
fn table_name(expr: &ast::Expr) -> Option<&str> {
    match expr {
        ast::Expr::Identifier(name) => Some(&name.value),
        ast::Expr::CompoundIdentifier(names) => match names.as_slice() {
            [schema, name] if schema.value == ROWS => Some(&name.value),
            _ => None,
        },
        ast::Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(name) | Value::DoubleQuotedString(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

impl RelationPlanner for ViewPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let TableFactor::Table { name, args: Some(args), alias, .. } = &relation else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };

        let plan = match ViewCall::read(name, &args.args, &self.0.names()?).map_err(external)? {
            None => return Ok(RelationPlanning::Original(Box::new(relation))),
            Some(ViewCall::Rows { table, options }) => self.rows(&table, &options, false, context)?,
            Some(ViewCall::Unpack { table, options }) => {
                let rows = self.rows(&table, &options, true, context)?;
                LogicalPlanBuilder::from(unpack(rows)?).alias(TableReference::bare(table))?.build()?
            }
            Some(ViewCall::UnpackQuery(subquery)) => {
                let input =
                    context.plan(TableFactor::Derived { lateral: false, subquery, alias: None, sample: None })?;
                if !has_history(&input) {
                    return Err(external(SqlError::UnpackWithoutHistory));
                }
                if input.schema().fields().iter().any(|field| field.name() == TIMESTAMP) {
                    return Err(external(SqlError::UnpackTwice));
                }
                unpack(input)?
            }
        };

        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias.clone()))))
    }
}

impl ViewPlanner {
    /// Plans the rows of `table`, whose options are evaluated now.
    fn rows(
        &self,
        table: &str,
        options: &[FunctionArg],
        unpacks: bool,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<LogicalPlan> {
        let mut values = Vec::with_capacity(options.len());
        for option in options {
            let (name, value) = named(option).map_err(external)?;
            let option = ViewOption::named(&name).map_err(external)?;
            match constant(context.sql_to_expr(value.clone(), &DFSchema::empty())?)? {
                Expr::Literal(value, _) => values.push((option, value)),
                _ => {
                    let (option, found) = (option.name(), value.to_string());
                    return Err(external(SqlError::NotConstant { option, found }));
                }
            }
        }

        let shown = CellsShown::new(&values, unpacks).map_err(external)?;
        let provider = self.0.rows(table, shown)?;
        LogicalPlanBuilder::scan(TableReference::partial(ROWS, table), provider_as_source(provider), None)?.build()
    }
}

/// Evaluates a constant expression while the query is planned.
pub(crate) fn constant(expr: Expr) -> Result<Expr> {
    let columns = DFSchema::empty();
    let expr = coerce_expression(expr, &columns)?.data;
    let simplifier = ExprSimplifier::new(SimplifyContext::builder().with_schema(Arc::new(columns.clone())).build());
    simplifier.coerce(expr, &columns).and_then(|expr| simplifier.simplify(expr))
}

/// Name and value of an option that is written as `name => value`.
fn named(option: &FunctionArg) -> Result<(String, &ast::Expr), SqlError> {
    match option {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => Ok((name.value.clone(), value)),
        FunctionArg::ExprNamed { name: ast::Expr::Identifier(name), arg: FunctionArgExpr::Expr(value), .. } => {
            Ok((name.value.clone(), value))
        }
        other => Err(SqlError::UnnamedOption { found: other.to_string() }),
    }
}

/// Replaces views with options by their tables, so that references can be listed.
///
/// # Errors
/// As planning the statement.
pub(crate) fn replace_views_by_tables(statement: &mut Statement, tables: &[String]) -> Result<(), SqlError> {
    let Some(statement) = inner(statement) else { return Ok(()) };
    match statement.visit(&mut ViewNamer { tables }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct ViewNamer<'a> {
    tables: &'a [String],
}

impl VisitorMut for ViewNamer<'_> {
    type Break = SqlError;

    fn pre_visit_table_factor(&mut self, relation: &mut TableFactor) -> ControlFlow<SqlError> {
        let TableFactor::Table { name, args, alias, .. } = relation else { return ControlFlow::Continue(()) };
        let Some(given) = args else { return ControlFlow::Continue(()) };
        match ViewCall::read(name, &given.args, self.tables) {
            Ok(None) => {}
            Ok(Some(ViewCall::Rows { table, .. } | ViewCall::Unpack { table, .. })) => {
                *name = ObjectName::from(vec![Ident::new(ROWS), Ident::with_quote('"', table)]);
                *args = None;
            }
            Ok(Some(ViewCall::UnpackQuery(subquery))) => {
                *relation = TableFactor::Derived { lateral: false, subquery, alias: alias.take(), sample: None };
            }
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}
