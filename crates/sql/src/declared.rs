//! Queries checked before there is anything to ask: planned over tables that are only declared.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field as ArrowField, Schema, SchemaRef};
use datafusion::catalog::{CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider};
use datafusion::datasource::empty::EmptyTable;
use datafusion::prelude::{DataFrame, SQLOptions, SessionConfig, SessionContext};
use tidetable_layout::Field;

use crate::catalog::{CATALOG, RECORDS};
use crate::error::Result;
use crate::expressions::field_type;
use crate::session::{read_as_written, table_references};

/// Why a query cannot be what a table is made from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// It is no query over the tables.
    #[error(transparent)]
    Wrong(#[from] crate::error::SqlError),
    /// A column of a type that no table stores.
    #[error("its column {name} is {found}, which no table stores; CAST it to a number, text, a time or a bool")]
    Type {
        /// The column.
        name: String,
        /// Its type.
        found: DataType,
    },
    /// Two columns of one name.
    #[error("two of its columns are called {name}; give one another name with AS")]
    Twice {
        /// The name.
        name: String,
    },
    /// It reads something that is not records of a table.
    #[error("it reads {found}; a table is made from the records of other tables of the job, named before it")]
    Reads {
        /// What, as `schema.name`.
        found: String,
    },
}

/// What a query gives: its columns, in the types that tables store, and the tables whose records it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryShape {
    /// Columns in the order of the query.
    pub columns: Vec<Field>,
    /// Tables, ascending.
    pub reads: Vec<String>,
}

/// Plans `query` over `tables`, each a name and the columns of its records.
///
/// # Errors
/// If it is no query over them.
pub async fn check_query(tables: &[(String, SchemaRef)], query: &str) -> Result<()> {
    plan(&context(tables)?, query).await?.create_physical_plan().await?;
    Ok(())
}

/// Plans `query` over `tables` to see what a table made from it would hold.
///
/// # Errors
/// If it is no query over them, or no table can be made from it.
pub async fn query_shape(tables: &[(String, SchemaRef)], query: &str) -> Result<QueryShape, QueryError> {
    let context = context(tables)?;
    let frame = plan(&context, query).await?;
    let references = table_references(&context, query)?;
    if let Some((schema, table)) = references.iter().find(|(schema, _)| schema != RECORDS) {
        return Err(QueryError::Reads { found: format!("{schema}.{table}") });
    }
    if references.is_empty() {
        return Err(QueryError::Reads { found: "no table".to_owned() });
    }
    let mut columns: Vec<Field> = Vec::new();
    for found in frame.schema().fields() {
        let Some(kind) = field_type(found.data_type()) else {
            return Err(QueryError::Type { name: found.name().clone(), found: found.data_type().clone() });
        };
        if columns.iter().any(|known| known.name == *found.name()) {
            return Err(QueryError::Twice { name: found.name().clone() });
        }
        columns.push(Field { name: found.name().clone(), kind });
    }
    Ok(QueryShape { columns, reads: references.into_iter().map(|(_, table)| table).collect() })
}

/// The rows of `batch`, which such a query gave, in the types of its columns.
///
/// # Errors
/// If a value does not fit.
pub fn in_columns(columns: &[Field], batch: &RecordBatch) -> Result<RecordBatch> {
    let mut fields = Vec::with_capacity(columns.len());
    let mut arrays = Vec::with_capacity(columns.len());
    for (column, array) in columns.iter().zip(batch.columns()) {
        let wanted = column.kind.arrow();
        arrays.push(if *array.data_type() == wanted {
            Arc::clone(array)
        } else {
            cast(array, &wanted).map_err(arrow)?
        });
        fields.push(ArrowField::new(&column.name, wanted, true));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(arrow)
}

fn arrow(error: arrow::error::ArrowError) -> crate::error::SqlError {
    datafusion::error::DataFusionError::from(error).into()
}

fn context(tables: &[(String, SchemaRef)]) -> Result<SessionContext> {
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
    Ok(context)
}

async fn plan(context: &SessionContext, query: &str) -> Result<DataFrame> {
    let only_queries = SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
    Ok(context.sql_with_options(query, only_queries).await?)
}
