//! The parser.

use super::{failure, plain, rows, still_broken, still_fails};

const DIALECT: &str = "crates/sql/src/syntax/dialect.rs (all operators of its tests must bind as in PostgreSQL)";

#[tokio::test]
async fn still_broken_operators_bind_otherwise_than_in_postgresql() {
    let distinct = "SELECT column1 IS DISTINCT FROM column2 AND column2 FROM (VALUES (true, false))";
    still_broken(&rows(&plain(), distinct).await, &["true"], &["false"], DIALECT);
    let like = "SELECT true = 'a' LIKE 'a'";
    still_fails(&failure(&plain(), like).await, "Boolean = Utf8", DIALECT);
    let concatenated = "SELECT 'a' || 1 + 2";
    still_fails(&failure(&plain(), concatenated).await, "Utf8 + Int64", DIALECT);
}

#[tokio::test]
async fn still_broken_byte_strings_are_not_planned() {
    let remove = "pre_visit_value of crates/sql/src/syntax/statement.rs";
    still_fails(&failure(&plain(), "SELECT b'ab'").await, "SingleQuotedByteStringLiteral", remove);
}

#[tokio::test]
async fn still_broken_fields_of_list_elements_are_not_planned() {
    let query = "SELECT make_array(named_struct('a', 1))[1].a";
    let remove = "CompoundFieldAccess in pre_visit_expr of crates/sql/src/syntax/statement.rs";
    still_fails(&failure(&plain(), query).await, "Dot access not supported", remove);
}
