//! The catalog of a store: its tables as records, cells and rows, and what was published.

pub(crate) mod cells;
pub(crate) mod exports;
pub(crate) mod external;
pub(crate) mod published;
pub(crate) mod records;
pub(crate) mod rows;
pub(crate) mod runs;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::datasource::TableType;
use datafusion::error::{DataFusionError, Result};
use tidetable_store::{Snapshot, Store, StoreError};

use crate::catalog::cells::CellsTable;
use crate::catalog::exports::{ExportsSchema, Listed};
use crate::catalog::external::ExternalTables;
use crate::catalog::records::RecordsTable;
use crate::catalog::rows::RowsTable;
use crate::catalog::runs::RunsSchema;
use crate::error::external;
use crate::shared_scan::InPass;
use crate::views::options::CellsShown;
use crate::views::planner::Views;

/// Name of the catalog.
pub(crate) const CATALOG: &str = "tidetable";
/// Schema of tables as records, the default.
pub(crate) const RECORDS: &str = "records";
/// Schema of tables as cells.
pub(crate) const CELLS: &str = "cells";
/// Schema of tables as rows.
pub(crate) const ROWS: &str = "rows";
/// Schema of what was published.
pub(crate) const EXPORTS: &str = "exports";
/// Schema of what runs did.
pub(crate) const RUNS: &str = "runs";

/// Which versions of tables a session reads, where not the newest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableVersions {
    /// By table.
    pub numbers: BTreeMap<String, u64>,
    /// Of other tables the newest that was committed at this logical time or before it, microseconds since the epoch.
    pub as_of: Option<i64>,
}

impl TableVersions {
    fn snapshot(&self, store: &Store, name: &str) -> Result<Snapshot, StoreError> {
        let table = store.table(name);
        let version = match (self.numbers.get(name), self.as_of) {
            (Some(number), _) => table.version(*number)?,
            (None, Some(time)) => table.version_at(time)?,
            (None, None) => return store.snapshot(name),
        };
        Snapshot::new(table, Arc::new(version))
    }
}

/// What the sessions opened together see: one version of each table, fixed when it is first used.
#[derive(Debug)]
pub(crate) struct Tables {
    store: Store,
    names: Vec<String>,
    versions: TableVersions,
    external: ExternalTables,
    snapshots: Mutex<HashMap<String, Snapshot>>,
    published: Arc<Listed>,
}

impl Tables {
    /// # Errors
    /// If the store cannot be listed.
    pub(crate) fn list(store: &Store, versions: TableVersions, external: ExternalTables) -> Result<Self, StoreError> {
        let names = store.tables()?;
        let published = Arc::new(Listed::new(store.clone()));
        Ok(Self { store: store.clone(), names, versions, external, snapshots: Mutex::default(), published })
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    fn has(&self, name: &str) -> bool {
        let (table, _) = of_version(name);
        self.names.iter().any(|known| known == name || known == table)
    }

    fn snapshot(&self, name: &str) -> Result<Snapshot, StoreError> {
        let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(snapshot) = snapshots.get(name) {
            return Ok(snapshot.clone());
        }
        let snapshot = match of_version(name) {
            (table, Some(number)) if !self.names.iter().any(|known| known == name) => {
                let table = self.store.table(table);
                let version = table.version(number)?;
                Snapshot::new(table, Arc::new(version))?
            }
            _ => self.versions.snapshot(&self.store, name)?,
        };
        snapshots.insert(name.to_owned(), snapshot.clone());
        Ok(snapshot)
    }
}

/// The table and the version that a name such as `SENSOR@42` means.
pub(crate) fn of_version(name: &str) -> (&str, Option<u64>) {
    match name.rsplit_once('@').map(|(table, number)| (table, number.parse())) {
        Some((table, Ok(number))) => (table, Some(number)),
        _ => (name, None),
    }
}

/// The one catalog of a session.
#[derive(Debug)]
pub(crate) struct StoreCatalog {
    schemas: Vec<(&'static str, Arc<dyn SchemaProvider>)>,
}

impl StoreCatalog {
    /// Shows `tables`, the records only of event times in `time`, which may be a period of `pass`.
    pub(crate) fn new(tables: &Arc<Tables>, time: &Range<i64>, pass: Option<InPass>, push_down: bool) -> Self {
        let schema = |view| TablesSchema { tables: Arc::clone(tables), view, push_down };
        let published = ExportsSchema::new(Arc::clone(&tables.published));
        Self {
            schemas: vec![
                (RECORDS, Arc::new(schema(View::Records(time.clone(), pass)))),
                (CELLS, Arc::new(schema(View::Cells))),
                (ROWS, Arc::new(schema(View::Rows))),
                (EXPORTS, Arc::new(published)),
                (RUNS, Arc::new(RunsSchema::new(tables.store.clone()))),
            ],
        }
    }
}

impl CatalogProvider for StoreCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.schemas.iter().map(|(name, _)| (*name).to_owned()).collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        self.schemas.iter().find(|(known, _)| *known == name).map(|(_, schema)| Arc::clone(schema))
    }
}

#[derive(Debug)]
enum View {
    Records(Range<i64>, Option<InPass>),
    Cells,
    Rows,
}

/// All tables in one of their shapes.
#[derive(Debug)]
struct TablesSchema {
    tables: Arc<Tables>,
    view: View,
    push_down: bool,
}

impl TablesSchema {
    /// Tables over files have records only.
    fn external(&self) -> Option<&ExternalTables> {
        matches!(self.view, View::Records(..)).then_some(&self.tables.external)
    }
}

#[async_trait]
impl SchemaProvider for TablesSchema {
    fn table_names(&self) -> Vec<String> {
        let external = self.external().map(ExternalTables::names).unwrap_or_default();
        self.tables.names.iter().cloned().chain(external).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        if !self.tables.has(name) {
            return Ok(self.external().and_then(|external| external.get(name)));
        }
        let snapshot = self.tables.snapshot(name).map_err(external)?;
        Ok(Some(match &self.view {
            View::Records(time, pass) => {
                Arc::new(RecordsTable::new(snapshot, time.clone(), pass.clone(), self.push_down))
            }
            View::Cells => Arc::new(CellsTable::new(snapshot, self.push_down)),
            View::Rows => Arc::new(RowsTable::new(snapshot, CellsShown::default(), self.push_down)),
        }))
    }

    // A list of tables opens none, so that one that cannot be opened does not spoil the list.
    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        Ok(self.table_exist(name).then_some(TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.tables.has(name) || self.external().is_some_and(|external| external.get(name).is_some())
    }
}

/// The rows of tables with options.
#[derive(Debug)]
pub(crate) struct TableViews {
    pub(crate) tables: Arc<Tables>,
    pub(crate) push_down: bool,
}

impl Views for TableViews {
    fn names(&self) -> Vec<String> {
        self.tables.names.clone()
    }

    fn rows(&self, table: &str, shown: CellsShown) -> Result<Arc<dyn TableProvider>> {
        let snapshot = self.tables.snapshot(table).map_err(external)?;
        Ok(Arc::new(RowsTable::new(snapshot, shown, self.push_down)))
    }
}
