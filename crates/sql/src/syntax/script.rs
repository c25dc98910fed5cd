//! Splits scripts into statements, and locates errors in them.

use datafusion::sql::sqlparser::tokenizer::{Location, Token, Tokenizer, TokenizerError};

use crate::error::SqlError;
use crate::syntax::dialect::TidetableDialect;

/// One statement of a script of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement<'a> {
    /// The text of the statement, without its semicolon.
    pub text: &'a str,
    /// Start in the script: line and column, both from 1.
    pub at: (u64, u64),
}

/// Splits `script` at semicolons, without statements that are comments only. The last one needs no semicolon.
///
/// # Errors
/// If a string or a comment is not terminated.
pub fn statements(script: &str) -> Result<Vec<Statement<'_>>, ScriptError> {
    Ok(split(script)?.0)
}

/// Whether the last statement of `script` ends with a semicolon, and no string or comment is open.
pub fn is_complete(script: &str) -> bool {
    split(script).is_ok_and(|(_, complete)| complete)
}

/// A script that cannot be split into statements.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScriptError {
    /// What is wrong, in the words of the tokenizer.
    pub message: String,
    /// Line and column of the fault in the script, both from 1.
    pub at: (u64, u64),
}

/// The statements of a script, and whether the last one is ended by a semicolon.
fn split(script: &str) -> Result<(Vec<Statement<'_>>, bool), ScriptError> {
    let tokens = Tokenizer::new(&TidetableDialect, script).tokenize_with_location();
    let tokens = tokens.map_err(|TokenizerError { message, location }| ScriptError {
        message,
        at: (location.line, location.column),
    })?;

    let mut found = Vec::new();
    let (mut begins, mut has_words): (Option<Location>, bool) = (None, false);
    let mut lines = LineOffsets::new(script);
    let mut start = 0;

    for token in &tokens {
        match &token.token {
            Token::SemiColon => {
                let end = lines.offset(token.span.start);
                if let Some(at) = begins.take().filter(|_| has_words) {
                    found
                        .push(Statement { text: script.get(start..end).unwrap_or_default(), at: (at.line, at.column) });
                }
                has_words = false;
            }
            Token::Whitespace(_) => {}
            Token::EOF => {}
            _ => {
                if begins.is_none() {
                    begins = Some(token.span.start);
                    start = lines.offset(token.span.start);
                }
                has_words = true;
            }
        }
    }

    let complete = begins.is_none() && !found.is_empty();
    if let Some(at) = begins {
        let text = script.get(start..).unwrap_or_default().trim_end();
        found.push(Statement { text, at: (at.line, at.column) });
    }
    Ok((found, complete))
}

/// Offsets of locations, which come in ascending order: the text is read once.
pub(crate) struct LineOffsets<'a> {
    text: &'a str,
    line: u64,
    column: u64,
    /// Byte offset of that line and column in the script.
    offset: usize,
}

impl<'a> LineOffsets<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, line: 1, column: 1, offset: 0 }
    }

    pub(crate) fn offset(&mut self, at: Location) -> usize {
        while self.line < at.line {
            let rest = self.text.get(self.offset..).unwrap_or_default();
            let Some(end) = rest.find('\n') else { break };
            (self.offset, self.line, self.column) = (self.offset + end + 1, self.line + 1, 1);
        }
        let rest = self.text.get(self.offset..).unwrap_or_default();
        let skipped = rest.chars().take(usize::try_from(at.column.saturating_sub(self.column)).unwrap_or_default());
        self.offset += skipped.map(char::len_utf8).sum::<usize>();
        self.column = self.column.max(at.column);
        self.offset
    }
}

impl SqlError {
    /// Line and column of the error in the statement, both from 1, if DataFusion reports them.
    pub fn place(&self) -> Option<(u64, u64)> {
        let error = match self {
            Self::Invalid(error) | Self::Query(error) => error,
            Self::TooDeep { at, .. } => return *at,
            _ => return None,
        };
        if let Some(span) = error.diagnostic().and_then(|diagnostic| diagnostic.span) {
            return Some((span.start.line, span.start.column));
        }
        let text = error.to_string();
        let (_, rest) = text.split_once("Line: ")?;
        let (line, rest) = rest.split_once(", Column: ")?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        Some((line.parse().ok()?, rest.get(..digits)?.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(script: &str) -> Vec<(&str, (u64, u64))> {
        statements(script).unwrap().into_iter().map(|statement| (statement.text, statement.at)).collect()
    }

    #[test]
    fn semicolons_in_strings_and_comments_do_not_end_statements() {
        assert_eq!(texts("select 1"), [("select 1", (1, 1))]);
        let script = "-- first; not\nselect ';' as \"a;b\" /* ; */;\n\n  select é,\n2 ;;\n-- end\n";
        assert_eq!(texts(script), [("select ';' as \"a;b\" /* ; */", (2, 1)), ("select é,\n2 ", (4, 3))]);
        assert_eq!(texts(" ; -- nothing"), []);
        let open = statements("select 1;\nselect 'x").unwrap_err();
        assert_eq!(open.at.0, 2);
    }

    #[test]
    fn a_statement_is_complete_with_its_semicolon() {
        assert!(is_complete("select 1;"));
        assert!(is_complete("select 1; -- and a comment"));
        for open in ["", "select 1", "select ';", "select 1; select 2", "/* select 1;"] {
            assert!(!is_complete(open), "{open}");
        }
    }
}
