//! Words of a statement, as far as the statements about a session need them.

/// A part of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    /// A word without quotes, a number, or a parameter.
    Word(String),
    /// A name in double quotes.
    Name(String),
    /// A text in single quotes.
    Text(String),
    /// Any other character.
    Sign(char),
}

impl Token {
    /// Whether it is a keyword, in any case.
    pub(crate) fn is(&self, keyword: &str) -> bool {
        matches!(self, Self::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    /// The text of a word, a name or a text; words in lower case.
    pub(crate) fn text(&self) -> Option<String> {
        match self {
            Self::Word(word) => Some(word.to_lowercase()),
            Self::Name(text) | Self::Text(text) => Some(text.clone()),
            Self::Sign(_) => None,
        }
    }
}

/// The parts of a statement, each with the place where it ends, in bytes; at most `most` of them. Comments are no parts.
pub(crate) fn tokens(statement: &str, most: usize) -> Vec<(Token, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while found.len() < most {
        at = after_space(statement, at);
        let rest = statement.get(at..).unwrap_or_default();
        let Some(first) = rest.chars().next() else { break };
        let (token, length) = match first {
            '\'' => quoted(rest, '\'', false, Token::Text),
            '"' => quoted(rest, '"', false, Token::Name),
            'e' | 'E' if rest.get(1..).is_some_and(|rest| rest.starts_with('\'')) => {
                let (token, length) = quoted(rest.get(1..).unwrap_or_default(), '\'', true, Token::Text);
                (token, length + 1)
            }
            first if is_word(first) => {
                let length = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
                (Token::Word(rest.get(..length).unwrap_or_default().to_owned()), length)
            }
            first => (Token::Sign(first), first.len_utf8()),
        };
        at += length;
        found.push((token, at));
    }
    found
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '$' | '.')
}

/// The place after blanks and comments.
fn after_space(statement: &str, mut at: usize) -> usize {
    loop {
        let rest = statement.get(at..).unwrap_or_default();
        let blank = rest.len() - rest.trim_start().len();
        at += blank;
        let rest = rest.trim_start();
        if rest.starts_with("--") {
            at += rest.find('\n').map_or(rest.len(), |end| end + 1);
        } else if rest.starts_with("/*") {
            at += comment_length(rest);
        } else {
            return at;
        }
    }
}

/// Bytes of a comment, which may hold others.
fn comment_length(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth.saturating_sub(1), at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// What is in quotes at the start of a text, where two quotes stand for one, and its bytes with both quotes.
fn quoted(text: &str, quote: char, has_escapes: bool, token: fn(String) -> Token) -> (Token, usize) {
    let mut inside = String::new();
    let mut letters = text.char_indices().skip(1).peekable();
    while let Some((at, letter)) = letters.next() {
        if letter == quote {
            match letters.peek() {
                Some((_, next)) if *next == quote => drop(letters.next()),
                _ => return (token(inside), at + quote.len_utf8()),
            }
        }
        if has_escapes && letter == '\\' {
            if let Some((_, escaped)) = letters.next() {
                inside.push(match escaped {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    other => other,
                });
            }
            continue;
        }
        inside.push(letter);
    }
    (token(inside), text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(statement: &str) -> Vec<Token> {
        tokens(statement, 100).into_iter().map(|(token, _)| token).collect()
    }

    #[test]
    fn statements_fall_into_parts() {
        let word = |text: &str| Token::Word(text.to_owned());
        let found = words("-- a\nSET /* b /* c */ */ x TO 'it''s', \"A\"\"b\";");
        let text = Token::Text("it's".to_owned());
        let name = Token::Name("A\"b".to_owned());
        assert_eq!(found, [word("SET"), word("x"), word("TO"), text, Token::Sign(','), name, Token::Sign(';')]);
        assert_eq!(words("E'a\\nb'"), [Token::Text("a\nb".to_owned())]);
        assert_eq!(words("'open"), [Token::Text("open".to_owned())]);
        assert_eq!(words("/* open"), []);
        assert_eq!(tokens("COPY é", 2).last().map(|(_, end)| *end), Some(7));
    }
}
