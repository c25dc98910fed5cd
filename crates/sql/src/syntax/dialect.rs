//! SQL dialect: sqlparser's generic dialect with the operator precedence of PostgreSQL and DuckDB.
//!
//! The generic dialect (sqlparser 0.62) silently differs from both: `a IS DISTINCT FROM b AND c` compares `a` with
//! `b AND c`, `a = b LIKE c` is `(a = b) LIKE c`, `a || b + c` is `(a || b) + c`. From the tightest to the loosest:
//!
//! | operators |
//! |---|
//! | `.` |
//! | `::`, `[ ]` |
//! | unary `-`, `+` |
//! | `AT TIME ZONE` |
//! | `^` (power) |
//! | `*`, `/`, `%` |
//! | `+`, `-` |
//! | all other operators: `\|\|`, `->`, `~`, `&`, `\|`, `<<`, `>>` |
//! | `BETWEEN`, `IN`, `LIKE`, `ILIKE`, `SIMILAR TO` |
//! | `<`, `>`, `=`, `<=`, `>=`, `<>` |
//! | `IS` |
//! | `NOT` |
//! | `AND` |
//! | `OR` |
//!
//! A long chain of `AND` or of `OR` becomes a balanced tree: the parser's own is as deep as the chain is long, and what
//! visits it recurses as deep. Both operators are associative, also with nulls.

use std::any::TypeId;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

const PERIOD: u8 = 200;
const CAST: u8 = 140;
const SIGN: u8 = 135;
const AT_TIME_ZONE: u8 = 130;
const POWER: u8 = 125;
const TIMES: u8 = 120;
const PLUS: u8 = 110;
const OTHER: u8 = 100;
const COLON: u8 = 95;
const BETWEEN: u8 = 90;
const COMPARISON: u8 = 80;
const IS: u8 = 70;
const NOT: u8 = 60;
const AND: u8 = 50;
const XOR: u8 = 45;
const OR: u8 = 40;

/// Operands of `AND` or `OR` from which on a chain becomes a balanced tree; shorter ones group from the left.
const MIN_BALANCED_OPERANDS: usize = 32;

/// Dialect with PostgreSQL's precedence; see the module.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct TidetableDialect;

/// Methods that the generic dialect answers.
macro_rules! as_general {
    ($($name:ident),* $(,)?) => {
        $(fn $name(&self) -> bool {
            GenericDialect.$name()
        })*
    };
}

/// A parser of SQL that a rewrite makes.
///
/// # Errors
/// If it is not made of tokens.
pub(crate) fn parser_of(text: &str) -> Result<Parser<'static>, ParserError> {
    Parser::new(&TidetableDialect).try_with_sql(text)
}

impl Dialect for TidetableDialect {
    /// The parser compares the type for dialect-specific exceptions.
    fn dialect(&self) -> TypeId {
        GenericDialect.dialect()
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        GenericDialect.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        GenericDialect.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        GenericDialect.is_identifier_part(ch)
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Period => PERIOD,
            Precedence::DoubleColon => CAST,
            Precedence::AtTz => AT_TIME_ZONE,
            Precedence::MulDivModOp => TIMES,
            Precedence::PlusMinus => PLUS,
            Precedence::Ampersand | Precedence::Caret | Precedence::Pipe | Precedence::PgOther => OTHER,
            Precedence::Colon => COLON,
            Precedence::Between | Precedence::Like => BETWEEN,
            Precedence::Eq => COMPARISON,
            Precedence::Is => IS,
            Precedence::UnaryNot => NOT,
            Precedence::And => AND,
            Precedence::Xor => XOR,
            Precedence::Or => OR,
        }
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        Some(Ok(match parser.peek_token_ref().token {
            Token::Caret => POWER,
            Token::StringConcat
            | Token::Tilde
            | Token::TildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::DoubleTilde
            | Token::DoubleTildeAsterisk
            | Token::ExclamationMarkDoubleTilde
            | Token::ExclamationMarkDoubleTildeAsterisk => OTHER,
            _ => return None,
        }))
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        // Otherwise the parser takes NOT for an identifier if its operand is wrong, and reports that instead.
        if is_word(parser.peek_nth_token_ref(0), Keyword::NOT)
            && !is_word(parser.peek_nth_token_ref(1), Keyword::EXISTS)
        {
            parser.advance_token();
            let (op, expr) = (UnaryOperator::Not, parser.parse_subexpr(NOT));
            return Some(expr.map(|expr| Expr::UnaryOp { op, expr: Box::new(expr) }));
        }
        let op = match parser.peek_token_ref().token {
            Token::Minus => UnaryOperator::Minus,
            Token::Plus => UnaryOperator::Plus,
            _ => return None,
        };
        parser.advance_token();
        Some(parser.parse_subexpr(SIGN).map(|expr| Expr::UnaryOp { op, expr: Box::new(expr) }))
    }

    fn parse_infix(&self, parser: &mut Parser, left: &Expr, _: u8) -> Option<Result<Expr, ParserError>> {
        if let Some(error) = chained(parser.peek_token_ref(), left) {
            return Some(Err(error));
        }
        for (keyword, op, precedence) in
            [(Keyword::AND, BinaryOperator::And, AND), (Keyword::OR, BinaryOperator::Or, OR)]
        {
            if is_word(parser.peek_token_ref(), keyword) {
                return Some(parse_chain(parser, left, keyword, &op, precedence));
            }
        }

        if parser.parse_keywords(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM]) {
            let right = parser.parse_subexpr(IS);
            return Some(right.map(|right| Expr::IsDistinctFrom(Box::new(left.clone()), Box::new(right))));
        }
        if parser.parse_keywords(&[Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM]) {
            let right = parser.parse_subexpr(IS);
            return Some(right.map(|right| Expr::IsNotDistinctFrom(Box::new(left.clone()), Box::new(right))));
        }
        None
    }

    fn supports_order_by_all(&self) -> bool {
        true
    }

    as_general! {
        supports_unicode_string_literal,
        supports_partition_by_after_order_by,
        supports_array_join_syntax,
        supports_group_by_expr,
        supports_group_by_with_modifier,
        supports_left_associative_joins_without_parens,
        supports_connect_by,
        supports_match_recognize,
        supports_pipe_operator,
        supports_start_transaction_modifier,
        supports_window_function_null_treatment_arg,
        supports_dictionary_syntax,
        supports_window_clause_named_window_reference,
        supports_parenthesized_set_variables,
        supports_select_wildcard_except,
        support_map_literal_syntax,
        allow_extract_custom,
        allow_extract_single_quotes,
        supports_extract_comma_syntax,
        supports_create_view_comment_syntax,
        supports_parens_around_table_factor,
        supports_values_as_table_factor,
        supports_create_index_with_clause,
        supports_explain_with_utility_options,
        supports_limit_comma,
        supports_update_order_by,
        supports_from_first_select,
        supports_projection_trailing_commas,
        supports_asc_desc_in_column_definition,
        supports_try_convert,
        supports_bitwise_shift_operators,
        supports_comment_on,
        supports_load_extension,
        supports_named_fn_args_with_assignment_operator,
        supports_struct_literal,
        supports_empty_projections,
        supports_nested_comments,
        supports_multiline_comment_hints,
        supports_user_host_grantee,
        supports_string_escape_constant,
        supports_array_typedef_with_brackets,
        supports_match_against,
        supports_set_names,
        supports_comma_separated_set_assignments,
        supports_filter_during_aggregation,
        supports_select_wildcard_exclude,
        supports_data_type_signed_suffix,
        supports_interval_options,
        supports_quote_delimited_string,
        supports_select_wildcard_replace,
        supports_select_wildcard_ilike,
        supports_select_wildcard_rename,
        supports_optimize_table,
        supports_install,
        supports_detach,
        supports_prewhere,
        supports_with_fill,
        supports_limit_by,
        supports_interpolate,
        supports_settings,
        supports_select_format,
        supports_comment_optimizer_hint,
        supports_constraint_keyword_without_name,
        supports_key_column_option,
        supports_comma_separated_trim,
        supports_cte_without_as,
        supports_select_item_multi_column_alias,
        supports_xml_expressions,
    }
}

fn is_word(token: &TokenWithSpan, keyword: Keyword) -> bool {
    matches!(&token.token, Token::Word(word) if word.keyword == keyword)
}

/// Parses the operands that follow `left` in a chain of `op`, which is written as `keyword`.
fn parse_chain(
    parser: &mut Parser,
    left: &Expr,
    keyword: Keyword,
    op: &BinaryOperator,
    precedence: u8,
) -> Result<Expr, ParserError> {
    let mut operands = vec![left.clone()];

    while parser.parse_keyword(keyword) {
        operands.push(parser.parse_subexpr(precedence)?);
    }

    while operands.len() >= MIN_BALANCED_OPERANDS {
        operands = joined_pairs(operands, op);
    }
    let joined = operands.into_iter().reduce(|left, right| joined(left, op, right));
    // There is always the left operand.
    Ok(joined.unwrap_or_else(|| left.clone()))
}

/// Joins each two neighbours by `op`; the last stays alone if their number is odd.
fn joined_pairs(operands: Vec<Expr>, op: &BinaryOperator) -> Vec<Expr> {
    let mut pairs = Vec::with_capacity(operands.len().div_ceil(2));
    let mut operands = operands.into_iter();

    while let Some(left) = operands.next() {
        pairs.push(match operands.next() {
            Some(right) => joined(left, op, right),
            None => left,
        });
    }
    pairs
}

fn joined(left: Expr, op: &BinaryOperator, right: Expr) -> Expr {
    Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) }
}

/// The error if `next` compares `left`, itself a comparison: as in PostgreSQL and DuckDB, parentheses are required,
/// because `1 < x < 3` would mean `(1 < x) < 3`.
fn chained(next: &TokenWithSpan, left: &Expr) -> Option<ParserError> {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    let compares = matches!(
        next.token,
        Token::Eq | Token::DoubleEq | Token::Neq | Token::Lt | Token::LtEq | Token::Gt | Token::GtEq
    );
    let compared = matches!(left, Expr::BinaryOp { op: Eq | NotEq | Lt | LtEq | Gt | GtEq, .. });
    let at = next.span.start;
    (compares && compared).then(|| {
        ParserError::ParserError(format!(
            "comparisons cannot be chained: write a < b AND b < c, or parentheses, as in (a < b) = c{at}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use datafusion::sql::sqlparser::ast::{VisitMut, VisitorMut};

    use super::*;

    struct WithoutParentheses;

    impl VisitorMut for WithoutParentheses {
        type Break = ();

        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
            if let Expr::Nested(inner) = expr {
                *expr = inner.as_ref().clone();
            }
            ControlFlow::Continue(())
        }
    }

    fn parsed(text: &str) -> Expr {
        let mut expr = Parser::new(&TidetableDialect).try_with_sql(text).unwrap().parse_expr().unwrap();
        let _: ControlFlow<()> = expr.visit(&mut WithoutParentheses);
        expr
    }

    #[test]
    fn operators_bind_as_in_postgresql() {
        let pairs = [
            ("a IS DISTINCT FROM b AND c", "(a IS DISTINCT FROM b) AND c"),
            ("a IS NOT DISTINCT FROM b OR c", "(a IS NOT DISTINCT FROM b) OR c"),
            ("a IS DISTINCT FROM b = c", "a IS DISTINCT FROM (b = c)"),
            ("NOT a IS DISTINCT FROM b", "NOT (a IS DISTINCT FROM b)"),
            ("a = b LIKE c", "a = (b LIKE c)"),
            ("a = b IN (c)", "a = (b IN (c))"),
            ("a = b BETWEEN c AND d", "a = (b BETWEEN c AND d)"),
            ("a BETWEEN b AND c = d", "(a BETWEEN b AND c) = d"),
            ("a BETWEEN b AND c AND d", "(a BETWEEN b AND c) AND d"),
            ("a = b IS NULL", "(a = b) IS NULL"),
            ("NOT a = b", "NOT (a = b)"),
            ("NOT a AND b", "(NOT a) AND b"),
            ("a OR b AND c", "a OR (b AND c)"),
            ("a || b + c", "a || (b + c)"),
            ("a LIKE b || c", "a LIKE (b || c)"),
            ("a = b || c", "a = (b || c)"),
            ("a | b & c", "(a | b) & c"),
            ("a + b << c", "(a + b) << c"),
            ("a -> b = c", "(a -> b) = c"),
            ("a ~ b = c", "(a ~ b) = c"),
            ("- a * b", "(- a) * b"),
            ("- a ^ b", "(- a) ^ b"),
            ("a * b ^ c", "a * (b ^ c)"),
            ("- a::int", "- (a::int)"),
            ("a + b::int", "a + (b::int)"),
            ("- a AT TIME ZONE b", "(- a) AT TIME ZONE b"),
            ("a + b AT TIME ZONE c", "a + (b AT TIME ZONE c)"),
            ("a AT TIME ZONE b = c", "(a AT TIME ZONE b) = c"),
            ("a::timestamp AT TIME ZONE b", "(a::timestamp) AT TIME ZONE b"),
        ];
        for (text, meant) in pairs {
            assert_eq!(parsed(text), parsed(meant), "{text}");
        }
    }

    #[test]
    fn long_chains_are_shallow_and_keep_their_order() {
        fn operands(expr: &Expr, op: &BinaryOperator, found: &mut Vec<String>) -> usize {
            match expr {
                Expr::BinaryOp { left, op: own, right } if own == op => {
                    1 + operands(left, op, found).max(operands(right, op, found))
                }
                other => {
                    found.push(other.to_string());
                    0
                }
            }
        }
        for (word, op) in [("AND", BinaryOperator::And), ("OR", BinaryOperator::Or)] {
            for terms in [2, 31, 32, 33, 3_000] {
                let expected: Vec<String> = (0..terms).map(|at| format!("a BETWEEN {at} AND 9")).collect();
                let parser = Parser::new(&TidetableDialect).try_with_sql(&expected.join(&format!(" {word} "))).unwrap();
                let expr = { parser }.parse_expr().unwrap();
                let mut found = Vec::new();
                let depth = operands(&expr, &op, &mut found);
                assert_eq!(found, expected);
                // Short ones group from the left.
                assert!(depth < 32 && (terms >= 32 || depth == terms - 1), "{terms}: {depth}");
            }
        }
    }

    #[test]
    fn chained_comparisons_are_refused() {
        let parsed = |text: &str| Parser::new(&TidetableDialect).try_with_sql(text).unwrap().parse_expr();
        for text in ["1 < x < 3", "a = b = c", "a + 1 <> b >= c", "NOT a < b = c", "a AND b != c == d", "f(a < b > c)"]
        {
            let told = parsed(text).unwrap_err().to_string();
            assert!(told.contains("a < b AND b < c") && told.contains("Column: "), "{text}: {told}");
        }
        for text in ["(a < b) = c", "a < (b < c)", "a < b AND b < c", "a BETWEEN b AND c = d", "a = b IS NULL"] {
            assert!(parsed(text).is_ok(), "{text}");
        }
    }
}
