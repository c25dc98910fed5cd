//! Names of the columns of a result as the query wrote them: `sum(kwh)` where DataFusion has `sum(SENSOR.kwh)`, and `1`
//! where it has `Int64(1)`. Exports keep DataFusion's names, which their files have had from the start.

use std::collections::HashSet;

use datafusion::common::Column;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::prelude::DataFrame;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, SelectItem, SetExpr};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::syntax::dialect::TidetableDialect;
use crate::syntax::script::LineOffsets;

/// Keywords with which a select list ends.
const AFTER_THE_LIST: [Keyword; 14] = [
    Keyword::FROM,
    Keyword::INTO,
    Keyword::WHERE,
    Keyword::GROUP,
    Keyword::HAVING,
    Keyword::QUALIFY,
    Keyword::WINDOW,
    Keyword::ORDER,
    Keyword::LIMIT,
    Keyword::OFFSET,
    Keyword::FETCH,
    Keyword::UNION,
    Keyword::EXCEPT,
    Keyword::INTERSECT,
];

/// The text of each item of the outermost select list that has no name of its own, and `None` for the others.
pub(crate) type WrittenNames = Vec<Option<String>>;

/// `frame` with the names of its columns as its query wrote them. A name that two columns would have stays.
///
/// # Errors
/// If the columns cannot be selected from it.
pub(crate) fn with_written_names(frame: DataFrame, written: &WrittenNames) -> Result<DataFrame> {
    let schema = frame.schema();
    if written.len() != schema.fields().len() {
        return Ok(frame);
    }

    let named = written.iter().zip(schema.fields()).map(|(text, field)| text.as_ref().unwrap_or(field.name()));
    let names: Vec<String> = named.cloned().collect();
    let distinct: HashSet<&String> = names.iter().collect();
    let is_changed = names.iter().zip(schema.fields()).any(|(name, field)| name != field.name());
    if !is_changed || distinct.len() != names.len() {
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

/// The names of `statement`, the statement that the parser made of `query` and that is not rewritten yet; of a set operation those
/// of the first query. `None` if the list has a wildcard, or there is none.
pub(crate) fn written_names(statement: &Statement, query: &str) -> Option<WrittenNames> {
    let items = select_items(statement)?;
    let texts = item_texts(query)?;
    if items.len() != texts.len() {
        return None;
    }
    let mut names = Vec::with_capacity(items.len());
    for (item, text) in items.iter().zip(texts) {
        names.push(match item {
            SelectItem::UnnamedExpr(ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_)) => None,
            SelectItem::UnnamedExpr(_) => Some(text),
            SelectItem::ExprWithAlias { .. } => None,
            _ => return None,
        });
    }
    Some(names)
}

/// The outermost select list; of a set operation the first.
fn select_items(statement: &Statement) -> Option<&[SelectItem]> {
    let Statement::Statement(statement) = statement else { return None };
    let ast::Statement::Query(query) = statement.as_ref() else { return None };
    let mut body = &query.body;
    loop {
        match body.as_ref() {
            SetExpr::Select(select) => return Some(&select.projection),
            SetExpr::SetOperation { left, .. } => body = left,
            _ => return None,
        }
    }
}

/// The items of the outermost select list, as written.
fn item_texts(query: &str) -> Option<Vec<String>> {
    let tokens = Tokenizer::new(&TidetableDialect, query).tokenize_with_location().ok()?;
    let mut tokens = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).peekable();
    let mut depth = 0_usize;
    for token in tokens.by_ref() {
        depth = depth_after(depth, &token.token);
        if depth == 0 && keyword(token) == Keyword::SELECT {
            break;
        }
    }
    if tokens.next_if(|token| keyword(token) == Keyword::DISTINCT).is_some()
        && tokens.next_if(|token| keyword(token) == Keyword::ON).is_some()
    {
        for token in tokens.by_ref() {
            depth = depth_after(depth, &token.token);
            if depth == 0 {
                break;
            }
        }
    }

    let mut lines = LineOffsets::new(query);
    let mut texts = vec![String::new()];
    let mut before = Keyword::NoKeyword;
    let mut end_before = 0;
    for token in tokens {
        let keyword = keyword(token);
        let (start, end) = (lines.offset(token.span.start), lines.offset(token.span.end));
        let is_part =
            matches!((before, keyword), (Keyword::DISTINCT, Keyword::FROM) | (Keyword::WITHIN, Keyword::GROUP));
        if depth == 0 && (matches!(token.token, Token::EOF | Token::SemiColon) || !is_part && ends_list(keyword)) {
            break;
        }
        let text = texts.last_mut()?;
        if depth == 0 && token.token == Token::Comma {
            texts.push(String::new());
        } else {
            if start > end_before && !text.is_empty() {
                text.push(' ');
            }
            text.push_str(query.get(start..end)?);
        }
        (before, end_before) = (keyword, end);
        depth = depth_after(depth, &token.token);
    }
    Some(texts)
}

fn ends_list(keyword: Keyword) -> bool {
    AFTER_THE_LIST.contains(&keyword)
}

fn keyword(token: &TokenWithSpan) -> Keyword {
    match &token.token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    }
}

fn depth_after(depth: usize, token: &Token) -> usize {
    match token {
        Token::LParen | Token::LBracket | Token::LBrace => depth + 1,
        Token::RParen | Token::RBracket | Token::RBrace => depth.saturating_sub(1),
        _ => depth,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParserBuilder;

    use super::*;

    fn names_of(query: &str) -> Option<WrittenNames> {
        let mut parser = DFParserBuilder::new(query).with_dialect(&TidetableDialect).build().unwrap();
        written_names(&parser.parse_statement().unwrap(), query)
    }

    #[test]
    fn items_are_named_as_written() {
        let some = |text: &str| Some(text.to_owned());
        for (query, names) in [
            ("select 1, sum(kwh), meter from SENSOR", vec![some("1"), some("sum(kwh)"), None]),
            ("SELECT  a  IS DISTINCT FROM b, c AS d, e f FROM t", vec![some("a IS DISTINCT FROM b"), None, None]),
            ("with x as (select 1, 2) select distinct on (a, b) t.a, a + -- sum\n b from x", vec![None, some("a + b")]),
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
