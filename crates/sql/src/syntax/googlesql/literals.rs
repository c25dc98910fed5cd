//! Tokens of GoogleSQL: its strings, bytes, quoted names and comments; the rest is of the common tokenizer.
//!
//! | text | token |
//! |---|---|
//! | `'a\n'`, `"a"`, `'''a'''`, `r'a'` | text, with escapes replaced unless it is raw |
//! | `b'\x01'`, `B"a"`, `rb'a'` | bytes |
//! | `` `a b` `` | a name |
//! | `# ..`, `-- ..`, `/* .. */` | nothing |

use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer};

use crate::syntax::dialect::TidetableDialect;

/// The tokens of a statement.
///
/// # Errors
/// If a literal does not end, or has an escape that there is not.
pub(crate) fn tokens(text: &str) -> Result<Vec<TokenWithSpan>, ParserError> {
    Lexer { text, at: 0, plain: 0, tokens: Vec::new() }.run()
}

struct Lexer<'a> {
    text: &'a str,
    /// The next byte.
    at: usize,
    /// Where the text begins that is for the common tokenizer.
    plain: usize,
    tokens: Vec<TokenWithSpan>,
}

/// How a literal is written.
#[derive(Debug, Clone, Copy)]
struct Prefix {
    is_raw: bool,
    is_bytes: bool,
}

impl Lexer<'_> {
    fn run(mut self) -> Result<Vec<TokenWithSpan>, ParserError> {
        while let Some(byte) = self.byte(0) {
            match byte {
                b'\'' | b'"' => self.literal(self.at, Prefix { is_raw: false, is_bytes: false })?,
                b'`' => self.name()?,
                b'#' => self.comment("\n")?,
                b'-' if self.byte(1) == Some(b'-') => self.comment("\n")?,
                b'/' if self.byte(1) == Some(b'*') => self.comment("*/")?,
                byte if byte == b'_' || byte == b'@' || byte.is_ascii_alphanumeric() || !byte.is_ascii() => {
                    self.word()?
                }
                _ => self.at += 1,
            }
        }
        self.flush(self.text.len())?;
        Ok(self.tokens)
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// A word, which may be the prefix of a literal.
    fn word(&mut self) -> Result<(), ParserError> {
        let start = self.at;
        let is_part = |byte: u8| byte == b'_' || byte == b'@' || byte.is_ascii_alphanumeric() || !byte.is_ascii();
        while self.byte(0).is_some_and(is_part) {
            self.at += 1;
        }
        if !matches!(self.byte(0), Some(b'\'' | b'"')) {
            return Ok(());
        }
        let prefix = match self.text.get(start..self.at).unwrap_or_default().to_ascii_lowercase().as_str() {
            "b" => Prefix { is_raw: false, is_bytes: true },
            "r" => Prefix { is_raw: true, is_bytes: false },
            "br" | "rb" => Prefix { is_raw: true, is_bytes: true },
            // As in `DATE'2024-01-01'`.
            _ => return Ok(()),
        };
        self.literal(start, prefix)
    }

    /// A literal that starts at `start`, whose quote is next.
    fn literal(&mut self, start: usize, prefix: Prefix) -> Result<(), ParserError> {
        let Some(quote) = self.byte(0) else { return Ok(()) };
        let is_triple = self.byte(1) == Some(quote) && self.byte(2) == Some(quote);
        let quotes = if is_triple { 3 } else { 1 };
        self.at += quotes;

        let mut value = Vec::new();
        loop {
            let Some(byte) = self.byte(0) else {
                return Err(self.error(start, "this literal does not end"));
            };
            let ends = (0..quotes).all(|ahead| self.byte(ahead) == Some(quote));
            if ends {
                self.at += quotes;
                break;
            }
            if byte == b'\n' && !is_triple {
                return Err(self.error(start, "this literal does not end on its line: use three quotes"));
            }
            self.at += 1;
            if byte != b'\\' {
                value.push(byte);
                continue;
            }
            let Some(escaped) = self.byte(0) else {
                return Err(self.error(start, "this literal does not end"));
            };
            if prefix.is_raw {
                value.push(byte);
                value.push(escaped);
                self.at += 1;
            } else {
                self.escape(start, escaped, prefix.is_bytes, &mut value)?;
            }
        }

        let token = match (prefix.is_bytes, String::from_utf8(value)) {
            (true, Ok(text)) => Token::HexStringLiteral(hex::encode(text)),
            (true, Err(error)) => Token::HexStringLiteral(hex::encode(error.into_bytes())),
            (false, Ok(text)) => Token::SingleQuotedString(text),
            (false, Err(_)) => return Err(self.error(start, "this text is not UTF-8: bytes are written b'..'")),
        };
        self.push(start, token)
    }

    /// The value of an escape whose character is next.
    fn escape(&mut self, start: usize, escaped: u8, is_bytes: bool, value: &mut Vec<u8>) -> Result<(), ParserError> {
        self.at += 1;
        let plain = match escaped {
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            b'\\' | b'?' | b'"' | b'\'' | b'`' | b'\n' => escaped,
            b'x' | b'X' => return self.code(start, 2, 16, is_bytes, value),
            b'u' if !is_bytes => return self.code(start, 4, 16, false, value),
            b'U' if !is_bytes => return self.code(start, 8, 16, false, value),
            b'0'..=b'3' => {
                self.at -= 1;
                return self.code(start, 3, 8, is_bytes, value);
            }
            _ => return Err(self.error(start, "this literal has an escape that there is not: a backslash is \\\\")),
        };
        value.push(plain);
        Ok(())
    }

    /// A byte or a character by its number, of `digits` digits.
    fn code(
        &mut self,
        start: usize,
        digits: usize,
        radix: u32,
        is_bytes: bool,
        value: &mut Vec<u8>,
    ) -> Result<(), ParserError> {
        let code = self.text.get(self.at..self.at + digits).and_then(|digits| u32::from_str_radix(digits, radix).ok());
        let Some(code) = code else {
            return Err(self.error(start, "this literal has an escape with too few digits"));
        };
        self.at += digits;
        match (is_bytes, u8::try_from(code), char::from_u32(code)) {
            (true, Ok(byte), _) => value.push(byte),
            (false, _, Some(character)) => value.extend(character.to_string().bytes()),
            _ => return Err(self.error(start, "this literal has an escape that is no character")),
        }
        Ok(())
    }

    /// A name between backticks.
    fn name(&mut self) -> Result<(), ParserError> {
        let start = self.at;
        let rest = self.text.get(start + 1..).unwrap_or_default();
        let Some((name, _)) = rest.split_once('`') else { return Err(self.error(start, "this name does not end")) };
        self.at = start + 1 + name.len() + 1;
        self.push(start, Token::make_word(name, Some('"')))
    }

    fn comment(&mut self, end: &str) -> Result<(), ParserError> {
        let start = self.at;
        self.flush(start)?;
        let rest = self.text.get(start..).unwrap_or_default();
        self.at = match rest.find(end) {
            Some(at) => start + at + end.len(),
            None if end == "\n" => self.text.len(),
            None => return Err(self.error(start, "this comment does not end")),
        };
        self.plain = self.at;
        Ok(())
    }

    /// Adds a token of the text from `start` to here, behind those before it.
    fn push(&mut self, start: usize, token: Token) -> Result<(), ParserError> {
        self.flush(start)?;
        let span = Span::new(location(self.text, start), location(self.text, self.at));
        self.tokens.push(TokenWithSpan::new(token, span));
        self.plain = self.at;
        Ok(())
    }

    /// Adds the tokens up to `end` that are not of GoogleSQL alone.
    fn flush(&mut self, end: usize) -> Result<(), ParserError> {
        let plain = self.text.get(self.plain..end).unwrap_or_default();
        if plain.is_empty() {
            return Ok(());
        }
        let first = location(self.text, self.plain);
        let moved = |place: Location| match place.line {
            1 => Location::new(first.line, first.column + place.column - 1),
            line => Location::new(first.line + line - 1, place.column),
        };
        for token in Tokenizer::new(&TidetableDialect, plain).tokenize_with_location()? {
            let span = Span::new(moved(token.span.start), moved(token.span.end));
            self.tokens.push(TokenWithSpan::new(token.token, span));
        }
        self.plain = end;
        Ok(())
    }

    fn error(&self, start: usize, problem: &str) -> ParserError {
        ParserError::TokenizerError(format!("{problem}{}", location(self.text, start)))
    }
}

/// Line and column of a byte, from 1.
fn location(text: &str, at: usize) -> Location {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() as u64 + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() as u64 + 1;
    Location::new(line, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn only(text: &str) -> Token {
        let tokens = tokens(text).unwrap();
        assert_eq!(tokens.len(), 1, "{text}: {tokens:?}");
        tokens[0].token.clone()
    }

    #[test]
    fn literals_are_those_of_googlesql() {
        let text = |text: &str| Token::SingleQuotedString(text.to_owned());
        let bytes = |bytes: &[u8]| Token::HexStringLiteral(hex::encode(bytes));
        assert_eq!(only(r"'it\'s'"), text("it's"));
        assert_eq!(only("\"a'b\""), text("a'b"));
        assert_eq!(only("'''a'b\nc'''"), text("a'b\nc"));
        assert_eq!(only(r"'\x41\u00e9\101\n'"), text("AéA\n"));
        assert_eq!(only(r"r'\d+\''"), text(r"\d+\'"));
        assert_eq!(only(r"b'\x01\xff\000'"), bytes(b"\x01\xff\0"));
        assert_eq!(only("B\"é\""), bytes("é".as_bytes()));
        assert_eq!(only(r"rb'\x01'"), bytes(br"\x01"));
        assert_eq!(only("''"), text(""));
        assert_eq!(only("`a b`"), Token::make_word("a b", Some('"')));
    }

    #[test]
    fn places_are_those_of_the_text() {
        let tokens = tokens("SELECT 'é' # one\n, \"b\" AS x").unwrap();
        let words = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_)));
        let places: Vec<(u64, u64)> = words.map(|word| (word.span.start.line, word.span.start.column)).collect();
        assert_eq!(places, [(1, 1), (1, 8), (2, 1), (2, 3), (2, 7), (2, 10)]);
    }

    #[test]
    fn literals_that_are_wrong_name_their_place() {
        for text in ["SELECT 'a", r"SELECT '\q'", r"SELECT b'\u0041'", r"SELECT '\x4'", "SELECT `a", "SELECT 'a\nb'"] {
            let told = tokens(text).unwrap_err().to_string();
            assert!(told.contains("Column: 8"), "{text}: {told}");
        }
        assert!(tokens("/* a").is_err());
    }
}
