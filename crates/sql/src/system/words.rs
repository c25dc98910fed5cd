//! The words of a statement, for servers that answer some statements themselves, such as `SET`.

use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer, TokenizerError};

use crate::syntax::dialect::TidetableDialect;
use crate::syntax::script::{LineOffsets, ScriptError};

/// A part of a statement; comments are none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// A word without quotes, also one with points as in `a.b`, a number, or a parameter.
    Plain(String),
    /// A name in double quotes.
    Quoted(String),
    /// A text in single quotes, or between dollars.
    Text(String),
    /// An operator or another sign, such as `(`.
    Sign(String),
}

/// A part of a statement with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedWord {
    /// The part.
    pub word: Word,
    /// Where it starts in the statement, bytes.
    pub start: usize,
}

impl Word {
    /// Whether it is a keyword, in any case.
    pub fn is(&self, keyword: &str) -> bool {
        matches!(self, Self::Plain(word) if word.eq_ignore_ascii_case(keyword))
    }

    /// Whether it is this sign.
    pub fn is_sign(&self, sign: &str) -> bool {
        matches!(self, Self::Sign(found) if found == sign)
    }

    /// The text of a name or of a text, and that of a word without quotes in lower case; `None` for a sign.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Plain(word) => Some(word.to_lowercase()),
            Self::Quoted(text) | Self::Text(text) => Some(text.clone()),
            Self::Sign(_) => None,
        }
    }
}

/// The parts of a statement, split as the parser of queries splits them.
///
/// # Errors
/// If a text, a name or a comment has no end.
pub fn words(statement: &str) -> Result<Vec<PlacedWord>, ScriptError> {
    let tokens = Tokenizer::new(&TidetableDialect, statement).tokenize_with_location();
    let tokens = tokens.map_err(|TokenizerError { message, location }| ScriptError {
        message,
        at: (location.line, location.column),
    })?;

    let mut found: Vec<PlacedWord> = Vec::new();
    let mut offsets = LineOffsets::new(statement);
    // Whether a blank or the start stands before the next part: `a.b` is one word.
    let mut is_apart = true;
    for token in tokens {
        let start = offsets.offset(token.span.start);
        let word = match token.token {
            Token::EOF => break,
            Token::Whitespace(_) => {
                is_apart = true;
                continue;
            }
            token => word_of(token),
        };
        let last = found.last_mut().map(|last| &mut last.word).filter(|_| !is_apart);
        match (last, word) {
            (Some(Word::Plain(before)), Word::Plain(text)) => before.push_str(&text),
            (_, word) => found.push(PlacedWord { word, start }),
        }
        is_apart = false;
    }
    Ok(found)
}

fn word_of(token: Token) -> Word {
    match token {
        Token::Word(word) if word.quote_style.is_some() => Word::Quoted(word.value),
        Token::Word(word) => Word::Plain(word.value),
        Token::Number(text, _) | Token::Placeholder(text) => Word::Plain(text),
        Token::Period => Word::Plain(".".to_owned()),
        Token::SingleQuotedString(text)
        | Token::EscapedStringLiteral(text)
        | Token::UnicodeStringLiteral(text)
        | Token::NationalStringLiteral(text) => Word::Text(text),
        Token::DollarQuotedString(text) => Word::Text(text.value),
        token => Word::Sign(token.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(statement: &str) -> Vec<Word> {
        words(statement).unwrap().into_iter().map(|placed| placed.word).collect()
    }

    #[test]
    fn statements_fall_into_words() {
        let plain = |text: &str| Word::Plain(text.to_owned());
        let sign = |text: &str| Word::Sign(text.to_owned());
        let text = |text: &str| Word::Text(text.to_owned());
        let quoted = |text: &str| Word::Quoted(text.to_owned());
        let found = texts("-- a\nSET /* b /* c */ */ x TO 'it''s', \"A\"\"b\";");
        assert_eq!(found, [plain("SET"), plain("x"), plain("TO"), text("it's"), sign(","), quoted("A\"b"), sign(";")]);
        assert_eq!(texts("E'a\\nb' $$c;d$$"), [text("a\nb"), text("c;d")]);
        assert_eq!(texts("a.b = -1.5"), [plain("a.b"), sign("="), sign("-"), plain("1.5")]);
        assert_eq!(texts("\"a\".b"), [quoted("a"), plain(".b")]);
        assert_eq!(words("COPY é x").unwrap().last().map(|placed| placed.start), Some(8));
        assert!(words("'open").is_err() && words("/* open").is_err());
    }
}
