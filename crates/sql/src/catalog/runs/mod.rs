//! Table providers of `runs.NAME`: run records as tables, read only when a query scans one.

pub(crate) mod columns;
pub(crate) mod rows;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{MemTable, SchemaProvider, Session, TableProvider};
use datafusion::datasource::TableType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use tidetable_record::{Runs, failing_rows, rejected_rows, runs_with_failing_rows, state_of};
use tidetable_store::Store;
use tidetable_store::leave_out;

use crate::error::external;
use columns::{Row, batch, schema};
use rows::{RowsOf, RunsTableSpec, TABLES};

/// Names of the tables of run records, in the schema `runs`.
pub fn run_tables() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|table| table.name)
}

#[derive(Debug)]
pub(crate) struct RunsSchema {
    store: Store,
}

impl RunsSchema {
    pub(crate) fn new(store: Store) -> Self {
        Self { store }
    }
}

#[async_trait]
impl SchemaProvider for RunsSchema {
    fn table_names(&self) -> Vec<String> {
        TABLES.iter().map(|table| table.name.to_owned()).collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let Some(table) = TABLES.iter().find(|table| table.name == name) else { return Ok(None) };
        let opened = RunsTable { store: self.store.clone(), table, schema: schema(table.columns) };
        Ok(Some(Arc::new(opened)))
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        Ok(self.table_exist(name).then_some(TableType::Base))
    }

    fn table_exist(&self, name: &str) -> bool {
        TABLES.iter().any(|table| table.name == name)
    }
}

/// One of the tables of the schema `runs`, read from the records of the store's runs.
#[derive(Debug)]
struct RunsTable {
    store: Store,
    table: &'static RunsTableSpec,
    schema: SchemaRef,
}

impl RunsTable {
    /// The rows of all runs, oldest first; `clock` is the time of the query, microseconds.
    fn rows(&self, clock: i64) -> Result<Vec<Row>> {
        let blobs = self.store.blobs().as_ref();
        let mut rows = Vec::new();

        if let RowsOf::Failing(of) = self.table.rows {
            for run in runs_with_failing_rows(blobs).map_err(external)? {
                rows.extend(failing_rows(blobs, &run).map_err(external)?.iter().map(of));
            }
            return Ok(rows);
        }
        let names = Runs::of(blobs).names().map_err(external)?;
        for loaded in Runs::of(blobs).load_each(names.into_iter()) {
            let record = match loaded {
                Ok(Some(record)) => record,
                // Removed by a clean-up since the listing.
                Ok(None) => continue,
                Err(error) => {
                    leave_out(&error);
                    continue;
                }
            };

            match self.table.rows {
                RowsOf::Run(of) => rows.push(of(&record, state_of(blobs, &record, clock).map_err(external)?)),
                RowsOf::Listed(of) => of(&record, &mut rows),
                RowsOf::Failing(_) => {}
                RowsOf::Rejected(of) => {
                    let rejected = rejected_rows(blobs, &record).map_err(external)?;
                    rows.extend(rejected.iter().map(|row| of(&record, row)));
                }
            }
        }
        Ok(rows)
    }
}

#[async_trait]
impl TableProvider for RunsTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let clock = state.execution_props().query_execution_start_time;
        let clock = clock.map_or(i64::MIN, |time| time.timestamp_micros());
        let batch = batch(self.table.columns, &self.schema, &self.rows(clock)?)?;
        let rows = MemTable::try_new(Arc::clone(&self.schema), vec![vec![batch]])?;
        rows.scan(state, projection, filters, limit).await
    }
}
