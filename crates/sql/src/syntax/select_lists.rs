//! The texts of select lists, as a query writes them. The parser keeps expressions, but not their spelling.

use std::collections::HashMap;

use datafusion::sql::sqlparser::ast::Select;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

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

/// The texts of the items of all select lists of a query, by the place of their `SELECT`.
pub(crate) struct SelectLists(HashMap<Location, Vec<String>>);

impl SelectLists {
    /// Reads the lists of `query`; none, if it is not SQL.
    pub(crate) fn read(query: &str) -> Self {
        let tokens = Tokenizer::new(&TidetableDialect, query).tokenize_with_location().unwrap_or_default();
        let mut lines = LineOffsets::new(query);
        let tokens: Vec<Placed<'_>> = tokens
            .iter()
            .filter(|token| !matches!(token.token, Token::Whitespace(_)))
            .map(|token| Placed {
                token,
                text: query.get(lines.offset(token.span.start)..lines.offset(token.span.end)).unwrap_or_default(),
            })
            .collect();

        let mut lists = HashMap::new();
        for (at, select) in tokens.iter().enumerate() {
            if select.keyword() == Keyword::SELECT {
                let after = tokens.get(at + 1..).unwrap_or_default();
                lists.insert(select.token.span.start, item_texts(after_distinct(after)));
            }
        }
        Self(lists)
    }

    /// The texts of the items of `select`; `None` if they are not known.
    pub(crate) fn items(&self, select: &Select) -> Option<&[String]> {
        let texts = self.0.get(&select.select_token.0.span.start)?;
        (texts.len() == select.projection.len()).then_some(texts)
    }
}

/// A token and its text in the query.
struct Placed<'a> {
    token: &'a TokenWithSpan,
    text: &'a str,
}

impl Placed<'_> {
    fn keyword(&self) -> Keyword {
        match &self.token.token {
            Token::Word(word) => word.keyword,
            _ => Keyword::NoKeyword,
        }
    }

    /// Whether there is nothing between this token and the one before.
    fn follows(&self, before: &Placed<'_>) -> bool {
        self.token.span.start == before.token.span.end
    }

    /// The depth of brackets behind this token.
    fn depth_after(&self, depth: usize) -> Option<usize> {
        match self.token.token {
            Token::LParen | Token::LBracket | Token::LBrace => Some(depth + 1),
            Token::RParen | Token::RBracket | Token::RBrace => depth.checked_sub(1),
            _ => Some(depth),
        }
    }
}

/// The tokens behind `ALL`, `DISTINCT` or `DISTINCT ON (..)`.
fn after_distinct<'a, 'b>(tokens: &'b [Placed<'a>]) -> &'b [Placed<'a>] {
    let is = |at: usize, keyword: Keyword| tokens.get(at).is_some_and(|token| token.keyword() == keyword);
    let length = match (is(0, Keyword::DISTINCT), is(1, Keyword::ON)) {
        (true, true) => 2 + bracketed(tokens.get(2..).unwrap_or_default()),
        (true, false) => 1,
        (false, _) => usize::from(is(0, Keyword::ALL)),
    };
    tokens.get(length..).unwrap_or_default()
}

/// The number of tokens up to the one that closes the first.
fn bracketed(tokens: &[Placed<'_>]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        depth = token.depth_after(depth).unwrap_or_default();
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// The items of the list that begins `tokens`, each as written with one blank where the query has any.
fn item_texts(tokens: &[Placed<'_>]) -> Vec<String> {
    let mut texts = vec![String::new()];
    let mut depth = 0;
    let mut before: Option<&Placed<'_>> = None;

    for token in tokens {
        let keyword_before = before.map_or(Keyword::NoKeyword, Placed::keyword);
        let Some(depth_after) = token.depth_after(depth) else { break };
        if depth == 0 && ends_list(keyword_before, token) {
            break;
        }

        if depth == 0 && token.token.token == Token::Comma {
            texts.push(String::new());
        } else if let Some(text) = texts.last_mut() {
            if !text.is_empty() && !before.is_some_and(|before| token.follows(before)) {
                text.push(' ');
            }
            text.push_str(token.text);
        }
        (before, depth) = (Some(token), depth_after);
    }
    texts
}

/// Whether a token outside of brackets is no part of the list. `IS DISTINCT FROM` and `WITHIN GROUP` are.
fn ends_list(before: Keyword, token: &Placed<'_>) -> bool {
    let keyword = token.keyword();
    let is_part = matches!((before, keyword), (Keyword::DISTINCT, Keyword::FROM) | (Keyword::WITHIN, Keyword::GROUP));
    matches!(token.token.token, Token::EOF | Token::SemiColon) || !is_part && AFTER_THE_LIST.contains(&keyword)
}
