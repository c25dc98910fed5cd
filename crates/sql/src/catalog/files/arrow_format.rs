//! Files of Arrow IPC, read by DataFusion: their lengths are checked before each reader, as it reserves as much memory as they say, and
//! an error or a panic of its reader names the file. So do columns that are others than those of the table, which it takes by their
//! place.

use std::collections::HashMap;
use std::fmt::{self, Formatter};
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::ipc::reader::{FileReader, StreamReader};
use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{GetExt, Statistics};
use datafusion::datasource::file_format::arrow::{ArrowFormat, ArrowFormatFactory};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{
    FileOpenFuture, FileOpener, FileScanConfig, FileScanConfigBuilder, FileSource,
};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::object_store::path::Path;
use datafusion::object_store::{GetOptions, GetResultPayload, ObjectMeta, ObjectStore};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::stream::{self, StreamExt};
use tidetable_source::check_arrow_lengths;
use tidetable_source::panics::catch;
use tokio::task::spawn_blocking;

use crate::error::{SqlError, external};

/// Makes [`CheckedArrow`] of declarations.
#[derive(Debug, Default)]
pub(crate) struct CheckedArrowFactory;

impl GetExt for CheckedArrowFactory {
    fn get_ext(&self) -> String {
        ArrowFormatFactory::new().get_ext()
    }
}

impl FileFormatFactory for CheckedArrowFactory {
    fn create(&self, _: &dyn Session, _: &HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
        Ok(Arc::new(CheckedArrow))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(CheckedArrow)
    }
}

/// DataFusion's [`ArrowFormat`] over files that may be damaged.
#[derive(Debug)]
pub(crate) struct CheckedArrow;

#[async_trait]
impl FileFormat for CheckedArrow {
    fn get_ext(&self) -> String {
        ArrowFormat.get_ext()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        ArrowFormat.get_ext_with_compression(compression)
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        ArrowFormat.compression_type()
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        for object in objects {
            if let Some(path) = local_path(store, &object.location).await? {
                blocking(move || checked_lengths(&path)).await?;
            }
        }
        ArrowFormat.infer_schema(state, store, objects).await
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        ArrowFormat.infer_stats(state, store, schema, object).await
    }

    /// The plan of DataFusion, which depends on whether it is a file or a stream, with a source that names files.
    async fn create_physical_plan(&self, state: &dyn Session, scan: FileScanConfig) -> Result<Arc<dyn ExecutionPlan>> {
        let plan = ArrowFormat.create_physical_plan(state, scan).await?;
        let source = plan.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
        let Some(scan) = source.and_then(|source| source.downcast_ref::<FileScanConfig>()) else { return Ok(plan) };
        let named = Arc::new(NamingSource { inner: Arc::clone(scan.file_source()) });
        let scan = FileScanConfigBuilder::from(scan.clone()).with_source(named).build();
        Ok(DataSourceExec::from_data_source(scan))
    }

    fn file_source(&self, schema: TableSchema) -> Arc<dyn FileSource> {
        Arc::new(NamingSource { inner: ArrowFormat.file_source(schema) })
    }
}

/// A source whose errors name the file.
#[derive(Clone)]
struct NamingSource {
    inner: Arc<dyn FileSource>,
}

impl FileSource for NamingSource {
    fn create_file_opener(
        &self,
        store: Arc<dyn ObjectStore>,
        scan: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        let inner = self.inner.create_file_opener(Arc::clone(&store), scan, partition)?;
        Ok(Arc::new(NamingOpener { inner, store, columns: Arc::clone(self.table_schema().file_schema()) }))
    }

    fn table_schema(&self) -> &TableSchema {
        self.inner.table_schema()
    }

    fn with_batch_size(&self, rows: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { inner: self.inner.with_batch_size(rows) })
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        self.inner.projection()
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        self.inner.metrics()
    }

    fn file_type(&self) -> &str {
        self.inner.file_type()
    }

    fn repartitioned(
        &self,
        partitions: usize,
        min_bytes: usize,
        order: Option<LexOrdering>,
        scan: &FileScanConfig,
    ) -> Result<Option<FileScanConfig>> {
        self.inner.repartitioned(partitions, min_bytes, order, scan)
    }

    /// Takes columns only: an error of another expression would be taken for one of the file.
    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
        if !projection.iter().all(|projected| projected.expr.is::<Column>()) {
            return Ok(None);
        }
        let inner = self.inner.try_pushdown_projection(projection)?;
        Ok(inner.map(|inner| Arc::new(Self { inner }) as _))
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.inner.apply_expressions(visit)
    }
}

/// Opens files after a check; their errors name them.
struct NamingOpener {
    inner: Arc<dyn FileOpener>,
    store: Arc<dyn ObjectStore>,
    /// The columns of the table, without those of partitions.
    columns: SchemaRef,
}

impl fmt::Debug for NamingOpener {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("NamingOpener")
    }
}

impl FileOpener for NamingOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let location = file.object_meta.location.clone();
        let path = format!("/{location}");
        let (store, columns) = (Arc::clone(&self.store), Arc::clone(&self.columns));
        let mut opening = self.inner.open(file)?;

        Ok(Box::pin(async move {
            // Before the reader, in each plan: a table that declares its columns is not asked for its schema.
            if let Some(path) = local_path(&store, &location).await? {
                blocking(move || checked_lengths(&path).and_then(|()| check_columns(&path, &columns))).await?;
            }

            let opened = futures::future::poll_fn(|cx| match catch(|| opening.as_mut().poll(cx)) {
                Ok(polled) => polled.map_err(|error| damaged(&path, error)),
                Err(panicked) => std::task::Poll::Ready(Err(damaged_by(&path, panicked.message))),
            });
            let mut batches = opened.await?;

            let named = stream::poll_fn(move |cx| match catch(|| batches.poll_next_unpin(cx)) {
                Ok(polled) => polled.map(|batch| batch.map(|batch| batch.map_err(|error| damaged(&path, error)))),
                Err(panicked) => std::task::Poll::Ready(Some(Err(damaged_by(&path, panicked.message)))),
            });
            Ok(named.boxed())
        }))
    }
}

/// The path of a file on this machine; `None` for objects of buckets, which are read into memory as they are.
async fn local_path(store: &Arc<dyn ObjectStore>, location: &Path) -> Result<Option<PathBuf>> {
    let found = store.get_opts(location, GetOptions { head: true, ..GetOptions::default() }).await?;
    match found.payload {
        GetResultPayload::File(_, path) => Ok(Some(path)),
        GetResultPayload::Stream(_) => Ok(None),
    }
}

/// Reads a file on a thread for blocking work.
async fn blocking(check: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
    spawn_blocking(check).await.unwrap_or_else(|error| Err(DataFusionError::ExecutionJoin(Box::new(error))))
}

fn checked_lengths(path: &std::path::Path) -> Result<()> {
    check_arrow_lengths(path).map_err(|error| external(SqlError::File(error.into())))
}

/// Checks that a file, whose lengths were checked, has the columns of a table at their places. It may lack some: that is found where
/// they are read.
fn check_columns(path: &std::path::Path, columns: &Schema) -> Result<()> {
    let name = path.display().to_string();
    let found = match catch(|| schema_of(path)) {
        Ok(found) => found.map_err(|error| damaged(&name, error.into()))?,
        Err(panicked) => return Err(damaged_by(&name, panicked.message)),
    };

    for (at, (wanted, found_here)) in columns.fields().iter().zip(found.fields()).enumerate() {
        let problem = match found.index_of(wanted.name()) {
            Ok(elsewhere) if elsewhere != at => format!("column {} is at place {}", wanted.name(), elsewhere + 1),
            _ if !wanted.data_type().equals_datatype(found_here.data_type()) => {
                format!("column {} is {}", wanted.name(), found_here.data_type())
            }
            _ => continue,
        };
        let wanted = format!("{problem}, where the table has {} of type {}", wanted.name(), wanted.data_type());
        return Err(other_columns(&name, wanted));
    }
    Ok(())
}

/// The columns of a file, or of a stream.
fn schema_of(path: &std::path::Path) -> Result<SchemaRef, ArrowError> {
    match FileReader::try_new(File::open(path)?, None) {
        Ok(reader) => Ok(reader.schema()),
        Err(_) => Ok(StreamReader::try_new(File::open(path)?, None)?.schema()),
    }
}

/// An error of the reader, with the file; those of others, such as of memory, as they are.
fn damaged(path: &str, error: DataFusionError) -> DataFusionError {
    match error.find_root() {
        DataFusionError::ArrowError(cause, _) if is_of_table(cause) => other_columns(path, cause.to_string()),
        DataFusionError::ArrowError(cause, _) => damaged_by(path, cause.to_string()),
        DataFusionError::IoError(cause) => damaged_by(path, cause.to_string()),
        _ => error,
    }
}

/// Whether a sound file may cause the error, because the table declares other columns: fewer, or none that are null.
fn is_of_table(error: &ArrowError) -> bool {
    match error {
        ArrowError::SchemaError(_) => true,
        ArrowError::InvalidArgumentError(said) => said.contains("declared as non-nullable"),
        _ => false,
    }
}

fn damaged_by(path: &str, problem: String) -> DataFusionError {
    external(SqlError::DamagedFile { path: path.to_owned(), problem })
}

fn other_columns(path: &str, problem: String) -> DataFusionError {
    external(SqlError::OtherColumns { path: path.to_owned(), problem })
}
