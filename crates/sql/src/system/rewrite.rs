//! Makes a query of system catalogs, as PostgreSQL reads it, one that is planned here.

use std::ops::ControlFlow;

use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArguments, Ident, ObjectName, ObjectNamePart, Query, Select, SelectItem, SetExpr,
    Statement, TableFactor, Value, ValueWithSpan, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::error::{SqlError, external};
use crate::syntax::googlesql::DUPLICATE_MARK;
use crate::system::aggregates::has_aggregate;
use crate::system::arrays::array_of;
use crate::system::casts;
use crate::system::empty::{is_simplified, simplify};
use crate::system::functions::{OBJECT, constant, filled, replacement};
use crate::system::named::Named;
use crate::system::parse::{is_keyword, relation_parts};
use crate::system::syntax::{boolean, column_name, function_name, null, quoted, text_of, value};
use crate::system::{System, SystemNames, SystemTables};

/// The schema of tables and functions without one.
const CATALOG: &str = "pg_catalog";

/// Rewrites a query.
///
/// # Errors
/// If it names a relation or a type that does not exist.
pub(crate) fn rewrite(statement: &mut Statement, system: &System) -> Result<()> {
    name_columns(statement);
    let named = Named::of(statement, &system.tables);
    let mut rewriter = Rewriter { tables: &system.tables, names: system.names.as_ref(), named, parts: 0 };
    match statement.visit(&mut rewriter) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Gives columns the names that PostgreSQL gives them: those of functions, for what stands for these has others.
fn name_columns(statement: &mut Statement) {
    let Statement::Query(query) = statement else { return };
    let mut body = query.body.as_mut();
    while let SetExpr::SetOperation { left, .. } = body {
        body = left.as_mut();
    }
    let SetExpr::Select(select) = body else { return };
    let is_all = |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    let has_all = select.projection.iter().any(is_all);
    for (place, item) in select.projection.iter_mut().enumerate() {
        let SelectItem::UnnamedExpr(expr) = item else { continue };
        let is_column = match expr {
            Expr::Identifier(name) => !is_keyword(&name.value),
            Expr::CompoundIdentifier(_) => true,
            _ => false,
        };
        // A column beside `*` is there twice, under one name.
        let mark = match (is_column, has_all) {
            (true, false) => continue,
            (true, true) => format!("{DUPLICATE_MARK}all{place}"),
            (false, _) => String::new(),
        };
        let alias = quoted(&format!("{}{mark}", column_name(expr)));
        *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
    }
}

/// The most expressions that a query may get by rewriting: what stands for some functions has their arguments several times, so
/// that calls inside of calls grow by powers.
const MAX_PARTS: usize = 10_000;

struct Rewriter<'a> {
    tables: &'a SystemTables,
    names: &'a dyn SystemNames,
    named: Named,
    /// The expressions that stand for others so far.
    parts: usize,
}

/// Counts expressions up to a number.
struct Parts(usize);

impl VisitorMut for Parts {
    type Break = ();

    fn pre_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<()> {
        self.0 += 1;
        if self.0 > MAX_PARTS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Rewriter<'_> {
    /// Puts `replaced` in the place of an expression.
    ///
    /// # Errors
    /// [`SqlError::TooManyParts`] if the query has become too large by that.
    fn replace(&mut self, expr: &mut Expr, replaced: Expr) -> Result<()> {
        *expr = replaced;
        let mut parts = Parts(0);
        let _: ControlFlow<()> = expr.visit(&mut parts);
        self.parts += parts.0;
        match self.parts > MAX_PARTS {
            true => Err(external(SqlError::TooManyParts { limit: MAX_PARTS })),
            false => Ok(()),
        }
    }

    /// What stands for an expression whose parts were rewritten; `None` if it stays.
    fn replaced(&self, expr: &Expr) -> Result<Option<Expr>> {
        Ok(match expr {
            Expr::Function(function) => {
                let name = function_name(function);
                if let (FunctionArguments::Subquery(query), "array") = (&function.args, name.as_str()) {
                    return array_of(query);
                }
                if name == "user" && function.args == FunctionArguments::None {
                    return Ok(Some(constant("current_user", &[], self.names)));
                }
                match replacement(&name, function, self.names)? {
                    Some(expr) => Some(expr),
                    None if function.name.0.len() > 1 => {
                        let mut function = function.clone();
                        function.name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(name))]);
                        Some(Expr::Function(function))
                    }
                    None => None,
                }
            }
            Expr::Identifier(name) if name.quote_style.is_none() && is_keyword(&name.value) => {
                Some(constant(&name.value, &[], self.names))
            }
            Expr::Collate { expr, .. } => Some(expr.as_ref().clone()),
            Expr::BinaryOp { left, op, right } => {
                operator(left, op).map(|op| Expr::BinaryOp { left: left.clone(), op, right: right.clone() })
            }

            Expr::Subquery(query) if is_simplified(query) => Some(null()),
            Expr::Exists { subquery, negated } if is_simplified(subquery) => Some(boolean(*negated)),
            Expr::InSubquery { subquery, negated, .. } if is_simplified(subquery) => Some(boolean(*negated)),
            _ => None,
        })
    }

    /// Reads a function in FROM as the table that it stands for, or as a subquery.
    fn table(&self, factor: &mut TableFactor) -> Result<()> {
        let TableFactor::Table { name, args, alias, .. } = factor else { return Ok(()) };
        let (schema, table) = relation_parts(name);
        if schema.is_none() && self.named.is_catalog(&table, self.tables) {
            let parts = [CATALOG, table.as_str()].map(|part| ObjectNamePart::Identifier(Ident::new(part)));
            // Columns may be named by the table alone.
            *name = ObjectName(parts.into());
            *args = None;
        }
        let Some(given) = args else { return Ok(()) };
        if schema.as_deref() == Some(CATALOG) && self.tables.schema_of(&table).is_some() {
            *args = None;
            return Ok(());
        }
        if table == "unnest" {
            *name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(table))]);
            return Ok(());
        }

        let list = given.args.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let call = match table.as_str() {
            "generate_series" => format!("unnest(generate_series({list}))"),
            _ => format!("{table}({list})"),
        };
        let column = match alias {
            Some(alias) => alias.columns.first().map_or_else(|| alias.name.clone(), |column| column.name.clone()),
            None => Ident::new(table.clone()),
        };
        let alias = alias.as_ref().map_or_else(|| table.clone(), |alias| alias.name.to_string());
        *factor = derived(&format!("(SELECT {call} AS {column}) AS {alias}"))?;
        Ok(())
    }
}

/// A subquery in FROM, of its text.
fn derived(text: &str) -> Result<TableFactor> {
    let query = format!("SELECT * FROM {text}");
    let statements = Parser::parse_sql(&PostgreSqlDialect {}, &query).ok();
    let select = statements.and_then(|mut statements| match statements.pop()? {
        Statement::Query(query) => match *query.body {
            SetExpr::Select(select) => Some(select),
            _ => None,
        },
        _ => None,
    });
    match select.and_then(|mut select| select.from.pop()) {
        Some(from) => Ok(from.relation),
        None => plan_err!("a function in FROM cannot be read: {text}"),
    }
}

/// The operator that stands for another; `None` if it stays. Names are found in any case, for psql makes those without quotes
/// lower case, and here they keep theirs.
fn operator(left: &Expr, op: &BinaryOperator) -> Option<BinaryOperator> {
    let plain = match op {
        BinaryOperator::PGCustomBinaryOperator(names) => match names.last()?.as_str() {
            "~" => BinaryOperator::PGRegexMatch,
            "~*" => BinaryOperator::PGRegexIMatch,
            "!~" => BinaryOperator::PGRegexNotMatch,
            "!~*" => BinaryOperator::PGRegexNotIMatch,
            "=" => BinaryOperator::Eq,
            "<>" => BinaryOperator::NotEq,
            _ => return None,
        },
        op => op.clone(),
    };
    let plain = match plain {
        BinaryOperator::PGRegexMatch if is_relation_name(left) => BinaryOperator::PGRegexIMatch,
        plain => plain,
    };
    (plain != *op).then_some(plain)
}

fn is_relation_name(expr: &Expr) -> bool {
    matches!(column_name(expr).as_str(), "relname" | "nspname")
}

/// Stands for the escape that is written twice, while the others are replaced: no name has it.
const TWICE: char = '\u{1}';

/// Writes a pattern with the escape that the planner knows, the backslash.
fn with_backslashes(pattern: &mut Expr, escape: &mut Option<ValueWithSpan>) -> Result<()> {
    let Some(ValueWithSpan { value: Value::SingleQuotedString(escaping), .. }) = escape else { return Ok(()) };
    let Some(escaping) = escaping.chars().next() else { return Ok(()) };

    *pattern = match text_of(pattern) {
        Some(text) => value(Value::SingleQuotedString(escaped_by_backslash(&text, escaping))),
        // Such as `$1 || '%'`: the escape twice is the character itself.
        None if escaping != '\\' => {
            let escaping = if escaping == '\'' { "''".to_owned() } else { escaping.to_string() };
            let template = format!(
                r"replace(replace(replace(replace($1, '\', '\\'), '{escaping}{escaping}', '{TWICE}'), '{escaping}', '\'), '{TWICE}', '{escaping}')"
            );
            filled(&template, std::slice::from_ref(pattern))?
        }
        None => return Ok(()),
    };
    *escape = None;
    Ok(())
}

/// A pattern whose escape is `escaping`, written with the backslash.
fn escaped_by_backslash(text: &str, escaping: char) -> String {
    let mut written = String::with_capacity(text.len());
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter == escaping {
            written.push('\\');
            written.extend(letters.next());
        } else if letter == '\\' {
            written.push_str("\\\\");
        } else {
            written.push(letter);
        }
    }
    written
}

/// Makes a scalar subquery one that gives a row at most, as the planner wants it.
fn single_row(query: &mut Query) -> Result<()> {
    if query.limit_clause.is_some() || query.fetch.is_some() || is_simplified(query) {
        return Ok(());
    }
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(()) };
    if !is_plain(select) {
        return Ok(());
    }
    query.order_by = None;
    if let [SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }] = select.projection.as_mut_slice()
        && !has_aggregate(expr)
    {
        // Structs have no order.
        let template = if is_object(expr) { "first_value($1)" } else { "min($1)" };
        *expr = filled(template, std::slice::from_ref(expr))?;
    }
    Ok(())
}

fn is_object(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(expr) => is_object(expr),
        Expr::Function(function) => function_name(function) == OBJECT,
        _ => false,
    }
}

/// Whether a SELECT has tables, and neither groups nor DISTINCT.
fn is_plain(select: &Select) -> bool {
    use datafusion::sql::sqlparser::ast::GroupByExpr;
    let has_groups = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    !select.from.is_empty() && !has_groups && select.distinct.is_none() && select.projection.len() == 1
}

fn flow(done: Result<()>) -> ControlFlow<DataFusionError> {
    match done {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

impl VisitorMut for Rewriter<'_> {
    type Break = DataFusionError;

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<DataFusionError> {
        flow(self.table(factor))
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        // Casts of casts: what stands for the outer one may be another.
        while let Expr::Cast { expr: inner, data_type, .. } = expr {
            let replaced = match casts::replacement(inner, data_type, self.names) {
                Ok(Some(replaced)) => self.replace(expr, replaced),
                Ok(None) => break,
                Err(error) => Err(error),
            };
            if let Err(error) = replaced {
                return ControlFlow::Break(error);
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        let replaced = match self.replaced(expr) {
            Ok(Some(replaced)) => self.replace(expr, replaced),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(error) = replaced {
            return ControlFlow::Break(error);
        }
        match expr {
            Expr::Subquery(query) => flow(single_row(query)),
            Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
                flow(with_backslashes(pattern, escape_char))
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        simplify(query, self.tables, &self.named);
        ControlFlow::Continue(())
    }

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<DataFusionError> {
        if let Value::EscapedStringLiteral(text) | Value::NationalStringLiteral(text) = &value.value {
            value.value = Value::SingleQuotedString(text.clone());
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::sync::Arc;

    use arrow::array::{Int64Array, RecordBatch, StringArray};
    use datafusion::scalar::ScalarValue;

    use super::*;
    use crate::system::{SystemTable, parse_postgres};

    #[derive(Debug)]
    struct Names;

    impl SystemNames for Names {
        fn relation(&self, name: &str) -> Option<i64> {
            (name == "T").then_some(7)
        }

        fn type_id(&self, name: &str) -> Option<i64> {
            (name == "text").then_some(25)
        }

        fn type_names(&self) -> Vec<(i64, String)> {
            vec![(25, "text".to_owned())]
        }

        fn constant(&self, function: &str, _: &[String]) -> Option<ScalarValue> {
            (function == "current_user").then(|| ScalarValue::Utf8(Some("ada".to_owned())))
        }

        fn search_path(&self) -> Vec<String> {
            vec!["records".to_owned()]
        }

        fn visible_oids(&self) -> Range<i64> {
            1_000_000..2_000_000
        }

        fn keeps_case(&self, word: &str) -> bool {
            word == "T"
        }
    }

    /// A catalog with a table of a row, and one without.
    fn system() -> System {
        let rows = |count: usize| {
            let oids = Arc::new(Int64Array::from(vec![7; count]));
            let names = Arc::new(StringArray::from(vec!["T"; count]));
            RecordBatch::try_from_iter([("oid", oids as _), ("relname", names as _)]).unwrap()
        };
        let table = |name, rows| SystemTable { schema: "pg_catalog", name, rows };
        let tables = vec![table("pg_class", rows(1)), table("pg_index", rows(0))];
        System { tables: Arc::new(SystemTables::new(tables).unwrap()), names: Arc::new(Names) }
    }

    fn rewritten(query: &str) -> Result<String> {
        let system = system();
        let mut statement = parse_postgres(query, &|word| system.names.keeps_case(word))?;
        rewrite(&mut statement, &system)?;
        Ok(statement.to_string())
    }

    #[test]
    fn words_without_quotes_are_in_lower_case() {
        let found = rewritten("SELECT C.RELNAME, 'X' FROM PG_CLASS C WHERE RELNAME = \"Y\"").unwrap();
        assert_eq!(found, "SELECT c.relname, 'X' AS \"?column?\" FROM pg_catalog.pg_class c WHERE relname = \"Y\"");
    }

    #[test]
    fn names_and_functions_stand_for_values() {
        assert_eq!(rewritten("SELECT 'T'::regclass::oid AS a").unwrap(), "SELECT (CAST(7 AS BIGINT)) AS a");
        assert_eq!(rewritten("SELECT current_user AS a, user AS b").unwrap(), "SELECT 'ada' AS a, 'ada' AS b");
        assert!(
            rewritten("SELECT pg_catalog.pg_table_is_visible(oid) AS a FROM pg_class")
                .unwrap()
                .contains("(oid < 1000000 OR (oid >= 1000000 AND oid < 2000000))")
        );
        assert!(rewritten("SELECT format_type(25, NULL)").unwrap().ends_with("AS \"format_type\""));
        let found = rewritten("SELECT (SELECT json_build_object('a'::text, oid) FROM pg_class) AS a").unwrap();
        assert!(found.contains("first_value((named_struct('a', oid)))"), "{found}");
        let found = rewritten("SELECT $1::regclass AS a").unwrap();
        assert!(found.contains("CAST($1 AS VARCHAR) IN (c.relname"), "{found}");
        assert!(rewritten("SELECT 'nowhere'::regclass").unwrap_err().to_string().contains("'nowhere' not found"));
        let found = rewritten(
            "SELECT 1 AS a FROM pg_class c WHERE c.relname OPERATOR(pg_catalog.~) '^t$' COLLATE pg_catalog.default",
        );
        assert!(found.unwrap().ends_with("c.relname ~* '^t$'"));
        let found = rewritten("SELECT 1 AS a FROM pg_class c WHERE c.relname NOT LIKE 'pg/_%' ESCAPE '/'").unwrap();
        assert!(found.ends_with(r"NOT LIKE 'pg\_%'"), "{found}");
        let found = rewritten("SELECT 1 AS a FROM pg_class c WHERE c.relname LIKE $1 || '%' ESCAPE '/'").unwrap();
        assert!(found.contains("replace($1 || '%', ") && !found.contains("ESCAPE"), "{found}");
    }

    #[test]
    fn queries_over_tables_without_rows_are_empty() {
        let nothing = "SELECT NULL AS \"relname\", NULL AS \"a\" WHERE false";
        assert_eq!(
            rewritten("SELECT i.relname, (x).y AS a FROM pg_class c JOIN pg_index i ON true ORDER BY 1").unwrap(),
            nothing
        );
        // With a row beside it, or an aggregate over it, there is an answer.
        assert!(
            rewritten("SELECT i.relname FROM pg_class c LEFT JOIN pg_index i ON true").unwrap().contains("LEFT JOIN")
        );
        assert!(rewritten("SELECT count(*) FROM pg_index").unwrap().contains("pg_index"));
        let found = rewritten("SELECT EXISTS (SELECT 1 FROM pg_index) AS a, (SELECT oid FROM pg_index) AS b").unwrap();
        assert_eq!(found, "SELECT false AS a, NULL AS b");
        // So it is however an aggregate is written, and wherever it stands.
        for query in [
            "SELECT bit_or(1) IS NULL FROM pg_index",
            "SELECT 1 FROM pg_index HAVING count(*) = 0",
            "SELECT CASE count(*) WHEN 0 THEN 'none' END FROM pg_index",
            "SELECT ARRAY[max(oid)] FROM pg_index",
            "SELECT count(*) FROM pg_index GROUP BY ROLLUP(oid)",
            "SELECT count(*) FROM pg_index GROUP BY ()",
            "SELECT f(oid) FILTER (WHERE true) FROM pg_index",
            "WITH pg_index AS (SELECT 1 AS a) SELECT a FROM pg_index",
            "SELECT v FROM pg_class c CROSS JOIN (SELECT make_array(1) AS a) AS s, pg_catalog.unnest(a) AS u (v)",
            "SELECT v FROM (SELECT make_array(1) AS a) AS s, pg_catalog.unnest(s.a) AS u (v)",
        ] {
            let found = rewritten(query).unwrap();
            assert!(!found.contains("WHERE false"), "{query}: {found}");
        }
        // Those of a subquery, and windows, are none.
        for query in [
            "SELECT (SELECT max(oid) FROM pg_class) AS a FROM pg_index",
            "SELECT count(*) OVER () AS a FROM pg_index",
            "SELECT count(*) AS a FROM pg_index GROUP BY oid",
            "SELECT a FROM pg_class c, pg_catalog.unnest(c.reloptions) AS a",
        ] {
            assert_eq!(rewritten(query).unwrap(), "SELECT NULL AS \"a\" WHERE false", "{query}");
        }
        let outer = "SELECT ARRAY(SELECT x FROM pg_catalog.unnest(c.reloptions) x) AS a FROM pg_class c";
        assert!(rewritten(outer).unwrap().contains("make_array()"));
        assert!(rewritten("SELECT (SELECT count(*) WHERE false) AS a").unwrap().contains("count(*)"));
        let found =
            rewritten("SELECT (SELECT relname FROM pg_class d WHERE d.oid = c.oid) AS a FROM pg_class c").unwrap();
        assert!(found.contains("min(relname)") || found.contains("(min(relname))"), "{found}");
    }

    #[test]
    fn arrays_of_queries_keep_order_and_bounds() {
        let found = rewritten("SELECT ARRAY(SELECT relname AS n FROM pg_class ORDER BY oid DESC, 1, n) AS a").unwrap();
        assert!(found.contains("array_agg(relname ORDER BY oid DESC, relname, relname)"), "{found}");
        let found = rewritten("SELECT ARRAY(SELECT relname FROM pg_class ORDER BY oid LIMIT 2) AS a").unwrap();
        assert!(found.contains("array_agg(\"item\" ORDER BY \"key0\")"), "{found}");
        assert!(found.contains("oid AS \"key0\" FROM pg_catalog.pg_class ORDER BY \"key0\" LIMIT 2"), "{found}");
        let found = rewritten("SELECT ARRAY(SELECT DISTINCT relname FROM pg_class ORDER BY 1) AS a").unwrap();
        assert!(found.contains("SELECT DISTINCT relname AS \"item\""), "{found}");
        assert!(found.contains("array_agg(\"item\" ORDER BY \"item\")"), "{found}");
    }

    #[test]
    fn calls_inside_of_calls_do_not_grow_without_bound() {
        let nested = |levels: usize| format!("SELECT {}'a'{} AS a", "quote_ident(".repeat(levels), ")".repeat(levels));
        assert!(rewritten(&nested(5)).is_ok());
        let refusal = rewritten(&nested(12)).unwrap_err().to_string();
        assert!(refusal.contains("10000 parts"), "{refusal}");
    }
}
