//! `DECLARE` and `FETCH`: cursors, which go forward only.

use tidetable_sql::{PlacedWord, Word};

use crate::error::{Refusal, code};
use crate::statement::kinds::{Fetched, Statement};

/// `DECLARE name [BINARY] [[NO] SCROLL] CURSOR [WITH HOLD] FOR query`.
///
/// # Errors
/// If it has no name or no query.
pub(super) fn declare(statement: &str, found: &[PlacedWord]) -> Result<Statement, Refusal> {
    let place = found.iter().position(|placed| placed.word.is("FOR")).unwrap_or(found.len());
    let query = found.get(place + 1).and_then(|first| statement.get(first.start..));
    let cursor = found.get(1).and_then(|placed| placed.word.text());
    let (Some(query), Some(cursor)) = (query, cursor) else {
        return Err(Refusal::new(code::SYNTAX, "DECLARE needs a name and a query: DECLARE name CURSOR FOR query"));
    };
    let has = |word: &str| found.iter().take(place).any(|placed| placed.word.is(word));
    let is_held = has("HOLD") && !has("WITHOUT");
    Ok(Statement::Declare { cursor, is_binary: has("BINARY"), is_held, query: query.trim().to_owned() })
}

/// `FETCH [NEXT | n | ALL | FORWARD [n | ALL]] [FROM | IN] name`.
///
/// # Errors
/// If it goes backward, or names no cursor.
pub(super) fn fetch(rest: &[Word], is_skipped: bool) -> Result<Statement, Refusal> {
    let cursor = rest.last().and_then(Word::text);
    let cursor = cursor.ok_or_else(|| Refusal::new(code::SYNTAX, "FETCH needs the name of a cursor"))?;
    let mut rows = Fetched::Rows(1);
    for word in rest.iter().take(rest.len().saturating_sub(1)) {
        let text = word.text().unwrap_or_else(|| "-".to_owned());
        match text.as_str() {
            "next" | "from" | "in" | "forward" => {}
            "all" => rows = Fetched::All,
            number => match number.parse() {
                Ok(number) => rows = Fetched::Rows(number),
                Err(_) => {
                    return Err(Refusal::new(
                        code::UNSUPPORTED,
                        "cursors only go forward: FETCH [FORWARD] n FROM name, or FETCH ALL",
                    ));
                }
            },
        }
    }
    Ok(Statement::Fetch { cursor, rows, is_skipped })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::classify;

    #[test]
    fn cursors_are_read() {
        let of = |text: &str| classify(text).unwrap();
        let declared =
            Statement::Declare { cursor: "c".to_owned(), is_binary: true, is_held: true, query: "SELECT 1".to_owned() };
        assert_eq!(of("DECLARE c BINARY NO SCROLL CURSOR WITH HOLD FOR SELECT 1"), declared);
        let fetched = |rows| Statement::Fetch { cursor: "C".to_owned(), rows, is_skipped: false };
        assert_eq!(of("FETCH FORWARD 100 FROM \"C\""), fetched(Fetched::Rows(100)));
        assert_eq!(of("FETCH ALL IN \"C\""), fetched(Fetched::All));
        assert_eq!(of("FETCH \"C\""), fetched(Fetched::Rows(1)));
        // Sign and number are two words.
        assert_eq!(classify("FETCH -1 FROM c").unwrap_err().code, "0A000");
        assert_eq!(classify("DECLARE c CURSOR FOR").unwrap_err().code, "42601");
    }
}
