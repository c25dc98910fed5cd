//! Resolves `--version` for the tables of a query.

use std::collections::BTreeSet;

use tidetable_sql::{Session, SessionOptions, TableVersions};
use tidetable_store::Store;

use crate::args::Sql;
use crate::error::CliError;

/// The versions to read. A number without a table is for the only table of the query.
pub(super) fn versions(store: &Store, args: &Sql, query: &str) -> Result<TableVersions, CliError> {
    let mut versions = TableVersions { as_of: args.as_of_commit, ..TableVersions::default() };
    if args.version.is_empty() {
        return Ok(versions);
    }

    let references = Session::open(store, &SessionOptions::default())?.references(query)?;
    let read: BTreeSet<String> =
        references.into_iter().filter(|(schema, _)| schema != "exports").map(|(_, table)| table).collect();

    for (table, number) in &args.version {
        let table = match (table, read.len()) {
            (Some(table), _) if read.contains(table) => table.clone(),
            (None, 1) => read.first().cloned().unwrap_or_default(),
            _ => {
                return Err(CliError::Usage(
                    "--version must name a table that the query reads, as in --version SENSOR=7",
                ));
            }
        };
        versions.numbers.insert(table, *number);
    }
    Ok(versions)
}
