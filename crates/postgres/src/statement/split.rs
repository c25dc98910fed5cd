//! Splits what a client sends into statements, as the parser of queries reads it.

use tidetable_sql::{PlacedWord, ScriptError, statements, words};

use crate::error::{Refusal, code};

/// Bytes of a text of statements at most: each of its words takes many times its length while it is planned.
const MOST_TEXT: usize = 2 << 20;

/// The statements of a text, without their semicolons. Text without words is none.
///
/// # Errors
/// If the text is too long, or a literal or a comment in it has no end.
pub(crate) fn split(text: &str) -> Result<Vec<&str>, Refusal> {
    if text.len() > MOST_TEXT {
        let text = format!(
            "the text of a statement has {} bytes, and {MOST_TEXT} are the most: send values as parameters, or lists as arrays",
            text.len()
        );
        return Err(Refusal::new(code::LENGTH, text));
    }
    let found = statements(text).map_err(refused)?;
    Ok(found.into_iter().map(|statement| statement.text.trim_end()).collect())
}

/// The words of a statement.
///
/// # Errors
/// If a literal or a comment in it has no end.
pub(super) fn words_of(statement: &str) -> Result<Vec<PlacedWord>, Refusal> {
    words(statement).map_err(refused)
}

/// The word that a statement begins with, in upper case; empty if it begins otherwise.
pub(crate) fn first_word(statement: &str) -> String {
    let letters = statement.chars().take_while(char::is_ascii_alphabetic);
    letters.map(|letter| letter.to_ascii_uppercase()).collect()
}

fn refused(ScriptError { message, at }: ScriptError) -> Refusal {
    Refusal { place: Some(at), ..Refusal::new(code::SYNTAX, message) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semicolons_in_texts_and_comments_do_not_end_statements() {
        assert_eq!(split("SELECT 1; SELECT ';' -- ;\n;;").unwrap(), ["SELECT 1", "SELECT ';' -- ;"]);
        assert!(split(" ; /* nothing */ ;").unwrap().is_empty());
        assert_eq!(split("SELECT E'\\';'").unwrap(), ["SELECT E'\\';'"]);
        assert_eq!(split("SELECT $$a;b$$; SELECT 2").unwrap(), ["SELECT $$a;b$$", "SELECT 2"]);
        let open = split("SELECT 1;\nSELECT 'open").unwrap_err();
        assert_eq!((open.code, open.place.map(|place| place.0)), ("42601", Some(2)));
        assert_eq!(split(&" ".repeat(MOST_TEXT + 1)).unwrap_err().code, "54000");
    }

    #[test]
    fn statements_are_known_by_their_first_word() {
        assert_eq!(first_word("explain SELECT 1"), "EXPLAIN");
        assert_eq!(first_word("(SELECT 1)"), "");
    }
}
