//! Syntax of `ASOF JOIN`: DuckDB's, with the comparison in `ON` or as the last column of `USING`, and Snowflake's, with
//! `MATCH_CONDITION (..)`, which sqlparser knows.

use datafusion::sql::sqlparser::ast::{Join, JoinOperator, TableFactor, TableWithJoins};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Makes DuckDB's `ASOF [LEFT] JOIN` a `GLOBAL [LEFT] JOIN`, which sqlparser parses as a flag of the join that DataFusion ignores.
/// Snowflake's form stays.
pub(crate) fn mark_asof_joins(tokens: &mut [TokenWithSpan]) {
    for at in 0..tokens.len() {
        if keyword(tokens.get(at)) != Some(Keyword::ASOF) || !is_join(tokens, at + 1) || has_match_condition(tokens, at)
        {
            continue;
        }
        if let Some(token) = tokens.get_mut(at) {
            let word = Word { value: "GLOBAL".to_owned(), quote_style: None, keyword: Keyword::GLOBAL };
            token.token = Token::Word(word);
        }
    }
}

fn keyword(token: Option<&TokenWithSpan>) -> Option<Keyword> {
    match token.map(|token| &token.token) {
        Some(Token::Word(word)) if word.quote_style.is_none() => Some(word.keyword),
        _ => None,
    }
}

/// Whether the tokens from `start` on are `[LEFT | INNER | ..] [OUTER] JOIN`.
fn is_join(tokens: &[TokenWithSpan], start: usize) -> bool {
    const KINDS: [Keyword; 5] = [Keyword::LEFT, Keyword::RIGHT, Keyword::FULL, Keyword::INNER, Keyword::OUTER];
    let mut words = tokens.iter().skip(start).filter(|token| !matches!(token.token, Token::Whitespace(_)));
    words
        .find(|token| !keyword(Some(token)).is_some_and(|word| KINDS.contains(&word)))
        .is_some_and(|token| keyword(Some(token)) == Some(Keyword::JOIN))
}

/// Whether the join at `start` has a `MATCH_CONDITION`.
fn has_match_condition(tokens: &[TokenWithSpan], start: usize) -> bool {
    const ENDS: [Keyword; 4] = [Keyword::ON, Keyword::USING, Keyword::WHERE, Keyword::SELECT];
    let mut depth = 0_usize;
    for token in tokens.iter().skip(start) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return false,
            Token::RParen => depth -= 1,
            Token::SemiColon => return false,
            Token::Word(word) if depth == 0 && word.quote_style.is_none() => match word.keyword {
                Keyword::MATCH_CONDITION => return true,
                end if ENDS.contains(&end) => return false,
                _ => {}
            },
            _ => {}
        }
    }
    false
}

/// Whether it is an ASOF join.
pub(crate) fn is_asof(join: &Join) -> bool {
    join.global || matches!(join.join_operator, JoinOperator::AsOf { .. })
}

/// Puts each ASOF join into parentheses with what stands before it, so that a planner of relations sees it. In parentheses already
/// (`is_nested`), a last one stays.
pub(crate) fn nest_asof_joins(tables: &mut TableWithJoins, is_nested: bool) {
    while let Some(first) = tables.joins.iter().position(is_asof) {
        if is_nested && first + 1 == tables.joins.len() {
            return;
        }
        let rest = tables.joins.split_off(first + 1);
        let inner = TableWithJoins { relation: tables.relation.clone(), joins: std::mem::take(&mut tables.joins) };
        tables.relation = TableFactor::NestedJoin { table_with_joins: Box::new(inner), alias: None };
        tables.joins = rest;
    }
}
