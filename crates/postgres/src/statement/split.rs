//! Splits what a client sends into statements.

use crate::statement::lexer::{Token, tokens};

/// The statements of a text, without their semicolons. Text without words is none.
pub(crate) fn split(text: &str) -> Vec<&str> {
    let mut statements = Vec::new();
    let (mut start, mut has_words) = (0, false);
    for (token, end) in tokens(text, usize::MAX) {
        if token == Token::Sign(';') {
            if has_words {
                statements.extend(text.get(start..end - 1));
            }
            (start, has_words) = (end, false);
        } else {
            has_words = true;
        }
    }
    if has_words {
        statements.extend(text.get(start..));
    }
    statements.into_iter().map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semicolons_in_texts_and_comments_do_not_end_statements() {
        assert_eq!(split("SELECT 1; SELECT ';' -- ;\n;;"), ["SELECT 1", "SELECT ';' -- ;"]);
        assert!(split(" ; /* nothing */ ;").is_empty());
        assert_eq!(split("SELECT E'\\';'"), ["SELECT E'\\';'"]);
    }
}
