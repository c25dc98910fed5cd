//! Catalog provider of a store: its tables as records, cells and rows, its published exports, and its runs.

pub(crate) mod exports;
pub(crate) mod external;
pub(crate) mod files;
mod lost_list;
pub(crate) mod published;
pub(crate) mod runs;
pub(crate) mod snapshot_table;
pub(crate) mod unchanged;
pub(crate) mod zones;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, SchemaProvider, TableProvider};
use datafusion::datasource::TableType;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::SessionContext;
use tidetable_record::NewestVersions;
use tidetable_store::{Snapshot, Store, StoreError};

use crate::catalog::exports::{ExportLists, ExportsSchema};
use crate::catalog::external::ExternalTables;
use crate::catalog::files::FileTables;
use crate::catalog::runs::RunsSchema;
use crate::catalog::snapshot_table::SnapshotTable;
use crate::error::external;
use crate::names::{CELLS, EXPORTS, RECORDS, ROWS, RUNS, of_version};
use crate::shared_scan::SharedScanPeriod;
use crate::view_options::CellsShown;
use crate::views::planner::Views;

/// The versions of tables that a session reads, if not the newest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableVersions {
    /// The version that a query reads of each table named here.
    pub numbers: BTreeMap<String, u64>,
    /// For other tables, the newest version committed at or before this logical time, microseconds since the epoch.
    pub as_of: Option<i64>,
}

impl TableVersions {
    /// Whether the session reads the newest version of the table.
    fn are_newest(&self, name: &str) -> bool {
        self.as_of.is_none() && !self.numbers.contains_key(name)
    }

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

/// Tables as related sessions see them: one version of each, fixed when it is first used.
#[derive(Debug)]
pub(crate) struct Tables {
    store: Store,
    /// In a bucket a list is a round trip, which a query of a table by its name can do without: listed when first needed.
    names: OnceLock<Vec<String>>,
    versions: TableVersions,
    external: ExternalTables,
    snapshots: Mutex<HashMap<String, Snapshot>>,
    /// Refuses tables that have lost their newest versions.
    newest: NewestVersions,
    published: Arc<ExportLists>,
    /// Makes tables of files, if the session may read them.
    files: Option<FileTables>,
}

impl Tables {
    /// `files`: whether paths and URLs are tables, once a [context is known](Self::read_files_with).
    ///
    /// # Errors
    /// If the store cannot be listed.
    pub(crate) fn open(
        store: &Store,
        versions: TableVersions,
        external: ExternalTables,
        files: bool,
    ) -> Result<Self, StoreError> {
        let published = Arc::new(ExportLists::new(store.clone()));
        let files = files.then(FileTables::default);
        let (store, snapshots, newest) = (store.clone(), Mutex::default(), NewestVersions::default());
        let tables = Self { store, names: OnceLock::new(), versions, external, snapshots, newest, published, files };
        if !tables.store.blobs().capabilities().round_trips {
            tables.names()?;
        }
        Ok(tables)
    }

    /// The lists of published exports, as the session found them.
    pub(crate) fn published(&self) -> &ExportLists {
        &self.published
    }

    /// Makes tables of paths and URLs with the settings of `context`, if the session may read files.
    ///
    /// # Errors
    /// As [`FileTables::read_with`].
    pub(crate) fn read_files_with(&self, context: &SessionContext) -> Result<()> {
        match &self.files {
            Some(files) => files.read_with(context),
            None => Ok(()),
        }
    }

    /// Names of the tables of the store, ascending; listed once a session.
    pub(crate) fn names(&self) -> Result<&[String], StoreError> {
        if let Some(names) = self.names.get() {
            return Ok(names);
        }
        let names = self.store.tables()?;
        Ok(self.names.get_or_init(|| names))
    }

    /// Whether there is a table `name`, or one whose version it names. A table that cannot be read is there.
    fn has(&self, name: &str) -> bool {
        match self.names.get() {
            Some(names) => {
                let (table, _) = of_version(name);
                names.iter().any(|known| known == name || known == table)
            }
            None if self.versions == TableVersions::default() => {
                !matches!(self.snapshot(name), Err(StoreError::NoTable { .. }))
            }
            None => self.names().is_err() || self.has(name),
        }
    }

    /// The snapshots that were opened, in no order.
    pub(crate) fn opened(&self) -> Vec<Snapshot> {
        self.snapshots.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    fn snapshot(&self, name: &str) -> Result<Snapshot, StoreError> {
        let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(snapshot) = snapshots.get(name) {
            return Ok(snapshot.clone());
        }
        let snapshot = match of_version(name) {
            (table, Some(number)) if !self.names()?.iter().any(|known| known == name) => {
                let table = self.store.table(table);
                let version = table.version(number)?;
                Snapshot::new(table, Arc::new(version))?
            }
            _ if self.versions.are_newest(name) => self.newest.snapshot(&self.store, name)?,
            _ => self.versions.snapshot(&self.store, name)?,
        };
        snapshots.insert(name.to_owned(), snapshot.clone());
        Ok(snapshot)
    }
}

/// The catalog of a session: a schema for each view of the store.
#[derive(Debug)]
pub(crate) struct StoreCatalog {
    schemas: Vec<(&'static str, Arc<dyn SchemaProvider>)>,
}

impl StoreCatalog {
    /// `time` restricts `records.T` to event times, microseconds, half-open; `pass` is the shared scan that this range
    /// is a period of.
    pub(crate) fn new(
        tables: &Arc<Tables>,
        time: &Range<i64>,
        pass: Option<SharedScanPeriod>,
        push_down: bool,
    ) -> Self {
        let schema = |view| TablesSchema { tables: Arc::clone(tables), view, push_down };
        let published = ExportsSchema::new(Arc::clone(&tables.published));
        Self {
            schemas: vec![
                (RECORDS, Arc::new(schema(TableView::Records(time.clone(), pass)))),
                (CELLS, Arc::new(schema(TableView::Cells))),
                (ROWS, Arc::new(schema(TableView::Rows))),
                (EXPORTS, Arc::new(published)),
                (RUNS, Arc::new(RunsSchema::new(tables.store.clone()))),
            ],
        }
    }
}

/// The catalog of a store with other schemas beside its own.
pub(crate) fn with_schemas(
    mut catalog: StoreCatalog,
    others: impl Iterator<Item = (&'static str, Arc<dyn SchemaProvider>)>,
) -> StoreCatalog {
    catalog.schemas.extend(others);
    catalog
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
enum TableView {
    Records(Range<i64>, Option<SharedScanPeriod>),
    Cells,
    Rows,
}

/// A schema of all tables, seen as records, as cells or as rows.
#[derive(Debug)]
struct TablesSchema {
    tables: Arc<Tables>,
    view: TableView,
    push_down: bool,
}

impl TablesSchema {
    /// The external tables; they belong to the schema of records only.
    fn external(&self) -> Option<&ExternalTables> {
        matches!(self.view, TableView::Records(..)).then_some(&self.tables.external)
    }
}

#[async_trait]
impl SchemaProvider for TablesSchema {
    fn table_names(&self) -> Vec<String> {
        let external = self.external().map(ExternalTables::names).unwrap_or_default();
        self.tables.names().unwrap_or_default().iter().cloned().chain(external).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        if !self.tables.has(name) {
            return match (self.external().map(|external| external.get(name)), &self.tables.files) {
                (Some(None), Some(files)) => files.table(name).await,
                (external, _) => Ok(external.flatten()),
            };
        }
        let snapshot = self.tables.snapshot(name).map_err(external)?;
        Ok(Some(Arc::new(match &self.view {
            TableView::Records(time, pass) => {
                SnapshotTable::records(snapshot, time.clone(), pass.clone(), self.push_down)
            }
            TableView::Cells => SnapshotTable::cells(snapshot, self.push_down),
            TableView::Rows => SnapshotTable::rows(snapshot, CellsShown::default(), self.push_down),
        })))
    }

    // Does not open the table, so that a damaged table does not break listings such as `information_schema`.
    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        Ok(self.table_exist(name).then_some(TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        self.tables.has(name) || self.external().is_some_and(|external| external.get(name).is_some())
    }
}

/// Plans the table functions that read a table with options, such as `rows.T(with_history => true)`.
#[derive(Debug)]
pub(crate) struct TableViews {
    pub(crate) tables: Arc<Tables>,
    pub(crate) push_down: bool,
}

impl Views for TableViews {
    fn names(&self) -> Result<Vec<String>> {
        Ok(self.tables.names().map_err(external)?.to_vec())
    }

    fn rows(&self, table: &str, shown: CellsShown) -> Result<Arc<dyn TableProvider>> {
        let snapshot = self.tables.snapshot(table).map_err(external)?;
        Ok(Arc::new(SnapshotTable::rows(snapshot, shown, self.push_down)))
    }
}
