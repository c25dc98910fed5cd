//! Physical plans that other processes can run: nothing in them needs this process, and nothing is outside the root.

use std::path::Path as FilePath;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::object_store::path::Path;
use datafusion::physical_expr::Partitioning;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::ensure_requirements::EnsureRequirements;
use datafusion::physical_optimizer::sanity_checker::SanityCheckPlan;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, displayable};
use datafusion::prelude::SessionConfig;
use tidetable_store::Store;
use url::Url;

use crate::catalog::exports::bucket_url;
use crate::distributed::scan::DistributedScan;
use crate::error::{SqlError, external};
use crate::source::sst_source::SstSource;

type Plan = Arc<dyn ExecutionPlan>;

/// Partitions of a query on executors: how many of them it can use at a time.
const PARTITIONS: usize = 8;

/// The root as plans name it: executors of the same root know it under the same URL, and no other.
#[derive(Debug, Clone)]
pub struct Place {
    /// An object store URL without a path.
    pub url: String,
}

/// Settings under which each part of a plan is right by itself. Parts share no memory: so no filters that one part fills for
/// another, and no subquery whose value is handed over.
pub(crate) fn settings(config: &SessionConfig) -> SessionConfig {
    let mut config = config.clone().with_target_partitions(PARTITIONS).with_round_robin_repartition(false);
    let options = config.options_mut();
    options.execution.parquet.schema_force_view_types = false;
    options.sql_parser.map_string_types_to_utf8view = false;
    let optimizer = &mut options.optimizer;
    optimizer.enable_physical_uncorrelated_scalar_subquery = false;
    optimizer.enable_dynamic_filter_pushdown = false;
    optimizer.enable_topk_dynamic_filter_pushdown = false;
    optimizer.enable_join_dynamic_filter_pushdown = false;
    optimizer.enable_aggregate_dynamic_filter_pushdown = false;
    config
}

/// The same plan as it can run elsewhere.
///
/// # Errors
/// [`SqlError::NotDistributed`]: what cannot.
pub(crate) fn portable(plan: &Plan, place: &Place, store: &Store, options: &ConfigOptions) -> Result<Plan> {
    let root = Root::of(store)?;
    let url = ObjectStoreUrl::parse(&place.url)?;
    let mut reads = false;
    let moved = |plan: Plan| {
        if plan.children().is_empty() {
            let (leaf, is_of_root) = root.leaf(&plan, &url)?;
            reads |= is_of_root;
            return Ok(Transformed::yes(leaf));
        }
        Ok(Transformed::no(plan))
    };
    let plan = Arc::clone(plan).transform_up(moved).data()?;
    if !reads {
        return Err(refused("it reads no table or export of the root"));
    }
    let plan = SanityCheckPlan::new().optimize(plan, options)?;
    keeps_its_parts(&plan, options)?;
    Ok(plan)
}

fn refused(reason: impl Into<String>) -> datafusion::error::DataFusionError {
    external(SqlError::NotDistributed { reason: reason.into() })
}

/// Ballista plans the part below each exchange again with a rule that moves limits wrongly (rows "Limits" of
/// `docs/datafusion-workarounds.md`): refuses a plan that the rule would change.
fn keeps_its_parts(plan: &Plan, options: &ConfigOptions) -> Result<()> {
    let is_exchange = plan.is::<CoalescePartitionsExec>()
        || plan
            .downcast_ref::<RepartitionExec>()
            .is_some_and(|dealt| matches!(dealt.partitioning(), Partitioning::Hash(..)));
    for child in plan.children() {
        if is_exchange {
            let again = EnsureRequirements::new().optimize(Arc::clone(child), options)?;
            if shown(&again) != shown(child) {
                return Err(refused(
                    "a part of its plan would be changed on the way: a limit or an order in a subquery",
                ));
            }
        }
        keeps_its_parts(child, options)?;
    }
    Ok(())
}

fn shown(plan: &Plan) -> String {
    displayable(plan.as_ref()).indent(true).to_string()
}

/// Where the files of a root are, as scans of this process name them.
struct Root {
    url: Url,
    prefix: Path,
}

impl Root {
    fn of(store: &Store) -> Result<Self> {
        if let Some(bucket) = store.blobs().bucket() {
            return Ok(Self { url: bucket_url()?, prefix: bucket.prefix });
        }
        let path = std::path::absolute(FilePath::new(&store.blobs().display().to_string()))?;
        let url = Url::from_file_path(&path).map_err(|()| refused("the root has no absolute path"))?;
        let prefix = Path::from_url_path(url.path()).map_err(|error| refused(error.to_string()))?;
        Ok(Self { url: Url::parse("file:///").map_err(|error| refused(error.to_string()))?, prefix })
    }

    /// A leaf that reads what all executors have, and whether that is of the root.
    fn leaf(&self, plan: &Plan, place: &ObjectStoreUrl) -> Result<(Plan, bool)> {
        let one_row = plan.is::<PlaceholderRowExec>() || plan.is::<EmptyExec>();
        // Encoded without a count of partitions.
        if one_row && plan.output_partitioning().partition_count() == 1 {
            return Ok((Arc::clone(plan), false));
        }
        let source = plan.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
        if source.is_some_and(|source| source.is::<MemorySourceConfig>()) {
            return Ok((Arc::clone(plan), false));
        }
        let Some(config) = source.and_then(|source| source.downcast_ref::<FileScanConfig>()) else {
            return Err(refused(format!("it reads {}, which is of this process", plan.name())));
        };
        let mut config = config.clone();
        match config.file_source.downcast_ref::<SstSource>() {
            Some(source) => {
                let scan = DistributedScan::of(source).ok_or_else(|| refused("its scan belongs to this process"))?;
                config.file_source = Arc::new(scan);
            }
            None => config.file_groups = self.inside(&config)?,
        }
        config.object_store_url = place.clone();
        Ok((DataSourceExec::from_data_source(config), true))
    }

    /// The groups of a scan of files of the root, named from the root on.
    fn inside(&self, config: &FileScanConfig) -> Result<Vec<FileGroup>> {
        let other = |file: &PartitionedFile| {
            refused(format!("it reads {}, which is no file of the root", file.object_meta.location))
        };
        let is_here = Url::parse(config.object_store_url.as_str()).is_ok_and(|url| url == self.url);
        let moved = |file: &PartitionedFile| {
            let location = &file.object_meta.location;
            let rest = location.prefix_match(&self.prefix).filter(|_| is_here).ok_or_else(|| other(file))?;
            let mut file = file.clone();
            file.object_meta.location = rest.collect();
            Ok(file)
        };
        config
            .file_groups
            .iter()
            .map(|group| Ok(FileGroup::new(group.iter().map(moved).collect::<Result<_>>()?)))
            .collect()
    }
}
