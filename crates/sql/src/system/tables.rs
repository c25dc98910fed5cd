//! Tables in memory, as schemas of a catalog.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use async_trait::async_trait;
use datafusion::catalog::{MemTable, SchemaProvider, TableProvider};
use datafusion::error::{DataFusionError, Result};

use crate::error::SqlError;

/// A table of a system catalog.
#[derive(Debug, Clone)]
pub struct SystemTable {
    /// The schema, such as `pg_catalog`.
    pub schema: &'static str,
    /// The name, such as `pg_class`.
    pub name: &'static str,
    /// All its rows.
    pub rows: RecordBatch,
}

/// The tables of system catalogs.
#[derive(Debug, Default)]
pub struct SystemTables {
    schemas: BTreeMap<&'static str, Arc<SystemSchema>>,
}

impl SystemTables {
    /// The catalogs with these tables.
    ///
    /// # Errors
    /// If a table cannot be held in memory.
    pub fn new(tables: Vec<SystemTable>) -> Result<Self, SqlError> {
        let mut schemas: BTreeMap<&'static str, SystemSchema> = BTreeMap::new();
        for SystemTable { schema, name, rows } in tables {
            let is_empty = rows.num_rows() == 0;
            let table = MemTable::try_new(rows.schema(), vec![vec![rows]])?;
            schemas.entry(schema).or_default().tables.insert(name, (Arc::new(table), is_empty));
        }
        Ok(Self { schemas: schemas.into_iter().map(|(name, schema)| (name, Arc::new(schema))).collect() })
    }

    /// The schemas, for a catalog that has others, too.
    pub(crate) fn schemas(&self) -> impl Iterator<Item = (&'static str, Arc<dyn SchemaProvider>)> {
        self.schemas.iter().map(|(name, schema)| (*name, Arc::clone(schema) as _))
    }

    /// The schema that has a table without one; `None` if there is no such table.
    pub(crate) fn schema_of(&self, table: &str) -> Option<&'static str> {
        let mut schemas = self.schemas.iter();
        schemas
            .find(|(name, schema)| **name == "pg_catalog" && schema.tables.contains_key(table))
            .map(|(name, _)| *name)
    }

    /// Whether a schema has a table.
    pub(crate) fn has(&self, schema: &str, table: &str) -> bool {
        self.schemas.get(schema).is_some_and(|schema| schema.tables.contains_key(table))
    }

    /// Whether a table is there and has no rows.
    pub(crate) fn is_empty(&self, schema: &str, table: &str) -> bool {
        let found = self.schemas.get(schema).and_then(|schema| schema.tables.get(table));
        found.is_some_and(|(_, is_empty)| *is_empty)
    }
}

/// A schema of tables, each with whether it is empty.
#[derive(Debug, Default)]
struct SystemSchema {
    tables: BTreeMap<&'static str, (Arc<MemTable>, bool)>,
}

#[async_trait]
impl SchemaProvider for SystemSchema {
    fn table_names(&self) -> Vec<String> {
        self.tables.keys().map(|name| (*name).to_owned()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        Ok(self.tables.get(name).map(|(table, _)| Arc::clone(table) as _))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.tables.contains_key(name)
    }
}
