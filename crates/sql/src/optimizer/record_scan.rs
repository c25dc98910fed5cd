//! The scan of records below an aggregation.

use std::sync::Arc;

use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::reassign_expr_columns;
use datafusion::physical_plan::aggregates::{AggregateExec, aggregate_expressions};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};
use tidetable_layout::{KeyRange, Layout};

use crate::aggregate::spec::{Aggregate, GroupOf, ScanAggregate};
use crate::error::external;
use crate::optimizer::key_order::{entity, merged_by_key};
use crate::pushdown::dependence::{is_of_column, is_of_columns, is_of_row};
use crate::scan::file_groups::{a_file_each, newest_first};
use crate::scan::spec::ScanOutput;
use crate::source::sst_source::SstSource;

type Expr = Arc<dyn PhysicalExpr>;

/// A scan of records below an aggregation, with the projections between them.
pub(crate) struct RecordScan<'a> {
    config: &'a FileScanConfig,
    source: &'a SstSource,
    /// Nodes between the aggregation and the scan, top first.
    projections: Vec<&'a ProjectionExprs>,
}

impl<'a> RecordScan<'a> {
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
            let records = matches!(source.scan().output, ScanOutput::Records { .. }) && source.may_aggregate();
            // A limit makes the result depend on which records come.
            return Ok((records && config.limit.is_none()).then_some(Self { config, source, projections }));
        }
    }

    /// Rewrites an expression over the aggregation's input to one over the table.
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

    /// Index of the event time among the table's columns.
    pub(crate) fn time(&self) -> Option<usize> {
        let source = self.layout().source();
        self.source.records_schema().index_of(&source.fields.get(source.time)?.name).ok()
    }

    /// What an expression over the table depends on; `None` if on more than keys or times.
    pub(crate) fn group(&self, expr: Expr) -> Option<(Expr, GroupOf)> {
        if is_of_row(self.layout(), &expr) {
            return Some((expr, GroupOf::Row));
        }
        let of_time = self.time().is_some_and(|time| is_of_column(&expr, time));
        of_time.then_some((expr, GroupOf::Time))
    }

    /// The functions of `first` with arguments and filters as `of_table` rewrites them; `None` if it gives none, or the
    /// scan cannot evaluate them.
    pub(crate) fn aggregates(
        first: &AggregateExec,
        of_table: impl Fn(&Expr) -> Result<Option<Expr>>,
    ) -> Result<Option<Vec<Aggregate>>> {
        let arguments = aggregate_expressions(first.aggr_expr(), first.mode(), first.group_expr().expr().len())?;
        let mut aggregates = Vec::with_capacity(arguments.len());
        for ((function, arguments), filter) in first.aggr_expr().iter().zip(arguments).zip(first.filter_expr()) {
            let exprs: Vec<Option<Expr>> = arguments.iter().chain(filter).map(&of_table).collect::<Result<_>>()?;
            let exprs: Option<Vec<Expr>> = exprs.into_iter().collect();
            let Some(mut arguments) = exprs.filter(|exprs| exprs.iter().all(is_of_columns)) else { return Ok(None) };
            let filter = if filter.is_some() { arguments.pop() } else { None };
            aggregates.push(Aggregate { function: Arc::clone(function), arguments, filter });
        }
        Ok(Some(aggregates))
    }

    /// The aggregation for the scan; `None` if groups depend on more than keys and times.
    pub(crate) fn aggregate(&self, first: &AggregateExec) -> Result<Option<ScanAggregate>> {
        let mut groups = Vec::new();
        for (expr, _) in first.group_expr().expr() {
            let Some(group) = self.group(self.of_table(expr)?) else { return Ok(None) };
            groups.push(group);
        }
        let Some(aggregates) = Self::aggregates(first, |expr| self.of_table(expr).map(Some))? else { return Ok(None) };
        let time = self.time();
        let newest_only = time.is_some_and(|time| needs_newest_only(self.layout(), time, &groups, &aggregates));
        Ok(Some(ScanAggregate { groups, aggregates, time, newest_only, schema: first.schema() }))
    }

    /// The entity, if each has its own groups and several of them: all windows have the same ones then, whose states would
    /// be merged after the scan, unless it merges the windows.
    fn entity_of_groups(&self, plan: &ScanAggregate) -> Option<usize> {
        let is_divided = plan.groups.iter().any(|(_, of)| *of == GroupOf::Time);
        let entity = entity(self.source).filter(|_| is_divided)?;
        let has_entity =
            plan.groups.iter().any(|(expr, _)| expr.downcast_ref::<Column>().is_some_and(|at| at.index() == entity));
        has_entity.then_some(entity)
    }

    /// The same scan with the partial aggregation `plan` in it.
    pub(crate) fn with(&self, plan: ScanAggregate) -> Result<Arc<dyn ExecutionPlan>> {
        let (scan, groups) = (self.source.scan(), &self.config.file_groups);
        let regrouped = match (plan.newest_only, self.entity_of_groups(&plan)) {
            (true, _) => newest_first(&scan.snapshot, groups).map_err(external)?,
            (false, Some(entity)) => merged_by_key(scan, entity, groups.len())?.map(|(groups, _)| groups),
            (false, None) => None,
        };

        let source = Arc::new(self.source.aggregating(plan));
        let groups = match regrouped {
            Some(groups) => groups,
            // The order of an aggregation's input does not matter: whole windows may go to idle partitions.
            None if scan.keys == [KeyRange::all()] => a_file_each(groups),
            None => groups.clone(),
        };
        let config =
            FileScanConfigBuilder::new(self.config.object_store_url.clone(), source).with_file_groups(groups).build();
        Ok(DataSourceExec::from_data_source(config))
    }
}

/// Whether the newest record of each row decides: groups depend on the row, and every function is the maximum of the
/// time or takes the record of that maximum. Every record must have a time, because nulls sort elsewhere.
fn needs_newest_only(layout: &Layout, time: usize, groups: &[(Expr, GroupOf)], aggregates: &[Aggregate]) -> bool {
    (layout.row_time_step(time).is_some() || layout.is_row_field(time))
        && groups.iter().all(|(_, of)| *of == GroupOf::Row)
        && !aggregates.is_empty()
        && aggregates.iter().all(|aggregate| is_of_newest(aggregate, time))
}

/// Whether an aggregate is the maximum of the field `time`, or takes the record of that maximum.
fn is_of_newest(aggregate: &Aggregate, time: usize) -> bool {
    let Aggregate { function, arguments, filter } = aggregate;
    let is_time = |expr: &Expr| expr.downcast_ref::<Column>().is_some_and(|column| column.index() == time);
    let by_time = |descending: bool| match function.order_bys() {
        [order] => order.options.descending == descending && arguments.last().is_some_and(is_time),
        _ => false,
    };

    let takes_newest = match function.fun().name() {
        "max" => arguments.len() == 1 && arguments.first().is_some_and(is_time),
        "last_value" => !function.is_reversed() && by_time(false),
        "first_value" => !function.is_reversed() && by_time(true),
        _ => false,
    };
    takes_newest && filter.is_none() && !function.ignore_nulls()
}
