//! What a statement asks for.

use tidetable_sql::Word;

use crate::error::{Refusal, code};
use crate::statement::copy::copy;
use crate::statement::cursors::{declare, fetch};
use crate::statement::kinds::{Discarded, Statement};
use crate::statement::settings::{configured, reset, setting, shown};
use crate::statement::split::{first_word, words_of};

/// What `statement` asks for.
///
/// # Errors
/// If it writes, is not served, or is one about the session that cannot be read.
pub(crate) fn classify(statement: &str) -> Result<Statement, Refusal> {
    if statement.is_empty() {
        return Ok(Statement::Empty);
    }
    let keyword = first_word(statement);
    if let Some(write) = WRITES.iter().chain(&OTHERS).find(|write| **write == keyword) {
        return Err(refused(write));
    }
    if keyword == "SELECT" {
        return Ok(configured(statement)?.map_or(Statement::Query, Statement::SetConfig));
    }
    if !OF_SESSIONS.contains(&keyword.as_str()) {
        return Ok(Statement::Query);
    }

    let found = words_of(statement)?;
    let words: Vec<Word> = found.iter().map(|placed| placed.word.clone()).collect();
    let rest = words.get(1..).unwrap_or_default();
    Ok(match keyword.as_str() {
        "BEGIN" | "START" => Statement::Begin,
        "COMMIT" | "END" => Statement::Commit,
        "ROLLBACK" | "ABORT" => match rest.iter().any(|word| word.is("TO")) {
            true => Statement::RollbackTo,
            false => Statement::Rollback,
        },
        "SAVEPOINT" => Statement::Accepted("SAVEPOINT"),
        "RELEASE" => Statement::Accepted("RELEASE"),
        "UNLISTEN" => Statement::Accepted("UNLISTEN"),
        "SET" => Statement::Set(setting(rest)?),
        "RESET" => Statement::Set(reset(rest)),
        // `SHOW TABLES` and the like are queries of DataFusion.
        "SHOW" => shown(rest).map_or(Statement::Query, Statement::Show),
        "DISCARD" => Statement::Discard(discarded(rest)?),
        "DEALLOCATE" => Statement::Deallocate(named(rest, "PREPARE")),
        "CLOSE" => Statement::Close(named(rest, "")),
        "DECLARE" => declare(statement, &found)?,
        "FETCH" => fetch(rest, false)?,
        "MOVE" => fetch(rest, true)?,
        "COPY" => {
            let (query, options) = copy(statement, &found)?;
            Statement::Copy { query, options }
        }
        _ => Statement::Query,
    })
}

/// First words of the statements about a session.
const OF_SESSIONS: [&str; 18] = [
    "ABORT",
    "BEGIN",
    "CLOSE",
    "COMMIT",
    "COPY",
    "DEALLOCATE",
    "DECLARE",
    "DISCARD",
    "END",
    "FETCH",
    "MOVE",
    "RELEASE",
    "RESET",
    "ROLLBACK",
    "SAVEPOINT",
    "SET",
    "SHOW",
    "START",
];

/// Statements that write.
const WRITES: [&str; 20] = [
    "ALTER", "ANALYZE", "CLUSTER", "COMMENT", "CREATE", "DELETE", "DROP", "GRANT", "IMPORT", "INSERT", "MERGE",
    "REASSIGN", "REFRESH", "REINDEX", "REPLACE", "REVOKE", "SECURITY", "TRUNCATE", "UPDATE", "VACUUM",
];

/// Statements that have no meaning here.
const OTHERS: [&str; 9] = ["CALL", "CHECKPOINT", "DO", "EXECUTE", "LISTEN", "LOAD", "LOCK", "NOTIFY", "PREPARE"];

fn refused(statement: &str) -> Refusal {
    let (code, why) = match statement {
        "PREPARE" | "EXECUTE" => (code::UNSUPPORTED, "statements are prepared by the driver, as by Parse and Bind"),
        "LISTEN" | "NOTIFY" => (code::UNSUPPORTED, "nothing is notified here"),
        "LOCK" => (code::UNSUPPORTED, "nothing is locked here, for nothing can be written"),
        statement if OTHERS.contains(&statement) => (code::UNSUPPORTED, "queries are served, and nothing else is run"),
        _ => (code::READ_ONLY, "the store is served read-only, and its tables are made by `tidetable run`"),
    };
    Refusal::new(code, format!("{statement} is refused: {why}"))
}

/// The name that follows, or `ALL` as `None`; a word such as PREPARE may stand before it.
fn named(rest: &[Word], skipped: &str) -> Option<String> {
    let mut rest = rest.iter().peekable();
    if rest.peek().is_some_and(|word| !skipped.is_empty() && word.is(skipped)) {
        rest.next();
    }
    rest.next().filter(|word| !word.is("ALL")).and_then(Word::text)
}

fn discarded(rest: &[Word]) -> Result<Discarded, Refusal> {
    match rest {
        [what] if what.is("ALL") => Ok(Discarded::All),
        [what] if what.is("PLANS") => Ok(Discarded::Plans),
        [what] if what.is("TEMP") || what.is("TEMPORARY") => Ok(Discarded::Temp),
        [what] if what.is("SEQUENCES") => Ok(Discarded::Sequences),
        _ => Err(Refusal::new(code::SYNTAX, "DISCARD takes ALL, PLANS, TEMP or SEQUENCES")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_a_session_are_known() {
        let of = |text: &str| classify(text).unwrap();
        assert_eq!(of(""), Statement::Empty);
        assert_eq!(of("begin isolation level serializable"), Statement::Begin);
        assert_eq!(of("ROLLBACK TO SAVEPOINT a"), Statement::RollbackTo);
        assert_eq!(of("DEALLOCATE \"_pg3_0\""), Statement::Deallocate(Some("_pg3_0".to_owned())));
        assert_eq!(of("DEALLOCATE PREPARE ALL"), Statement::Deallocate(None));
        assert_eq!(of("(SELECT 1)"), Statement::Query);
        assert_eq!(of("WITH a AS (SELECT 1) SELECT * FROM a"), Statement::Query);
        for (text, discarded) in [
            ("DISCARD ALL", Discarded::All),
            ("discard plans", Discarded::Plans),
            ("DISCARD TEMPORARY", Discarded::Temp),
            ("DISCARD SEQUENCES", Discarded::Sequences),
        ] {
            assert_eq!(of(text), Statement::Discard(discarded), "{text}");
        }
        assert_eq!(classify("DISCARD").unwrap_err().code, "42601");
    }

    #[test]
    fn names_with_a_schema_are_no_settings() {
        let of = |text: &str| classify(text).unwrap();
        for query in ["SHOW TABLES", "SHOW COLUMNS FROM T", "SHOW COLUMNS FROM records.T", "SHOW COLUMNS FROM \"a.b\""]
        {
            assert_eq!(of(query), Statement::Query, "{query}");
        }
        assert_eq!(of("SHOW myapp.user"), Statement::Show("myapp.user".to_owned()));
        assert_eq!(of("SHOW TRANSACTION ISOLATION LEVEL"), Statement::Show("transaction_isolation".to_owned()));
    }

    #[test]
    fn what_writes_is_refused_with_a_sentence() {
        for (text, code) in [
            ("INSERT INTO t VALUES (1)", "25006"),
            ("create table t (a int)", "25006"),
            ("COPY t FROM STDIN", "25006"),
            ("FETCH PRIOR c", "0A000"),
            ("LISTEN x", "0A000"),
            ("PREPARE a AS SELECT 1", "0A000"),
            ("LOCK TABLE t", "0A000"),
            ("DO $$ BEGIN END $$", "0A000"),
        ] {
            let refusal = classify(text).unwrap_err();
            assert_eq!(refusal.code, code, "{text}");
            assert!(refusal.message.split_whitespace().count() > 5, "{}", refusal.message);
        }
    }
}
