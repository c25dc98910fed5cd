//! File source of a scan that another process may run.

use std::fmt::{self, Formatter};
use std::sync::{Arc, OnceLock};

use arrow::datatypes::SchemaRef;
use datafusion::common::DataFusionError;
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileOpenFuture, FileOpener, FileScanConfig, FileSource};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::error::Result;
use datafusion::object_store::ObjectStore;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::{PhysicalExpr, conjunction_opt};
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;
use tidetable_store::Store;

use crate::distributed::order::ScanOrder;
use crate::error::{SqlError, external};
use crate::source::sst_source::SstSource;

/// A scan as a value. It opens the store when it is executed, and not before: plans are decoded where a wait would fail them.
#[derive(Clone)]
pub struct DistributedScan {
    order: Arc<ScanOrder>,
    filters: Vec<Arc<dyn PhysicalExpr>>,
    table_schema: TableSchema,
    projection: ProjectionExprs,
    batch_size: usize,
    /// Where the table is; `None` in a process that only passes plans on.
    store: Option<Store>,
    metrics: ExecutionPlanMetricsSet,
}

impl DistributedScan {
    /// The scan of `source`; `None` for one that aggregates or shares what it reads.
    pub(crate) fn of(source: &SstSource) -> Option<Self> {
        let filters = source.portable_filters()?.to_vec();
        let order = ScanOrder::of(source.scan());
        Some(Self::new(order, Arc::clone(source.records_schema()), filters, source.projections().clone()))
    }

    /// A scan of a table with `schema`.
    pub fn new(
        order: ScanOrder,
        schema: SchemaRef,
        filters: Vec<Arc<dyn PhysicalExpr>>,
        projection: ProjectionExprs,
    ) -> Self {
        Self {
            order: Arc::new(order),
            filters,
            table_schema: TableSchema::from(&schema),
            projection,
            batch_size: 8192,
            store: None,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// The same scan where it can be executed.
    #[must_use]
    pub fn in_store(mut self, store: Option<Store>) -> Self {
        self.store = store;
        self
    }

    /// What it reads.
    pub fn order(&self) -> &ScanOrder {
        &self.order
    }

    /// Schema of the table.
    pub fn stored(&self) -> &SchemaRef {
        self.table_schema.file_schema()
    }

    /// Filters over the table.
    pub fn filters(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.filters
    }

    /// The projection of the output.
    pub fn projections(&self) -> &ProjectionExprs {
        &self.projection
    }

    /// The scan in the store.
    fn open(&self) -> Result<SstSource> {
        let Some(store) = &self.store else {
            return Err(DataFusionError::Execution(
                "this process runs no scans: start `tidetable executor`".to_owned(),
            ));
        };
        // Of a bucket it may go better the next time.
        let failed = |error| DataFusionError::IoError(std::io::Error::other(error));
        let other = || SqlError::OtherVersion { table: self.order.table.clone(), version: self.order.version };
        let scan = self.order.open(store).map_err(failed)?.ok_or_else(|| external(other()))?;
        let stored = Arc::clone(self.stored());
        Ok(SstSource::planned(scan, stored, self.filters.clone(), &self.projection, self.batch_size))
    }
}

impl FileSource for DistributedScan {
    fn create_file_opener(
        &self,
        _: Arc<dyn ObjectStore>,
        _: &FileScanConfig,
        partition: usize,
    ) -> Result<Arc<dyn FileOpener>> {
        Ok(Arc::new(DistributedOpener { scan: self.clone(), partition, opened: Arc::default() }))
    }

    fn table_schema(&self) -> &TableSchema {
        &self.table_schema
    }

    fn with_batch_size(&self, batch_size: usize) -> Arc<dyn FileSource> {
        Arc::new(Self { batch_size: batch_size.max(1), ..self.clone() })
    }

    fn filter(&self) -> Option<Arc<dyn PhysicalExpr>> {
        conjunction_opt(self.filters.iter().cloned())
    }

    fn projection(&self) -> Option<&ProjectionExprs> {
        Some(&self.projection)
    }

    fn metrics(&self) -> &ExecutionPlanMetricsSet {
        &self.metrics
    }

    fn file_type(&self) -> &str {
        "sst"
    }

    fn fmt_extra(&self, _: DisplayFormatType, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, ", table={}.{}, version={}", self.order.schema(), self.order.table, self.order.version)?;
        match self.filter() {
            Some(filter) => write!(f, ", filter={filter}"),
            None => Ok(()),
        }
    }

    // A scan range cannot be split at byte offsets.
    fn supports_repartitioning(&self) -> bool {
        false
    }

    fn reorder_files(&self, files: Vec<PartitionedFile>) -> Vec<PartitionedFile> {
        files
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let projected = datafusion::physical_plan::apply_expression_roots(self.projection.iter(), f)?;
        if projected == TreeNodeRecursion::Stop {
            return Ok(projected);
        }
        for filter in &self.filters {
            if f(filter)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(projected)
    }
}

/// Opens the store with the first "file".
struct DistributedOpener {
    scan: DistributedScan,
    partition: usize,
    opened: Arc<OnceLock<Arc<dyn FileOpener>>>,
}

impl FileOpener for DistributedOpener {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let (scan, partition, opened) = (self.scan.clone(), self.partition, Arc::clone(&self.opened));
        Ok(Box::pin(async move {
            let opener = match opened.get() {
                Some(opener) => Arc::clone(opener),
                None => {
                    // The store blocks.
                    let opening = SpawnedTask::spawn_blocking(move || scan.open()?.opener(partition));
                    let opener = opening.join().await.map_err(|error| DataFusionError::External(Box::new(error)))??;
                    Arc::clone(opened.get_or_init(|| opener))
                }
            };
            opener.open(file)?.await
        }))
    }
}
