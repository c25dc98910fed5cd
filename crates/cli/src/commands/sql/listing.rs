//! `SHOW TABLES`, and `\d` at the prompt: what a query can read, tables first, an export as one line.

use tidetable_sql::{ExternalTables, run_tables};
use tidetable_store::Store;
use tidetable_store::leave_out;
use tidetable_store::published::Published;

use crate::error::CliError;
use crate::objects;
use crate::output::{ResultRows, row};

/// Whether a statement is `SHOW TABLES`.
pub(crate) fn is_asked(statement: &str) -> bool {
    let words: Vec<&str> = statement.split_whitespace().collect();
    matches!(words.as_slice(), [show, tables] if show.eq_ignore_ascii_case("show") && tables.eq_ignore_ascii_case("tables"))
}

/// Lists tables, external tables, exports with the number of their parts, and the tables of run records. `cells.T` and
/// `rows.T` are there for each table, and `exports.PART` for each part.
pub(crate) fn tables(store: &Store, external: &ExternalTables) -> Result<ResultRows, CliError> {
    let mut rows = ResultRows::of(objects::SHOWN_TABLES).minor(&["also"]);
    for name in store.tables()? {
        rows.push(row!["records", name, "table", (), format!("cells.{name}, rows.{name}")]);
    }
    for name in external.names() {
        rows.push(row!["records", name, "files", (), ()]);
    }
    let (exports, damaged) = Published::readable(store.blobs().as_ref())?;
    damaged.iter().for_each(leave_out);
    for export in exports {
        let parts = part_names(&export);
        rows.push(row!["exports", export.name, "export", export.parts.len(), parts]);
    }
    for name in run_tables() {
        rows.push(row!["runs", name, "run records", (), ()]);
    }
    Ok(rows)
}

/// Names of the first and the last part, which are tables, too.
fn part_names(export: &Published) -> Option<String> {
    let names = export.parts.values().map(|part| part.folder.as_str());
    let mut names: Vec<&str> = names.filter(|name| *name != export.name).collect();
    names.sort_unstable();
    match names.as_slice() {
        [] => None,
        [only] => Some(format!("exports.{only}")),
        [first, .., last] => Some(format!("exports.{first} to {last}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn show_tables_is_known_in_any_case() {
        assert!(is_asked("show tables"));
        assert!(is_asked("  SHOW\n TABLES "));
        assert!(!is_asked("show columns from t"));
        assert!(!is_asked("select 'show tables'"));
    }
}
