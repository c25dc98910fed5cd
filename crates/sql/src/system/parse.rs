//! Which queries ask for system catalogs, and parsing these as PostgreSQL does.

use std::ops::ControlFlow;

use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{self, Expr, ObjectName, Statement, Visit, Visitor};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::error::{SqlError, external};
use crate::planning_thread::with_deep_stack;
use crate::system::functions::is_system_function;
use crate::system::syntax::{function_name, last_name, type_name};

/// Bytes of a query of system catalogs at most; those of drivers have a tenth of it.
const MOST_TEXT: usize = 64 << 10;
/// Levels of a query at most.
const MOST_LEVELS: usize = 128;
/// Tokens that the parser may read, those in calls inside of calls again and again.
const MAX_READS: usize = 1 << 20;
/// Words of which a query has one if it asks for system catalogs.
const WORDS: [&str; 12] = [
    "pg_",
    "information_schema",
    "current_",
    "session_user",
    "version",
    "reg",
    "set_config",
    "format_type",
    "_description",
    "_privilege",
    "quote_",
    "::oid",
];

/// What a query needs of system catalogs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SystemUse {
    /// Nothing.
    Nothing,
    /// Functions that tell of the session.
    Functions,
    /// Tables, or names in them.
    Tables,
}

/// What a query needs of system catalogs. One that is not PostgreSQL's SQL needs nothing.
pub fn system_use(query: &str) -> SystemUse {
    let lower = query.to_ascii_lowercase();
    if query.len() > MOST_TEXT || !WORDS.iter().any(|word| lower.contains(word)) {
        return SystemUse::Nothing;
    }
    let found = with_deep_stack(query, || -> Result<SystemUse> {
        let mut asked = Asked { used: SystemUse::Nothing, has_tables: false };
        let _: ControlFlow<()> = parse_postgres(query, &|_| false)?.visit(&mut asked);
        // Names of tables of the store, whose case counts, are known from the catalogs.
        let is_mixed = asked.used == SystemUse::Functions && asked.has_tables;
        Ok(if is_mixed { SystemUse::Tables } else { asked.used })
    });
    match found {
        Ok(used) => used,
        // It is told why it is refused when it is parsed to be planned.
        Err(error) if is_too_large(&error) => SystemUse::Functions,
        Err(_) => SystemUse::Nothing,
    }
}

fn is_too_large(error: &DataFusionError) -> bool {
    match error {
        DataFusionError::External(carried) => {
            matches!(carried.downcast_ref(), Some(SqlError::TooManyParts { .. }))
        }
        _ => false,
    }
}

/// Parses a query as PostgreSQL does: words without quotes are in lower case, but for those that `keeps_case`.
///
/// # Errors
/// If it is not a single query.
pub(crate) fn parse_postgres(query: &str, keeps_case: &dyn Fn(&str) -> bool) -> Result<Statement> {
    let dialect = PostgreSqlDialect {};
    let mut tokens = Tokenizer::new(&dialect, query).tokenize_with_location().map_err(ast_error)?;
    check_calls(&tokens)?;
    for token in &mut tokens {
        if let Token::Word(word) = &mut token.token
            && word.quote_style.is_none()
            && !keeps_case(&word.value)
        {
            word.value = word.value.to_lowercase();
        }
    }

    let parser = Parser::new(&dialect).with_recursion_limit(MOST_LEVELS);
    let mut statements = parser.with_tokens_with_locations(tokens).parse_statements().map_err(ast_error)?;
    match (statements.pop(), statements.is_empty()) {
        (Some(statement @ Statement::Query(_)), true) => Ok(statement),
        _ => plan_err!("system catalogs are read by a single query"),
    }
}

/// Refuses a query that takes too long to be parsed: the parser reads what is in the parentheses of a call twice, so that calls
/// inside of calls take powers of two.
fn check_calls(tokens: &[TokenWithSpan]) -> Result<()> {
    let (mut calls, mut reads) = (0_u32, 0_usize);
    // For each open parenthesis, whether it is one of a call.
    let mut open = Vec::new();
    let mut is_after_word = false;
    for token in tokens.iter().map(|token| &token.token) {
        match token {
            Token::Whitespace(_) => continue,
            Token::LParen => {
                open.push(is_after_word);
                calls += u32::from(is_after_word);
            }
            Token::RParen => calls = calls.saturating_sub(u32::from(open.pop().unwrap_or_default())),
            _ => {}
        }
        reads = reads.saturating_add(1_usize.checked_shl(calls).unwrap_or(usize::MAX));
        if reads > MAX_READS {
            return Err(external(SqlError::TooManyParts { limit: MAX_READS }));
        }
        is_after_word = matches!(token, Token::Word(_));
    }
    Ok(())
}

fn ast_error(error: impl Into<ParserError>) -> DataFusionError {
    DataFusionError::SQL(Box::new(error.into()), None)
}

/// Finds what a query needs.
struct Asked {
    used: SystemUse,
    has_tables: bool,
}

impl Visitor for Asked {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        self.has_tables = true;
        let text = relation.to_string();
        let is_qualified = text.starts_with("pg_catalog.") || text.starts_with("information_schema.");
        if is_qualified || text.starts_with("pg_") {
            self.used = SystemUse::Tables;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        let used = match expr {
            Expr::Function(function) if is_system_function(&function_name(function)) => SystemUse::Functions,
            Expr::Identifier(name) if name.quote_style.is_none() && is_keyword(&name.value) => SystemUse::Functions,
            Expr::Cast { data_type, .. } if is_system_type(data_type) => SystemUse::Tables,
            Expr::BinaryOp { op: ast::BinaryOperator::PGCustomBinaryOperator(_), .. } => SystemUse::Functions,
            _ => SystemUse::Nothing,
        };
        self.used = self.used.max(used);
        ControlFlow::Continue(())
    }
}

/// Whether a name without quotes is a function without parentheses.
pub(super) fn is_keyword(word: &str) -> bool {
    matches!(word, "current_user" | "session_user" | "current_role" | "current_catalog" | "current_schema")
}

/// Whether a type exists in system catalogs only.
fn is_system_type(kind: &ast::DataType) -> bool {
    let name = type_name(kind);
    name.starts_with("reg") || matches!(name.as_str(), "oid" | "name" | "\"char\"" | "int2vector" | "oidvector")
}

/// The name of a relation without its schema, and the schema.
pub(super) fn relation_parts(name: &ObjectName) -> (Option<String>, String) {
    let schema = name
        .0
        .len()
        .checked_sub(2)
        .and_then(|place| name.0.get(place))
        .map(|part| part.as_ident().map_or_else(String::new, |name| name.value.clone()));
    (schema, last_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_of_catalogs_are_told_from_others() {
        for (query, expected) in [
            ("SELECT count(*) FROM SENSOR", SystemUse::Nothing),
            ("SELECT current_price FROM version", SystemUse::Nothing),
            ("SELECT * FROM regions WHERE pg_count > 1", SystemUse::Nothing),
            ("SELECT version()", SystemUse::Functions),
            ("select pg_catalog.current_database()", SystemUse::Functions),
            ("SELECT current_user, count(*) FROM SENSOR", SystemUse::Tables),
            ("SELECT 'SENSOR'::regclass::oid", SystemUse::Tables),
            ("SELECT * FROM pg_class", SystemUse::Tables),
            ("SELECT * FROM INFORMATION_SCHEMA.TABLES", SystemUse::Tables),
            ("SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM pg_catalog.pg_type)", SystemUse::Tables),
            ("SELEC pg_class", SystemUse::Nothing),
        ] {
            assert_eq!(system_use(query), expected, "{query}");
        }
        let long = format!("SELECT 1 FROM pg_class WHERE {}", vec!["oid = 1"; 3_000].join(" OR "));
        assert_eq!(system_use(&long), SystemUse::Tables);
        // Calls inside of calls are refused before they are parsed.
        let nested = format!("SELECT {}'a'{}", "quote_ident(".repeat(40), ")".repeat(40));
        assert_eq!(system_use(&nested), SystemUse::Functions);
        let refusal = parse_postgres(&nested, &|_| false).unwrap_err().to_string();
        assert!(refusal.contains("too often"), "{refusal}");
        assert_eq!(system_use(&format!("SELECT version(){}", "(".repeat(100_000))), SystemUse::Nothing);
    }
}
