//! Names of the catalog, its schemas, and versions of tables.

pub(crate) const CATALOG: &str = "tidetable";
/// The default schema: tables as records.
pub(crate) const RECORDS: &str = "records";
/// Schema of tables as cells.
pub(crate) const CELLS: &str = "cells";
/// Schema of tables as rows.
pub(crate) const ROWS: &str = "rows";
/// Schema of published exports.
pub(crate) const EXPORTS: &str = "exports";
/// Schema of run records.
pub(crate) const RUNS: &str = "runs";

/// Splits a name such as `SENSOR@42` into table and version.
pub(crate) fn of_version(name: &str) -> (&str, Option<u64>) {
    match name.rsplit_once('@').map(|(table, number)| (table, number.parse())) {
        Some((table, Ok(number))) => (table, Some(number)),
        _ => (name, None),
    }
}
