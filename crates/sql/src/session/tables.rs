//! The tables of a session with their columns.

use arrow::datatypes::SchemaRef;
use datafusion::prelude::SessionContext;

use crate::names::CATALOG;

/// A table with its columns.
#[derive(Debug, Clone)]
pub struct TableColumns {
    /// The schema of the table, such as `records`.
    pub schema: String,
    /// The name of the table.
    pub name: String,
    /// Its columns; `None` if it cannot be read.
    pub columns: Option<SchemaRef>,
}

/// All tables with their columns. Opens each.
pub(crate) async fn all_tables(context: &SessionContext) -> Vec<TableColumns> {
    let mut found = Vec::new();
    for (schema, name) in table_names(context) {
        let provider = context.catalog(CATALOG).and_then(|catalog| catalog.schema(&schema));
        let table = match provider {
            Some(provider) => provider.table(&name).await.ok().flatten(),
            None => None,
        };
        found.push(TableColumns { schema, name, columns: table.map(|table| table.schema()) });
    }
    found
}

/// Schemas and names of all tables. Opens none.
pub(crate) fn table_names(context: &SessionContext) -> Vec<(String, String)> {
    let Some(catalog) = context.catalog(CATALOG) else { return Vec::new() };
    let mut names = Vec::new();
    for schema in catalog.schema_names() {
        let Some(tables) = catalog.schema(&schema) else { continue };
        names.extend(tables.table_names().into_iter().map(|name| (schema.clone(), name)));
    }
    names
}
