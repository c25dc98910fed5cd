//! Queries checked before there is anything to ask: planned over tables that are only declared.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider};
use datafusion::datasource::empty::EmptyTable;
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};

use crate::catalog::{CATALOG, RECORDS};
use crate::error::Result;
use crate::session::read_as_written;

/// Plans `query` over `tables`, each a name and the columns of its records.
///
/// # Errors
/// If it is no query over them.
pub async fn check_query(tables: &[(String, SchemaRef)], query: &str) -> Result<()> {
    let mut config = SessionConfig::new()
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, RECORDS);
    read_as_written(&mut config);
    let context = SessionContext::new_with_config(config);
    let records = MemorySchemaProvider::new();
    for (name, schema) in tables {
        records.register_table(name.clone(), Arc::new(EmptyTable::new(Arc::clone(schema))))?;
    }
    let catalog = MemoryCatalogProvider::new();
    catalog.register_schema(RECORDS, Arc::new(records))?;
    context.register_catalog(CATALOG, Arc::new(catalog));
    let only_queries = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    context.sql_with_options(query, only_queries).await?.create_physical_plan().await?;
    Ok(())
}
