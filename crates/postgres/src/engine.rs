//! Plans and runs queries. Each has a session of its own, and so sees one version of each table.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use tidetable_serving::{ServingError, Tables, Task, blocking, caught};
use tidetable_sql::{ScalarValue, Session, SessionOptions, SqlError, SystemUse, system_use};
use tokio::runtime::Handle;

use crate::catalog::{Catalog, CatalogCache, SessionNames};
use crate::error::{Refusal, code};
use crate::parameters::planned_type;
use crate::statement::Settings;
use crate::types::{Base, Column, PgType, columns, kind_of};

/// Columns of a result at most: messages count them in two bytes.
const MOST_COLUMNS: usize = i16::MAX as usize;

/// Batches of a query, or why there are no more.
pub(crate) type Batches = BoxStream<'static, Result<RecordBatch, Refusal>>;

/// What queries depend on beside their text.
#[derive(Debug, Clone)]
pub(crate) struct Viewpoint {
    /// Settings of the session, of which the search path names the schema of tables without one.
    pub(crate) settings: Settings,
    pub(crate) user: String,
    /// The number of the session.
    pub(crate) process: i32,
}

/// Plans and runs queries over the tables of a store.
#[derive(Debug)]
pub(crate) struct Engine {
    tables: Arc<Tables>,
    /// The runtime that queries run in.
    queries: Handle,
    /// Bytes that a query may hold.
    memory: u64,
    /// How long a statement may run.
    pub(crate) timeout: Option<Duration>,
    catalogs: CatalogCache,
}

/// A query with the types of its parameters and of its columns.
#[derive(Debug, Clone)]
pub(crate) struct Described {
    pub(crate) parameters: Vec<PgType>,
    pub(crate) columns: Vec<Column>,
}

impl Engine {
    pub(crate) fn new(tables: Arc<Tables>, queries: Handle, memory: u64, timeout: Option<Duration>) -> Self {
        Self { tables, queries, memory, timeout, catalogs: CatalogCache::default() }
    }

    /// Parameters and columns of a query; `declared` are the types that the client has given to parameters.
    ///
    /// # Errors
    /// If the query is not valid.
    pub(crate) async fn describe(
        self: &Arc<Self>,
        viewpoint: &Viewpoint,
        query: &str,
        declared: &[Option<PgType>],
    ) -> Result<Described, Refusal> {
        let (engine, viewpoint, query) = (Arc::clone(self), viewpoint.clone(), query.to_owned());
        let declared = declared.to_vec();

        self.run(async move {
            let session = engine.session(&viewpoint, &query).await?;
            let types: Vec<Option<DataType>> = declared.iter().map(|kind| kind.map(planned_type)).collect();
            let inferred = session.parameter_types(&query, &types).await?;

            let mut parameters = Vec::with_capacity(inferred.len());
            for (place, kind) in inferred.iter().enumerate() {
                let given = declared.get(place).copied().flatten();
                parameters.push(given.unwrap_or_else(|| kind.as_ref().map_or(Base::Text.one(), kind_of)));
            }

            let samples = parameters.iter().map(|kind| ScalarValue::try_from(&planned_type(*kind)));
            let samples: Vec<ScalarValue> =
                samples.collect::<Result<_, _>>().map_err(|error| Refusal::internal(error.to_string()))?;
            let frame = session.sql_with_values(&query, &samples).await?;
            let schema = frame.schema().as_arrow();
            check_width(schema)?;
            Ok(Described { parameters, columns: columns(schema) })
        })
        .await
    }

    /// Begins a query. Returns its columns and its batches; dropping these ends it.
    ///
    /// # Errors
    /// If the query is not valid, or fails before its first rows.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        viewpoint: &Viewpoint,
        query: &str,
        values: &[ScalarValue],
    ) -> Result<(Arc<Schema>, Batches), Refusal> {
        let (engine, viewpoint) = (Arc::clone(self), viewpoint.clone());
        let (query, values) = (query.to_owned(), values.to_vec());

        self.run(async move {
            let session = engine.session(&viewpoint, &query).await?;
            let stream = session.stream_with_values(&query, &values).await?;
            let schema = stream.schema();
            check_width(&schema)?;
            Ok((schema, batches(stream)))
        })
        .await
    }

    /// Runs `work` in the runtime of queries, and gives it up if nobody waits any longer.
    async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Refusal>> + Send + 'static,
    ) -> Result<T, Refusal> {
        Task::spawn(&self.queries, work).result().await?
    }

    /// A session for a query: with system catalogs if it asks for these.
    async fn session(&self, viewpoint: &Viewpoint, query: &str) -> Result<Session, Refusal> {
        let (tables, memory) = (Arc::clone(&self.tables), self.memory);
        let opened = move || {
            let options = SessionOptions {
                versions: tables.versions(),
                memory: Some(memory),
                written_names: true,
                ..SessionOptions::default()
            };
            Session::open(tables.store(), &options).map_err(Refusal::from)
        };
        let session = blocking(opened, Refusal::from).await?.with_default_schema(viewpoint.settings.schema());

        let catalog = match system_use(query) {
            SystemUse::Nothing => return Ok(session),
            SystemUse::Functions => Arc::new(Catalog::default()),
            SystemUse::Tables => self.catalogs.catalog(&self.tables, &session).await?,
        };
        let Viewpoint { settings, user, process } = viewpoint.clone();
        let tables = Arc::clone(&catalog.tables);
        Ok(session.with_system(&tables, Arc::new(SessionNames { catalog, settings, user, process })))
    }
}

/// The batches of a query. A panic in it is the error that ends them.
fn batches<E: Into<SqlError> + Send + 'static>(
    stream: impl Stream<Item = Result<RecordBatch, E>> + Send + Unpin + 'static,
) -> Batches {
    let batches = futures::stream::unfold(Some(stream), |stream| async move {
        let mut stream = stream?;
        match caught(stream.next()).await {
            Ok(Some(batch)) => Some((batch.map_err(|error| Refusal::from(error.into())), Some(stream))),
            Ok(None) => None,
            Err(panicked) => Some((Err(ServingError::from(panicked).into()), None)),
        }
    });
    batches.boxed()
}

/// Refuses a query with more columns than a message can tell of.
fn check_width(schema: &Schema) -> Result<(), Refusal> {
    let columns = schema.fields().len();
    match columns > MOST_COLUMNS {
        true => Err(Refusal::new(
            code::COLUMNS,
            format!(
                "the query has {columns} columns, and a result has {MOST_COLUMNS} at most: name those that are wanted"
            ),
        )),
        false => Ok(()),
    }
}
