//! Names of the catalog, its schemas, and versions of tables.

pub(crate) const CATALOG: &str = "tidetable";
/// The default schema, in which a table shows its records.
pub(crate) const RECORDS: &str = "records";
/// The schema in which a table shows its cells.
pub(crate) const CELLS: &str = "cells";
/// The schema in which a table shows its rows.
pub(crate) const ROWS: &str = "rows";
/// The schema of the published exports of the store.
pub(crate) const EXPORTS: &str = "exports";
/// The schema of the tables about runs, such as `runs.inputs`.
pub(crate) const RUNS: &str = "runs";

/// Splits a name such as `SENSOR@42` into table and version.
pub(crate) fn of_version(name: &str) -> (&str, Option<u64>) {
    match name.rsplit_once('@').map(|(table, number)| (table, number.parse())) {
        Some((table, Ok(number))) => (table, Some(number)),
        _ => (name, None),
    }
}
