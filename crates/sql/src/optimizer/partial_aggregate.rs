//! Which aggregations begin in the scan.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::reassign_expr_columns;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, aggregate_expressions};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use tidetable_layout::Layout;

use crate::aggregate::exec::{Aggregate, GroupOf, ScanAggregate};
use crate::error::external;
use crate::optimizer::aggregate_below_join::below_join;
use crate::pushdown::dependence::{is_of_column, is_of_columns, is_of_row};
use crate::scan::file_groups::newest_first;
use crate::scan::source::{Shape, SstSource};

type Expr = Arc<dyn PhysicalExpr>;

/// Functions whose stages give the same whatever order and however often parts of a group come.
const FUNCTIONS: [&str; 15] = [
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "count",
    "first_value",
    "last_value",
    "max",
    "min",
    "stddev",
    "stddev_pop",
    "sum",
    "var_pop",
];

/// Hands the first stage of aggregations to the scans below them.
#[derive(Debug)]
pub(crate) struct AggregateInScan;

impl PhysicalOptimizerRule for AggregateInScan {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let Some(aggregation) = plan.downcast_ref::<AggregateExec>() else { return Ok(Transformed::no(plan)) };
            Ok(match in_scan(aggregation)? {
                Some(changed) => Transformed::yes(changed),
                None => Transformed::no(plan),
            })
        })
        .data()
    }

    fn name(&self) -> &str {
        "AggregateInScan"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The plan that gives what `aggregation` does, with its first stage in the scan; `None` if it cannot be there.
fn in_scan(aggregation: &AggregateExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let whole = match aggregation.mode() {
        AggregateMode::Partial => false,
        AggregateMode::Single => true,
        _ => return Ok(None),
    };
    let groups = aggregation.group_expr();
    if !(groups.is_single() || groups.is_true_no_grouping()) || aggregation.limit_options().is_some() {
        return Ok(None);
    }
    if !aggregation.aggr_expr().iter().all(|function| has_stages(function, !groups.is_empty())) {
        return Ok(None);
    }
    let (input, functions) = (Arc::clone(aggregation.input()), aggregation.aggr_expr().to_vec());
    let (filters, schema) = (aggregation.filter_expr().to_vec(), aggregation.input_schema());
    let first = AggregateExec::try_new(AggregateMode::Partial, groups.clone(), functions, filters, input, schema)?;
    let aggregated = match Scanned::below(first.input())? {
        Some(scan) => scan.aggregate(&first)?.map(|plan| scan.with(plan)).transpose()?,
        None => below_join(&first)?,
    };
    let Some(aggregated) = aggregated else { return Ok(None) };
    if !whole {
        return Ok(Some(aggregated));
    }
    let none = vec![None; first.aggr_expr().len()];
    let (functions, schema) = (first.aggr_expr().to_vec(), first.input_schema());
    let last = AggregateExec::try_new(AggregateMode::Final, groups.as_final(), functions, none, aggregated, schema)?;
    Ok((last.schema() == aggregation.schema()).then(|| Arc::new(last) as Arc<dyn ExecutionPlan>))
}

/// Whether a function may be worked out in stages of which the first sees records in any order.
fn has_stages(function: &AggregateFunctionExpr, grouped: bool) -> bool {
    let name = function.fun().name();
    let by_order = matches!(name, "first_value" | "last_value");
    FUNCTIONS.contains(&name)
        && !function.is_distinct()
        // Without an order of its own the first is the first that comes, which a scan would change.
        && by_order != function.order_bys().is_empty()
        && (!grouped || function.groups_accumulator_supported())
}

/// A scan of records below an aggregation.
pub(crate) struct Scanned<'a> {
    config: &'a FileScanConfig,
    source: &'a SstSource,
    /// What lies between, the upper first.
    projections: Vec<&'a ProjectionExprs>,
}

impl<'a> Scanned<'a> {
    pub(crate) fn below(mut plan: &'a Arc<dyn ExecutionPlan>) -> Result<Option<Self>> {
        let mut projections = Vec::new();
        loop {
            if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
                projections.push(projection.projection_expr());
                plan = projection.input();
                continue;
            }
            let Some(exec) = plan.downcast_ref::<DataSourceExec>() else { return Ok(None) };
            let Some((config, source)) = exec.downcast_to_file_source::<SstSource>() else { return Ok(None) };
            let records = matches!(source.scan().shape, Shape::Records { .. }) && source.may_aggregate();
            // Of a limit it matters which records come.
            return Ok((records && config.limit.is_none()).then_some(Self { config, source, projections }));
        }
    }

    /// An expression over the input of the aggregation as one over the table.
    pub(crate) fn of_table(&self, expr: &Expr) -> Result<Expr> {
        let mut expr = Arc::clone(expr);
        for projection in &self.projections {
            expr = projection.unproject_expr(&expr)?;
        }
        expr = self.source.projections().unproject_expr(&expr)?;
        reassign_expr_columns(expr, self.source.records_schema())
    }

    fn layout(&self) -> &'a Layout {
        self.source.scan().snapshot.layout()
    }

    /// The event time among the columns of the table, if it has one.
    pub(crate) fn time(&self) -> Option<usize> {
        event_time(self.layout(), self.source.records_schema())
    }

    /// What an expression over the table depends on, if it is keys or times alone.
    pub(crate) fn group(&self, expr: Expr) -> Option<(Expr, GroupOf)> {
        if is_of_row(self.layout(), &expr) {
            return Some((expr, GroupOf::Row));
        }
        let of_time = self.time().is_some_and(|time| is_of_column(&expr, time));
        of_time.then_some((expr, GroupOf::Time))
    }

    /// Functions with their arguments and filters over the table; `None` if a scan cannot work these out.
    pub(crate) fn aggregates(
        &self,
        functions: &[Arc<AggregateFunctionExpr>],
        of_table: Vec<(Vec<Expr>, Option<Expr>)>,
    ) -> Option<Vec<Aggregate>> {
        let pairs = functions.iter().zip(of_table).map(|(function, (arguments, filter))| {
            let worked_out = arguments.iter().chain(&filter).all(is_of_columns);
            worked_out.then(|| Aggregate { function: Arc::clone(function), arguments, filter })
        });
        pairs.collect()
    }

    /// What the scan is to do; `None` if groups depend on more than keys and times.
    fn aggregate(&self, first: &AggregateExec) -> Result<Option<ScanAggregate>> {
        let mut groups = Vec::new();
        for (expr, _) in first.group_expr().expr() {
            let Some(group) = self.group(self.of_table(expr)?) else { return Ok(None) };
            groups.push(group);
        }
        let mut of_table = Vec::new();
        let arguments = aggregate_expressions(first.aggr_expr(), first.mode(), groups.len())?;
        for (arguments, filter) in arguments.iter().zip(first.filter_expr()) {
            let arguments: Vec<Expr> = arguments.iter().map(|expr| self.of_table(expr)).collect::<Result<_>>()?;
            of_table.push((arguments, filter.as_ref().map(|filter| self.of_table(filter)).transpose()?));
        }
        let Some(aggregates) = self.aggregates(first.aggr_expr(), of_table) else { return Ok(None) };
        let time = self.time();
        let newest_only = time.is_some_and(|time| needs_newest_only(self.layout(), time, &groups, &aggregates));
        Ok(Some(ScanAggregate { groups, aggregates, time, newest_only, schema: first.schema() }))
    }

    pub(crate) fn with(&self, plan: ScanAggregate) -> Result<Arc<dyn ExecutionPlan>> {
        let groups = &self.config.file_groups;
        let regrouped = match plan.newest_only {
            true => newest_first(&self.source.scan().snapshot, groups).map_err(external)?,
            false => None,
        };
        let source = Arc::new(self.source.aggregating(plan));
        let config = FileScanConfigBuilder::new(self.config.object_store_url.clone(), source)
            .with_file_groups(regrouped.unwrap_or_else(|| groups.clone()))
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }
}

/// The event time among the records, if they have one.
fn event_time(layout: &Layout, records: &Schema) -> Option<usize> {
    let source = layout.source();
    records.index_of(&source.fields.get(source.time)?.name).ok()
}

/// Whether of each row the newest record alone decides: groups follow from the row, and every function asks for the
/// greatest time, or for what belongs to it. Records without a time would sort elsewhere, so each must have one.
fn needs_newest_only(layout: &Layout, time: usize, groups: &[(Expr, GroupOf)], aggregates: &[Aggregate]) -> bool {
    let is_time = |expr: &Expr| expr.downcast_ref::<Column>().is_some_and(|column| column.index() == time);
    let newest = |aggregate: &Aggregate| {
        let Aggregate { function, arguments, filter } = aggregate;
        let by_time = |descending: bool| match function.order_bys() {
            [order] => order.options.descending == descending && arguments.last().is_some_and(is_time),
            _ => false,
        };
        let asks = match function.fun().name() {
            "max" => arguments.len() == 1 && arguments.first().is_some_and(is_time),
            "last_value" => !function.is_reversed() && by_time(false),
            "first_value" => !function.is_reversed() && by_time(true),
            _ => false,
        };
        asks && filter.is_none() && !function.ignore_nulls()
    };
    (layout.row_time_step(time).is_some() || layout.is_row_field(time))
        && groups.iter().all(|(_, of)| *of == GroupOf::Row)
        && !aggregates.is_empty()
        && aggregates.iter().all(newest)
}
