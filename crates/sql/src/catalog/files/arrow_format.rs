//! Files of Arrow IPC, read by DataFusion: their lengths are checked first, as it reserves as much memory as they say, and an
//! error or a panic of its reader names the file.

use std::collections::HashMap;
use std::fmt::{self, Formatter};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
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
use datafusion::object_store::{GetResultPayload, ObjectMeta, ObjectStore, ObjectStoreExt};
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use futures::stream::{self, StreamExt};
use tidetable_source::check_arrow_lengths;
use tidetable_source::panics::catch;

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
            if let GetResultPayload::File(_, path) = store.get(&object.location).await?.payload {
                check_arrow_lengths(&path).map_err(|error| external(SqlError::File(error.into())))?;
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
        Ok(Arc::new(NamingOpener { inner: self.inner.create_file_opener(store, scan, partition)? }))
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

    fn try_pushdown_projection(&self, projection: &ProjectionExprs) -> Result<Option<Arc<dyn FileSource>>> {
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

/// Opens files whose errors name them.
struct NamingOpener {
    inner: Arc<dyn FileOpener>,
}

impl fmt::Debug for NamingOpener {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("NamingOpener")
    }
}

impl FileOpener for NamingOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let path = format!("/{}", file.object_meta.location);
        let mut opening = self.inner.open(file)?;

        Ok(Box::pin(async move {
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

/// An error of the reader, with the file; those of others, such as of memory, as they are.
fn damaged(path: &str, error: DataFusionError) -> DataFusionError {
    match error.find_root() {
        DataFusionError::ArrowError(cause, _) => damaged_by(path, cause.to_string()),
        DataFusionError::IoError(cause) => damaged_by(path, cause.to_string()),
        _ => error,
    }
}

fn damaged_by(path: &str, problem: String) -> DataFusionError {
    external(SqlError::DamagedFile { path: path.to_owned(), problem })
}
