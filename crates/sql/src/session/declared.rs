//! Checks queries before tables exist, by planning them over declared tables.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field as ArrowField, Schema, SchemaRef};
use datafusion::catalog::{
    CatalogProvider, MemoryCatalogProvider, MemorySchemaProvider, SchemaProvider, TableProvider,
};
use datafusion::common::plan_err;
use datafusion::datasource::empty::EmptyTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use datafusion::scalar::ScalarValue;
use tidetable_layout::{Field, Layout};

use crate::error::{Result, SqlError};
use crate::names::{CATALOG, CELLS, RECORDS, ROWS};
use crate::planning_thread::plan_on_thread;
use crate::schema::{Family, RowView, cells_schema, families};
use crate::session::expressions::field_type;
use crate::session::options::{set_planning_options, with_sql_features};
use crate::session::planning::plan_frame;
use crate::session::references::table_references;
use crate::syntax::statement;
use crate::syntax::volatile::volatile_function_in;
use crate::view_options::CellsShown;
use crate::views::planner::Views;

/// Why a query cannot define a derived table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The query is not valid over the tables.
    #[error(transparent)]
    Wrong(#[from] SqlError),
    /// A column of a type that tables do not store.
    #[error("its column {name} is {found}, which no table stores; CAST it to a number, text, a time or a bool")]
    Type {
        /// Name of the column of the result.
        name: String,
        /// Type of the column, as DataFusion plans it.
        found: DataType,
    },
    /// Two columns have the same name.
    #[error("two of its columns are called {name}; give one another name with AS")]
    Twice {
        /// The name that two columns of the result have.
        name: String,
    },
    /// It calls a function that is not deterministic.
    #[error("it calls {function}(), whose result differs in each run; a derived table must depend on its inputs only")]
    Unsteady {
        /// Name of the function that is not deterministic.
        function: String,
    },
    /// It reads something other than records of a table.
    #[error("it reads {found}; a derived table reads the records of other tables of the job, named before it")]
    Reads {
        /// What it reads, as `schema.name`.
        found: String,
    },
}

/// The columns of a query, in types that tables store, and the tables whose records it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueryShape {
    /// Columns in the order of the query.
    pub columns: Vec<Field>,
    /// Names of the tables that the query reads, ascending.
    pub reads: Vec<String>,
}

/// Output columns and inputs of a planned query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedQuery {
    /// The columns of the result, in order.
    pub schema: SchemaRef,
    /// What it reads, as schema and name, ascending.
    pub reads: Vec<(String, String)>,
}

/// A declared table that a query may read; it need not exist in the store.
#[derive(Debug, Clone)]
pub struct Declared {
    name: String,
    records: SchemaRef,
    families: Arc<Vec<Family>>,
}

impl Declared {
    /// A table called `name`, with the columns that this layout gives to its views.
    pub fn new(name: &str, layout: &Layout) -> Self {
        Self { name: name.to_owned(), records: layout.records_schema(), families: families(layout) }
    }

    fn rows(&self, shown: CellsShown) -> SchemaRef {
        let families = Arc::clone(&self.families);
        Arc::new(RowView { families, shown }.schema())
    }
}

/// Plans `query` with the parameters `params` over `tables`.
///
/// # Errors
/// If the query is not valid over them.
pub async fn check_query(tables: &[Declared], query: &str, params: &[(&str, ScalarValue)]) -> Result<CheckedQuery> {
    let context = context(tables)?;
    let frame = plan(&context, query).await?;
    if let Some(function) = volatile_function_in(frame.logical_plan())? {
        return Err(SqlError::UnsteadyExport { function });
    }
    let frame = frame.with_param_values(params.to_vec())?;
    let schema = Arc::new(frame.schema().as_arrow().clone());
    plan_frame(frame).await?;
    Ok(CheckedQuery { schema, reads: table_references(&context, query, &names(tables))? })
}

/// What `query` reads, as schema and name, ascending, without checking that tables and columns exist.
///
/// # Errors
/// If it is not valid SQL.
pub fn read_by(tables: &[Declared], query: &str) -> Result<Vec<(String, String)>> {
    table_references(&context(tables)?, query, &names(tables))
}

fn names(tables: &[Declared]) -> Vec<String> {
    tables.iter().map(|table| table.name.clone()).collect()
}

/// Plans `query` over `tables` for the schema of a derived table.
///
/// # Errors
/// If the query is not valid over them, or cannot define a derived table.
pub async fn query_shape(tables: &[Declared], query: &str) -> Result<QueryShape, QueryError> {
    let context = context(tables)?;
    let frame = plan(&context, query).await?;
    if let Some(function) = volatile_function_in(frame.logical_plan()).map_err(SqlError::from)? {
        return Err(QueryError::Unsteady { function });
    }

    let references = table_references(&context, query, &names(tables))?;
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

/// Casts a batch of such a query to its column types.
///
/// # Errors
/// If a value does not fit its type.
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

fn arrow(error: arrow::error::ArrowError) -> SqlError {
    datafusion::error::DataFusionError::from(error).into()
}

/// A DataFusion session over empty tables with the columns of the declared ones.
fn context(tables: &[Declared]) -> Result<SessionContext> {
    let mut config = SessionConfig::new()
        .with_create_default_catalog_and_schema(false)
        .with_default_catalog_and_schema(CATALOG, RECORDS);
    set_planning_options(&mut config);
    let builder = SessionStateBuilder::new().with_config(config);
    let views = DeclaredViews(tables.to_vec());
    let context = SessionContext::new_with_state(with_sql_features(builder, Arc::new(views)).build());

    let catalog = MemoryCatalogProvider::new();
    for schema in [RECORDS, CELLS, ROWS] {
        let declared = MemorySchemaProvider::new();
        for table in tables {
            let columns = match schema {
                RECORDS => Arc::clone(&table.records),
                CELLS => Arc::new(cells_schema()),
                _ => table.rows(CellsShown::default()),
            };
            declared.register_table(table.name.clone(), Arc::new(EmptyTable::new(columns)))?;
        }
        catalog.register_schema(schema, Arc::new(declared))?;
    }

    context.register_catalog(CATALOG, Arc::new(catalog));
    Ok(context)
}

async fn plan(context: &SessionContext, query: &str) -> Result<DataFrame> {
    let (context, query) = (context.clone(), query.to_owned());
    plan_on_thread(move || async move {
        let plan = statement::plan(&context.state(), &query).await?;
        Ok(context.execute_logical_plan(plan).await?)
    })
    .await
}

#[derive(Debug)]
struct DeclaredViews(Vec<Declared>);

impl Views for DeclaredViews {
    fn names(&self) -> datafusion::error::Result<Vec<String>> {
        Ok(names(&self.0))
    }

    fn rows(&self, name: &str, shown: CellsShown) -> datafusion::error::Result<Arc<dyn TableProvider>> {
        match self.0.iter().find(|table| table.name == name) {
            Some(table) => Ok(Arc::new(EmptyTable::new(table.rows(shown)))),
            None => plan_err!("there is no table {name}"),
        }
    }
}
