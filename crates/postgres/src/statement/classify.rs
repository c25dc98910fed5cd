//! What a statement asks for.

use crate::error::{Refusal, code};
use crate::statement::copy::{CopyOptions, copy};
use crate::statement::lexer::{Token, tokens};
use crate::statement::settings::{Setting, setting, shown};

/// Parts of a statement that are looked at: enough for those about a session.
const LOOKED_AT: usize = 400;

/// Rows that a `FETCH` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// So many.
    Rows(usize),
    /// Those that are left.
    All,
}

/// A statement by what it asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Statement {
    /// Rows of a query.
    Query,
    /// No statement at all.
    Empty,
    /// Begins a block of statements.
    Begin,
    /// Ends a block.
    Commit,
    /// Gives a block up.
    Rollback,
    /// Goes back to a point of a block, which undoes nothing here.
    RollbackTo,
    /// A point of a block, or what is accepted and does nothing; the tag that answers it.
    Accepted(&'static str),
    /// Sets something of the session.
    Set(Setting),
    /// Asks for a setting.
    Show(String),
    /// Forgets prepared statements; `None` for all.
    Deallocate(Option<String>),
    /// Forgets all of the session.
    Discard,
    /// Names the rows of a query, to fetch them later.
    Declare { cursor: String, is_binary: bool, is_held: bool, query: String },
    /// Asks for rows of a cursor, or skips them.
    Fetch { cursor: String, rows: Fetched, is_skipped: bool },
    /// Forgets a cursor; `None` for all.
    Close(Option<String>),
    /// Sends the rows of a query as a file.
    Copy { query: String, options: CopyOptions },
}

/// What `statement` asks for.
///
/// # Errors
/// If it writes, is not served, or is one about the session that cannot be read.
pub(crate) fn classify(statement: &str) -> Result<Statement, Refusal> {
    let found = tokens(statement, LOOKED_AT);
    let words: Vec<Token> = found.iter().map(|(token, _)| token.clone()).collect();
    let Some(first) = words.first() else { return Ok(Statement::Empty) };
    let Token::Word(keyword) = first else { return Ok(Statement::Query) };
    let rest = words.get(1..).unwrap_or_default();

    Ok(match keyword.to_ascii_uppercase().as_str() {
        "BEGIN" | "START" => Statement::Begin,
        "COMMIT" | "END" => Statement::Commit,
        "ROLLBACK" | "ABORT" => match rest.iter().any(|word| word.is("TO")) {
            true => Statement::RollbackTo,
            false => Statement::Rollback,
        },
        "SAVEPOINT" => Statement::Accepted("SAVEPOINT"),
        "RELEASE" => Statement::Accepted("RELEASE"),
        "LISTEN" => return Err(unsupported("LISTEN", "nothing is notified here")),
        "UNLISTEN" => Statement::Accepted("UNLISTEN"),
        "SET" => Statement::Set(setting(rest)?),
        "RESET" => Statement::Set(reset(rest)),
        "SHOW" => match shown(rest) {
            Some(name) => Statement::Show(name),
            // `SHOW TABLES` and the like are queries of DataFusion.
            None => Statement::Query,
        },
        "DISCARD" => Statement::Discard,
        "DEALLOCATE" => Statement::Deallocate(named(rest, "PREPARE")),
        "CLOSE" => Statement::Close(named(rest, "")),
        "DECLARE" => declare(statement, &found)?,
        "FETCH" => fetch(rest, false)?,
        "MOVE" => fetch(rest, true)?,
        "COPY" => {
            let (query, options) = copy(statement, &found)?;
            Statement::Copy { query, options }
        }
        word => match WRITES.iter().find(|write| **write == word) {
            Some(write) => return Err(refused(write)),
            None => Statement::Query,
        },
    })
}

/// Statements that change something, or that have no meaning here.
const WRITES: [&str; 28] = [
    "INSERT",
    "UPDATE",
    "DELETE",
    "MERGE",
    "CREATE",
    "DROP",
    "ALTER",
    "TRUNCATE",
    "GRANT",
    "REVOKE",
    "COMMENT",
    "VACUUM",
    "ANALYZE",
    "REINDEX",
    "CLUSTER",
    "REFRESH",
    "LOCK",
    "CALL",
    "DO",
    "NOTIFY",
    "PREPARE",
    "EXECUTE",
    "REASSIGN",
    "SECURITY",
    "CHECKPOINT",
    "LOAD",
    "IMPORT",
    "REPLACE",
];

fn refused(statement: &str) -> Refusal {
    match statement {
        "PREPARE" | "EXECUTE" => unsupported(statement, "statements are prepared by the driver, as by Parse and Bind"),
        _ => unsupported(statement, "the store is served read-only, and its tables are made by `tidetable run`"),
    }
}

fn unsupported(statement: &str, why: &str) -> Refusal {
    Refusal::new(code::UNSUPPORTED, format!("{statement} is refused: {why}"))
}

/// The name that follows, or `ALL` as `None`; a word such as PREPARE may stand before it.
fn named(rest: &[Token], skipped: &str) -> Option<String> {
    let mut rest = rest.iter().peekable();
    if rest.peek().is_some_and(|word| !skipped.is_empty() && word.is(skipped)) {
        rest.next();
    }
    rest.next().filter(|word| !word.is("ALL")).and_then(Token::text)
}

fn reset(rest: &[Token]) -> Setting {
    let name = rest.iter().filter_map(Token::text).collect::<Vec<_>>().join(" ");
    match name.as_str() {
        "all" => Setting::ResetAll,
        "time zone" => Setting::Reset("timezone".to_owned()),
        _ => Setting::Reset(name),
    }
}

/// `DECLARE name [BINARY] [[NO] SCROLL] CURSOR [WITH HOLD] FOR query`.
fn declare(statement: &str, found: &[(Token, usize)]) -> Result<Statement, Refusal> {
    let start = found.iter().position(|(word, _)| word.is("FOR")).and_then(|place| found.get(place));
    let cursor = found.get(1).and_then(|(name, _)| name.text());
    let (Some((_, end)), Some(cursor)) = (start, cursor) else {
        return Err(Refusal::new(code::SYNTAX, "DECLARE needs a name and a query: DECLARE name CURSOR FOR query"));
    };
    let has = |word: &str| found.iter().take_while(|(token, _)| !token.is("FOR")).any(|(token, _)| token.is(word));
    let is_held = has("HOLD") && !has("WITHOUT");
    let query = statement.get(*end..).unwrap_or_default().trim().to_owned();
    Ok(Statement::Declare { cursor, is_binary: has("BINARY"), is_held, query })
}

/// `FETCH [NEXT | n | ALL | FORWARD [n | ALL]] [FROM | IN] name`.
fn fetch(rest: &[Token], is_skipped: bool) -> Result<Statement, Refusal> {
    let cursor = rest.last().and_then(Token::text);
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

    #[test]
    fn statements_of_a_session_are_known() {
        let of = |text: &str| classify(text).unwrap();
        assert_eq!(of("  -- nothing"), Statement::Empty);
        assert_eq!(of("begin isolation level serializable"), Statement::Begin);
        assert_eq!(of("ROLLBACK TO SAVEPOINT a"), Statement::RollbackTo);
        assert_eq!(of("DEALLOCATE \"_pg3_0\""), Statement::Deallocate(Some("_pg3_0".to_owned())));
        assert_eq!(of("DEALLOCATE PREPARE ALL"), Statement::Deallocate(None));
        assert_eq!(of("(SELECT 1)"), Statement::Query);
        assert_eq!(of("WITH a AS (SELECT 1) SELECT * FROM a"), Statement::Query);
        assert_eq!(of("SHOW TABLES"), Statement::Query);
        let declared =
            Statement::Declare { cursor: "c".to_owned(), is_binary: true, is_held: true, query: "SELECT 1".to_owned() };
        assert_eq!(of("DECLARE c BINARY NO SCROLL CURSOR WITH HOLD FOR SELECT 1"), declared);
        let fetched = |rows| Statement::Fetch { cursor: "C".to_owned(), rows, is_skipped: false };
        assert_eq!(of("FETCH FORWARD 100 FROM \"C\""), fetched(Fetched::Rows(100)));
        assert_eq!(of("FETCH ALL IN \"C\""), fetched(Fetched::All));
        assert_eq!(of("FETCH \"C\""), fetched(Fetched::Rows(1)));
    }

    #[test]
    fn what_writes_is_refused_with_a_sentence() {
        for text in
            ["INSERT INTO t VALUES (1)", "create table t (a int)", "COPY t FROM STDIN", "FETCH PRIOR c", "LISTEN x"]
        {
            let refusal = classify(text).unwrap_err();
            assert_eq!(refusal.code, "0A000", "{text}");
            assert!(refusal.message.split_whitespace().count() > 5, "{}", refusal.message);
        }
    }
}
