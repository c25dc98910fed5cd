//! Encoding of scans of tables: what DataFusion's own leaves out, such as the scan ranges of each "file".

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_expr::projection::{ProjectionExpr, ProjectionExprs};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::generated::datafusion_common::Schema as SchemaNode;
use datafusion_proto::physical_plan::PhysicalExtensionCodec;
use datafusion_proto::physical_plan::from_proto::parse_physical_expr;
use datafusion_proto::physical_plan::to_proto::serialize_physical_expr;
use datafusion_proto::protobuf::PhysicalExprNode;
use prost::Message;
use tidetable_sql::{DistributedScan, ScanGroups};
use tidetable_store::Store;

#[derive(Clone, PartialEq, Message)]
struct ScanNode {
    /// A [`ScanOrder`](tidetable_sql::ScanOrder), JSON.
    #[prost(bytes = "vec", tag = "1")]
    order: Vec<u8>,
    /// [`ScanGroups`], JSON.
    #[prost(bytes = "vec", tag = "2")]
    groups: Vec<u8>,
    #[prost(message, optional, tag = "3")]
    schema: Option<SchemaNode>,
    #[prost(message, repeated, tag = "4")]
    filters: Vec<PhysicalExprNode>,
    #[prost(message, repeated, tag = "5")]
    outputs: Vec<PhysicalExprNode>,
    #[prost(string, repeated, tag = "6")]
    names: Vec<String>,
    #[prost(message, repeated, tag = "7")]
    orderings: Vec<OrderingNode>,
    #[prost(uint64, optional, tag = "8")]
    limit: Option<u64>,
    #[prost(bool, tag = "9")]
    preserve_order: bool,
    #[prost(string, tag = "10")]
    root: String,
}

#[derive(Clone, PartialEq, Message)]
struct OrderingNode {
    #[prost(message, repeated, tag = "1")]
    by: Vec<SortNode>,
}

#[derive(Clone, PartialEq, Message)]
struct SortNode {
    #[prost(message, optional, tag = "1")]
    by: Option<PhysicalExprNode>,
    #[prost(bool, tag = "2")]
    descending: bool,
    #[prost(bool, tag = "3")]
    nulls_first: bool,
}

fn external(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The encoded scan; `None` if `plan` is none of a table.
pub(crate) fn encode(plan: &dyn ExecutionPlan, codec: &dyn PhysicalExtensionCodec) -> Result<Option<Vec<u8>>> {
    let source = plan.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
    let Some(config) = source.and_then(|source| source.downcast_ref::<FileScanConfig>()) else { return Ok(None) };
    let Some(scan) = config.file_source.downcast_ref::<DistributedScan>() else { return Ok(None) };
    let node = |expr: &Arc<dyn PhysicalExpr>| serialize_physical_expr(expr, codec);
    let sort = |sort: &PhysicalSortExpr| {
        let (descending, nulls_first) = (sort.options.descending, sort.options.nulls_first);
        Ok(SortNode { by: Some(node(&sort.expr)?), descending, nulls_first })
    };
    let ordering = |order: &LexOrdering| Ok(OrderingNode { by: order.iter().map(sort).collect::<Result<_>>()? });
    let outputs = scan.projections();
    let node = ScanNode {
        order: serde_json::to_vec(scan.order()).map_err(external)?,
        groups: serde_json::to_vec(&ScanGroups::of(&config.file_groups)).map_err(external)?,
        schema: Some(scan.stored().as_ref().try_into().map_err(external)?),
        filters: scan.filters().iter().map(node).collect::<Result<_>>()?,
        outputs: outputs.iter().map(|output| node(&output.expr)).collect::<Result<_>>()?,
        names: outputs.iter().map(|output| output.alias.clone()).collect(),
        orderings: config.output_ordering.iter().map(ordering).collect::<Result<_>>()?,
        limit: config.limit.map(|limit| limit as u64),
        preserve_order: config.preserve_order,
        root: config.object_store_url.as_str().to_owned(),
    };
    Ok(Some(node.encode_to_vec()))
}

/// The scan of `bytes`, over `store` if it can be executed here.
pub(crate) fn decode(
    bytes: &[u8],
    (context, codec): (&TaskContext, &dyn PhysicalExtensionCodec),
    store: Option<Store>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let missing = || DataFusionError::Internal("a scan without a part of it".to_owned());
    let node = ScanNode::decode(bytes).map_err(external)?;
    let schema: Schema = node.schema.as_ref().ok_or_else(missing)?.try_into().map_err(external)?;
    let schema = Arc::new(schema);
    let expr = |expr: &PhysicalExprNode| parse_physical_expr(expr, context, &schema, codec);
    let sort = |sort: &SortNode| {
        let options = arrow::compute::SortOptions { descending: sort.descending, nulls_first: sort.nulls_first };
        Ok(PhysicalSortExpr::new(expr(sort.by.as_ref().ok_or_else(missing)?)?, options))
    };
    let mut orderings = Vec::new();
    for order in &node.orderings {
        orderings.extend(LexOrdering::new(order.by.iter().map(sort).collect::<Result<Vec<_>>>()?));
    }
    let output = |(node, name): (&PhysicalExprNode, &String)| Ok(ProjectionExpr::new(expr(node)?, name.clone()));
    let outputs: Vec<ProjectionExpr> = node.outputs.iter().zip(&node.names).map(output).collect::<Result<_>>()?;
    let scan = DistributedScan::new(
        serde_json::from_slice(&node.order).map_err(external)?,
        Arc::clone(&schema),
        node.filters.iter().map(expr).collect::<Result<_>>()?,
        ProjectionExprs::from(outputs),
    );
    let groups: ScanGroups = serde_json::from_slice(&node.groups).map_err(external)?;
    let url = ObjectStoreUrl::parse(&node.root)?;
    let config = FileScanConfigBuilder::new(url, Arc::new(scan.in_store(store)))
        .with_file_groups(groups.groups())
        .with_output_ordering(orderings)
        .with_limit(node.limit.and_then(|limit| usize::try_from(limit).ok()))
        .with_preserve_order(node.preserve_order)
        .build();
    Ok(DataSourceExec::from_data_source(config))
}
