//! The tables that a query reads.

use datafusion::prelude::SessionContext;

use crate::error::{Result, SqlError};
use crate::names::{CATALOG, RECORDS};
use crate::planning_thread::with_deep_stack;
use crate::syntax::statement::parse;
use crate::views::planner::replace_views_by_tables;

/// As [`Session::references`]; `tables` are the tables of the store.
pub(crate) fn table_references(
    context: &SessionContext,
    query: &str,
    tables: &[String],
) -> Result<Vec<(String, String)>> {
    let state = context.state();
    let references = with_deep_stack(query, || {
        let mut statement = parse(&state, query).map_err(SqlError::planning)?;
        replace_views_by_tables(&mut statement, tables)?;
        state.resolve_table_references(&statement).map_err(SqlError::planning)
    })?;
    let mut names: Vec<(String, String)> = references
        .into_iter()
        .map(|reference| reference.resolve(CATALOG, RECORDS))
        .map(|reference| (reference.schema.to_string(), reference.table.to_string()))
        .collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}
