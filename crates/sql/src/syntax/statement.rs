//! Parses statements and rewrites syntax that DataFusion does not plan, such as that of GoogleSQL for Bigtable.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::{DFSchema, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::logical_expr::{self, LogicalPlan};
use datafusion::prelude::SQLOptions;
use datafusion::sql::parser::{DFParser, DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{
    self, AccessExpr, BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    ObjectName, ObjectNamePart, Select, SelectFlavor, SelectItem, Subscript, TableFactor, TimezoneInfo, Value,
    ValueWithSpan, VisitMut, VisitorMut, WildcardAdditionalOptions, visit_expressions,
};
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::Tokenizer;
use tidetable_functions::{COMPARABLE_WITH, TIMEZONE};
use tidetable_layout::KeyRange;

use crate::advice;
use crate::asof::syntax::{mark_asof_joins, nest_asof_joins};
use crate::error::{SqlError, external};
use crate::planning_thread::with_deep_stack;
use crate::syntax::depth::{MAX_NESTING, check_depth};
use crate::syntax::dialect::TidetableDialect;
use crate::syntax::duckdb::replace_duckdb;
use crate::syntax::googlesql::functions::GoogleFunctions;
use crate::syntax::googlesql::strict::check as check_strict;
use crate::syntax::googlesql::unnest::Unnested;
use crate::syntax::googlesql::values::GoogleValues;
use crate::syntax::googlesql::{self, DUPLICATE_MARK, GoogleSql};
use crate::syntax::grouping_sets::check_grouping_sets;
use crate::syntax::headings::{WrittenNames, name_all, written_names};
use crate::syntax::inner_headings::with_inner_names;
use crate::syntax::only_reads::check_reads;
use crate::syntax::relations::check_relations;
use crate::syntax::rewrite::cast_labels::label_casts;
use crate::syntax::rewrite::file_functions::replace_file_function;
use crate::syntax::rewrite::float_values::{FloatValues, as_double};
use crate::syntax::rewrite::syntax::{call, name_of, take};
use crate::syntax::rewrite::tuple_members::replace_tuple_members;
use crate::syntax::select_all::{without_empty_projections, without_select_list};
use crate::syntax::select_lists::SelectLists;

/// A statement, with the names of its columns as its text has them.
pub(crate) struct NamedStatement {
    pub(crate) statement: Statement,
    /// The statement with written names in its subqueries, if it has some to be named.
    pub(crate) with_inner_names: Option<Statement>,
    /// The written names of the columns of the result, if they are known.
    pub(crate) names: Option<WrittenNames>,
}

/// Parses a statement. Accepts byte strings `b'..'` and fields of list elements `list[1].field`.
///
/// # Errors
/// If it is not a single SQL statement.
pub(crate) fn parse(state: &SessionState, query: &str) -> Result<Statement> {
    with_deep_stack(query, || {
        let mut statement = parse_as_written(state, query)?;
        rewrite(state, &mut statement)?;
        Ok(statement)
    })
}

/// As [`parse`], with the names of the columns as the query wrote them.
///
/// # Errors
/// As [`parse`].
pub(crate) fn parse_with_names(state: &SessionState, query: &str) -> Result<NamedStatement> {
    with_deep_stack(query, || {
        let mut statement = parse_as_written(state, query)?;
        let lists = SelectLists::read(query);
        let names = written_names(&statement, &lists);
        let mut with_inner_names = with_inner_names(&statement, &lists);

        rewrite(state, &mut statement)?;
        if let Some(named) = &mut with_inner_names {
            rewrite(state, named)?;
        }
        Ok(NamedStatement { statement, with_inner_names, names })
    })
}

/// The statement as the parser makes it.
fn parse_as_written(state: &SessionState, query: &str) -> Result<Statement> {
    let parsed = parser(state, query)?.parse_statements();
    let mut statements = parsed.map_err(|error| with_advice(too_deep(error), query))?;
    let Some(statement) = statements.pop_front() else { return plan_err!("there is no statement") };
    if !statements.is_empty() {
        return plan_err!("there is more than one statement");
    }
    Ok(statement)
}

/// Rewrites a query of PostgreSQL's system catalogs, as other statements are. Its columns may have equal names.
pub(crate) fn system_statement(query: ast::Statement) -> Statement {
    let mut statement = Statement::Statement(Box::new(query));
    if let Some(statement) = inner(&mut statement) {
        let _: ControlFlow<()> = statement.visit(&mut StatementRewriter { is_google: true });
    }
    statement
}

/// Refuses what cannot be planned, and rewrites what DataFusion plans otherwise or not at all.
fn rewrite(state: &SessionState, statement: &mut Statement) -> Result<()> {
    let google = google_of(state);
    let Some(statement) = inner(statement) else { return Ok(()) };
    check_grouping_sets(statement)?;
    if google.is_some_and(|google| google.strict) {
        check_strict(statement)?;
    }
    if google.is_some() {
        let _: ControlFlow<()> = statement.visit(&mut GoogleValues);
    }
    replace_tuple_members(statement)?;
    check_relations(statement)?;
    if google.is_none() {
        replace_duckdb(state, statement)?;
    }
    let _: ControlFlow<()> = statement.visit(&mut GoogleFunctions { state, is_google: google.is_some() });
    let _: ControlFlow<()> = statement.visit(&mut Unnested);
    let _: ControlFlow<()> = statement.visit(&mut StatementRewriter { is_google: google.is_some() });
    let _: ControlFlow<()> = statement.visit(&mut FloatValues { state });
    label_casts(statement);
    Ok(())
}

/// Plans an expression over columns.
///
/// # Errors
/// If the expression is not valid over them.
pub(crate) fn expression(state: &SessionState, sql: &str, columns: &DFSchema) -> Result<logical_expr::Expr> {
    with_deep_stack(sql, || {
        let mut expression = parser(state, sql)?.parse_into_expr().map_err(too_deep)?;
        let _: ControlFlow<()> = expression.visit(&mut GoogleFunctions { state, is_google: false });
        let _: ControlFlow<()> = expression.visit(&mut StatementRewriter { is_google: false });
        state.create_logical_expr_from_sql_expr(expression, columns)
    })
}

/// The error of the parser, with what to write instead if the statement is of a form that is known and not read.
fn with_advice(error: DataFusionError, query: &str) -> DataFusionError {
    let Some(advice) = advice::for_statement(query) else { return error };
    match error {
        DataFusionError::Diagnostic(diagnostic, cause) => {
            DataFusionError::Diagnostic(diagnostic, Box::new(with_advice(*cause, query)))
        }
        DataFusionError::SQL(cause, trace) => match *cause {
            ParserError::ParserError(said) => {
                let (text, place) = match said.split_once(" at Line: ") {
                    Some((text, place)) => (text.to_owned(), format!(" at Line: {place}")),
                    None => (said, String::new()),
                };
                let said = ParserError::ParserError(format!("{text}: {advice}{place}"));
                DataFusionError::SQL(Box::new(said), trace)
            }
            other => DataFusionError::SQL(Box::new(other), trace),
        },
        error => error,
    }
}

/// The error of the parser, or that of its limit in this project's words.
fn too_deep(error: DataFusionError) -> DataFusionError {
    match error.find_root() {
        DataFusionError::SQL(cause, _) if matches!(**cause, ParserError::RecursionLimitExceeded) => {
            external(SqlError::TooDeep { what: "nested expressions", limit: MAX_NESTING, at: None })
        }
        _ => error,
    }
}

fn parser<'a>(state: &SessionState, text: &'a str) -> Result<DFParser<'a>> {
    let mut tokens = match google_of(state) {
        Some(_) => googlesql::literals::tokens(text)?,
        None => Tokenizer::new(&TidetableDialect, text).tokenize_with_location().map_err(ParserError::from)?,
    };
    check_depth(&tokens)?;
    mark_asof_joins(&mut tokens);
    let limit = state.config_options().sql_parser.recursion_limit.get();
    DFParserBuilder::new(tokens).with_dialect(&TidetableDialect).with_recursion_limit(limit).build()
}

/// How a session speaks GoogleSQL; `None` for one that speaks the dialect of `tidetable sql`.
fn google_of(state: &SessionState) -> Option<GoogleSql> {
    state.config().get_extension::<GoogleSql>().map(|google| *google)
}

/// Plans a query; refuses statements that write, because jobs make tables and exports write files.
///
/// # Errors
/// If it is not a query, or not valid.
pub(crate) async fn plan(state: &SessionState, query: &str) -> Result<LogicalPlan> {
    plan_statement(state, parse(state, query)?).await
}

/// Plans a statement with written names in its subqueries, if it has some to be named and does not refer to a column by
/// DataFusion's name; otherwise as it is.
///
/// # Errors
/// If it cannot be planned.
pub(crate) async fn plan_named(
    state: &SessionState,
    statement: Statement,
    with_inner_names: Option<Statement>,
) -> Result<LogicalPlan> {
    if let Some(named) = with_inner_names {
        match plan_statement(state, named).await {
            Err(error) if is_of_columns(&error) => {}
            planned => return planned,
        }
    }
    plan_statement(state, statement).await
}

/// Whether written names may be the cause of an error: a column is unknown or ambiguous, or two of a result have one name.
fn is_of_columns(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::SchemaError(..) => true,
        DataFusionError::Plan(said) => said.contains("ambiguous") || has_equal_names(error),
        _ => false,
    }
}

/// Whether two columns of a select list have one name.
fn has_equal_names(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::Plan(said) if said.contains("unique expression names"))
}

/// As [`plan`], for a parsed statement.
///
/// # Errors
/// If it is not a query, or not valid.
pub(crate) async fn plan_statement(state: &SessionState, mut statement: Statement) -> Result<LogicalPlan> {
    check_reads(&statement)?;
    let only_queries = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    let plan = match plan_select_all(state, &statement).await {
        Some(plan) => plan,
        None => match state.statement_to_plan(statement.clone()).await {
            // `2 = ANY(l)` and `array_has(l, 2)` are one expression, with one name.
            Err(error) if has_equal_names(&error) => {
                inner(&mut statement).map(name_all);
                state.statement_to_plan(statement).await?
            }
            planned => planned?,
        },
    };
    only_queries.verify_plan(&plan)?;
    Ok(plan)
}

/// The plan of a `SELECT *` without expanding its columns, if possible. Errors are reported by planning the statement
/// itself.
async fn plan_select_all(state: &SessionState, statement: &Statement) -> Option<LogicalPlan> {
    let plan = state.statement_to_plan(without_select_list(statement)?).await.ok()?;
    without_empty_projections(plan)
}

/// The SQL statement inside a statement of DataFusion, if it has one.
pub(crate) fn inner(statement: &mut Statement) -> Option<&mut ast::Statement> {
    match statement {
        Statement::Statement(statement) => Some(statement),
        Statement::Explain(explain) => inner(&mut explain.statement),
        _ => None,
    }
}

struct StatementRewriter {
    /// Whether the statement is GoogleSQL, whose columns may have equal names.
    is_google: bool,
}

impl VisitorMut for StatementRewriter {
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

    fn pre_visit_table_factor(&mut self, relation: &mut TableFactor) -> ControlFlow<()> {
        replace_file_function(relation);
        if let TableFactor::NestedJoin { table_with_joins, .. } = relation {
            nest_asof_joins(table_with_joins, true);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        // `FROM t` is `SELECT * FROM t`, as in DuckDB.
        if select.flavor == SelectFlavor::FromFirstNoSelect && select.projection.is_empty() {
            select.projection.push(SelectItem::Wildcard(WildcardAdditionalOptions::default()));
            select.flavor = SelectFlavor::Standard;
        }
        select.from.iter_mut().for_each(|tables| nest_asof_joins(tables, false));
        alias_duplicates(&mut select.projection, self.is_google);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::AtTimeZone { timestamp, time_zone } => {
                *expr = call(TIMEZONE, vec![take(time_zone), take(timestamp)]);
            }
            Expr::AnyOp { left, right, .. } | Expr::AllOp { left, right, .. }
                if !matches!(right.as_ref(), Expr::Subquery(_)) =>
            {
                make_comparable(left, right);
            }
            // `^` is power, as in PostgreSQL and DuckDB; `xor(a, b)` as in DuckDB.
            Expr::BinaryOp { left, op: BinaryOperator::BitwiseXor, right } => {
                *expr = call("power", vec![as_double(take(left)), as_double(take(right))]);
            }
            Expr::Function(function) => {
                compare_items(function);
                if let Some(range) = prefix_range(function) {
                    *expr = range;
                } else if let Some((left, op, right)) = operator_of(function) {
                    let (left, right) = (Box::new(left.clone()), Box::new(right.clone()));
                    *expr = Expr::Nested(Box::new(Expr::BinaryOp { left, op, right }));
                } else if let Some(name) = own_name(&mut function.name)
                    && let Some((_, known)) =
                        OTHER_NAMES.iter().find(|(other, _)| name.value.eq_ignore_ascii_case(other))
                {
                    name.value = (*known).to_owned();
                }
            }
            _ => {}
        }
        // A number with an exponent is a float, because it may exceed any decimal.
        if let Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) = expr
            && number.bytes().any(|byte| matches!(byte, b'e' | b'E'))
        {
            let text = Value::SingleQuotedString(number.clone()).with_empty_span();
            *expr = as_double(Expr::Value(text));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        if let Value::SingleQuotedByteStringLiteral(text) | Value::DoubleQuotedByteStringLiteral(text) = &value.value {
            value.value = Value::HexStringLiteral(hex::encode(text));
        }
        ControlFlow::Continue(())
    }
}

/// Makes two expressions comparable, of which one may be a list of items like the other; row "Items of lists" of
/// `docs/datafusion-workarounds.md`.
fn make_comparable(left: &mut Expr, right: &mut Expr) {
    let one = call(COMPARABLE_WITH, vec![left.clone(), right.clone()]);
    let other = call(COMPARABLE_WITH, vec![right.clone(), left.clone()]);
    (*left, *right) = (one, other);
}

/// Makes the arguments of a function of a list and an item comparable, as in `array_has([1.5], 2)`.
fn compare_items(function: &mut Function) {
    const PREFIXES: [&str; 2] = ["array_", "list_"];
    // Of these the second argument is an item, never a length or a place.
    const OF_ITEMS: [&str; 7] = ["has", "contains", "position", "positions", "indexof", "remove", "remove_all"];
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return };
    let name = name.value.to_ascii_lowercase();
    let FunctionArguments::List(list) = &mut function.args else { return };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(one)), FunctionArg::Unnamed(FunctionArgExpr::Expr(two))] =
        list.args.as_mut_slice()
    else {
        return;
    };
    let Some(what) = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)) else { return };
    // Lengths, places, separators and conditions are no items.
    let is_other = match &*two {
        Expr::Value(value) => !OF_ITEMS.contains(&what) && !value.to_string().contains('.'),
        expr => matches!(expr, Expr::Lambda(_)),
    };
    if !what.contains("agg") && !is_other {
        make_comparable(one, two);
    }
}

/// Names that functions of DataFusion also have, beside those that it knows.
const OTHER_NAMES: [(&str, &str); 3] = [("sign", "signum"), ("ceiling", "ceil"), ("pow", "power")];

fn own_name(name: &mut ObjectName) -> Option<&mut Ident> {
    match name.0.as_mut_slice() {
        [ObjectNamePart::Identifier(name)] => Some(name),
        _ => None,
    }
}

/// Renames duplicate columns, as DuckDB does: DataFusion refuses two columns with one name. In GoogleSQL the names stay equal
/// in the result, so what follows them is marked.
fn alias_duplicates(items: &mut [SelectItem], is_google: bool) {
    let mark = if is_google { DUPLICATE_MARK } else { '_' };
    let mut seen: HashMap<String, usize> = HashMap::new();
    let (mut everything, mut subqueries) = (false, false);

    for item in items {
        match item {
            SelectItem::Wildcard(options) => {
                everything |= options.opt_except.is_none() && options.opt_exclude.is_none();
            }
            SelectItem::UnnamedExpr(expr) => {
                let text = expr.to_string();
                let in_all = usize::from(everything && matches!(expr, Expr::Identifier(_)));
                let before = seen.entry(name_of(expr)).or_insert(in_all);
                if *before > 0 {
                    let name = match expr {
                        Expr::Identifier(name) => &name.value,
                        _ => &text,
                    };
                    let alias = Ident::with_quote('"', format!("{name}{mark}{before}"));
                    *item = SelectItem::ExprWithAlias { expr: take(expr), alias };
                } else if has_subquery(expr) {
                    // DataFusion gives all subqueries one name.
                    if subqueries {
                        let alias = Ident::with_quote('"', text);
                        *item = SelectItem::ExprWithAlias { expr: take(expr), alias };
                    }
                    subqueries = true;
                }
                *before += 1;
            }
            SelectItem::ExprWithAlias { alias, .. } if is_google => {
                let before = seen.entry(alias.value.clone()).or_insert(0);
                if *before > 0 {
                    *alias = Ident::with_quote('"', format!("{}{mark}{before}", alias.value));
                }
                *before += 1;
            }
            _ => {}
        }
    }
}

/// Whether an expression is a subquery or holds one.
fn has_subquery(expr: &Expr) -> bool {
    let is_subquery = |expr: &Expr| match expr {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    visit_expressions(expr, is_subquery).is_break()
}

/// The range of byte strings that `starts_with(value, X'..')` stands for: DataFusion's function takes text only, and a range can
/// select row keys.
pub(crate) fn prefix_range(function: &Function) -> Option<Expr> {
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(value)), FunctionArg::Unnamed(FunctionArgExpr::Expr(prefix))] =
        list.args.as_slice()
    else {
        return None;
    };
    let Expr::Value(ValueWithSpan { value: Value::HexStringLiteral(digits), .. }) = prefix else { return None };
    if !name.value.eq_ignore_ascii_case("starts_with") {
        return None;
    }

    let bytes = hex::decode(digits).ok()?;

    let compared = |op: BinaryOperator, bytes: &[u8]| {
        let bound = Expr::Value(Value::HexStringLiteral(hex::encode(bytes)).with_empty_span());
        Expr::BinaryOp { left: Box::new(value.clone()), op, right: Box::new(bound) }
    };

    let range = KeyRange::prefix(&bytes);
    let start = compared(BinaryOperator::GtEq, &range.start);
    Some(Expr::Nested(Box::new(match &range.end {
        Some(end) => {
            let end = Box::new(compared(BinaryOperator::Lt, end));
            Expr::BinaryOp { left: Box::new(start), op: BinaryOperator::And, right: end }
        }
        None => start,
    })))
}

/// The operator that `xor(left, right)` and `mod(left, right)` stand for.
fn operator_of(function: &Function) -> Option<(&Expr, BinaryOperator, &Expr)> {
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
    let op = match name.value.to_ascii_lowercase().as_str() {
        "xor" => BinaryOperator::BitwiseXor,
        "mod" => BinaryOperator::Modulo,
        _ => return None,
    };
    let FunctionArguments::List(list) = &function.args else { return None };
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(left)), FunctionArg::Unnamed(FunctionArgExpr::Expr(right))] => {
            Some((left, op, right))
        }
        _ => None,
    }
}

/// Plans type names that DataFusion does not know, or understands differently.
#[derive(Debug)]
pub(crate) struct BigtableTypes;

impl TypePlanner for BigtableTypes {
    fn plan_type_field(&self, kind: &ast::DataType) -> Result<Option<FieldRef>> {
        let kind = match kind {
            ast::DataType::Bytes(None) => DataType::Binary,
            ast::DataType::Int64 => DataType::Int64,
            ast::DataType::Float64 => DataType::Float64,
            ast::DataType::Float32 => DataType::Float32,
            // Microseconds, as in tables; DataFusion's nanoseconds end in 2262.
            ast::DataType::Timestamp(None, zone) => {
                let has_zone = matches!(zone, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz);
                DataType::Timestamp(TimeUnit::Microsecond, has_zone.then(|| "UTC".into()))
            }
            ast::DataType::Datetime(None) => DataType::Timestamp(TimeUnit::Microsecond, None),
            _ => return Ok(None),
        };
        Ok(Some(Arc::new(Field::new("", kind, true))))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::prelude::SessionContext;

    use super::*;

    #[tokio::test]
    async fn only_unknown_columns_are_planned_by_other_names() {
        let state = SessionContext::new().state();
        let parsed = |query: &str| parse(&state, query).unwrap();
        let planned = async |named: &str| plan_named(&state, parsed("SELECT 1"), Some(parsed(named))).await;

        for named in ["SELECT x", "SELECT a.x FROM (SELECT 1 AS x) AS a, (SELECT 1 AS x) AS b WHERE x = 1"] {
            assert!(planned(named).await.is_ok(), "{named}");
        }
        for named in ["SELECT * FROM missing", "INSERT INTO missing VALUES (1)", "SELECT nothing_like_it(1)"] {
            assert!(planned(named).await.is_err(), "{named}");
        }
    }
}
