//! The scan of records below an aggregation.

use std::sync::Arc;

use datafusion::common::SplitPoint;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::projection::ProjectionExprs;
use datafusion::physical_expr::utils::reassign_expr_columns;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr, RangePartitioning};
use datafusion::physical_plan::aggregates::{AggregateExec, aggregate_expressions};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, Partitioning, PhysicalExpr};
use datafusion::scalar::ScalarValue;
use tidetable_layout::{KeyRange, Layout};

use crate::aggregate::spec::{Aggregate, GroupOf, ScanAggregate};
use crate::error::external;
use crate::optimizer::key_order::{entity, merged_by_key};
use crate::pushdown::dependence::{is_of_column, is_of_columns, is_of_row};
use crate::scan::file_groups::{a_file_each, follow_each_other, newest_first};
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
        let schema = first.schema();
        Ok(Some(ScanAggregate { groups, aggregates, time, newest_only, in_key_order: false, schema }))
    }

    /// The entity, if groups are by it: its index among the fields of the table, and among the groups.
    fn entity_of_groups(&self, plan: &ScanAggregate) -> Option<EntityGroup> {
        let field = entity(self.source)?;
        let is_entity = |expr: &Expr| expr.downcast_ref::<Column>().is_some_and(|column| column.index() == field);
        let place = plan.groups.iter().position(|(expr, _)| is_entity(expr))?;
        Some(EntityGroup { field, place })
    }

    /// Whether the rows of the scan are read in key order without merging them: they are one scan range, whose SSTs follow each other.
    fn reads_in_key_order(&self) -> bool {
        let scan = self.source.scan();
        match scan.snapshot.scan_ranges(&scan.keys, &scan.time).as_slice() {
            [only] => follow_each_other(&scan.snapshot, &only.ssts),
            _ => false,
        }
    }

    /// The same scan with the partial aggregation `plan` in it.
    ///
    /// Where groups are by entity, partitions are key ranges that no entity crosses: the last stage of the aggregation merges states
    /// where they are, and holds a group at a time if they come in key order. Several windows have the same entities: they are
    /// merged if an entity has several groups in each, else it would take longer than to merge their states.
    pub(crate) fn with(&self, plan: ScanAggregate) -> Result<Arc<dyn ExecutionPlan>> {
        let (scan, groups) = (self.source.scan(), &self.config.file_groups);
        let is_divided = plan.groups.iter().any(|(_, of)| *of == GroupOf::Time);
        let entity = self.entity_of_groups(&plan);
        let in_key_order = entity.is_some() && !is_divided && self.reads_in_key_order();

        if plan.newest_only
            && let Some(groups) = newest_first(&scan.snapshot, groups).map_err(external)?
        {
            return self.aggregated(plan, groups, None);
        }
        if let Some(entity) = entity.filter(|_| in_key_order || is_divided && !plan.newest_only)
            && let Some((groups, cuts)) = match groups.len() {
                // One partition needs no cuts, for which SSTs would be opened.
                1 if in_key_order => Some((groups.clone(), Vec::new())),
                partitions => merged_by_key(scan, entity.field, partitions)?,
            }
        {
            let range = EntityRanges { place: entity.place, cuts };
            return self.aggregated(ScanAggregate { in_key_order, ..plan }, groups, Some(range));
        }
        // The order of an aggregation's input does not matter: whole windows may go to idle partitions.
        let is_whole = scan.keys == [KeyRange::all()];
        self.aggregated(plan, if is_whole { a_file_each(groups) } else { groups.clone() }, None)
    }

    /// The scan of `groups` with the partial aggregation `plan`; `ranges` if they are ranges of an entity.
    fn aggregated(
        &self,
        plan: ScanAggregate,
        groups: Vec<FileGroup>,
        ranges: Option<EntityRanges>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (in_key_order, schema) = (plan.in_key_order, Arc::clone(&plan.schema));
        let source = Arc::new(self.source.aggregating(plan));
        let config = FileScanConfigBuilder::new(self.config.object_store_url.clone(), source).with_file_groups(groups);
        let (Some(ranges), Some(order)) = (ranges, self.source.range_order()) else {
            return Ok(DataSourceExec::from_data_source(config.build()));
        };

        let column = Column::new(schema.field(ranges.place).name(), ranges.place);
        let by = LexOrdering::from([PhysicalSortExpr::new(Arc::new(column), order.first().options)]);
        let splits = ranges.cuts.into_iter().map(|value| SplitPoint::new(vec![value])).collect();
        let partitioning = Partitioning::Range(RangePartitioning::try_new(by.clone(), splits)?);
        let mut config = config.with_output_partitioning(Some(partitioning));
        if in_key_order {
            config = config.with_output_ordering(vec![by]).with_preserve_order(true);
        }
        Ok(DataSourceExec::from_data_source(config.build()))
    }
}

/// A group that is an entity: its index among the fields of the table, and among the groups.
struct EntityGroup {
    field: usize,
    place: usize,
}

/// Key ranges that no entity crosses: the index of the entity among the groups, and its first value in each range but the first.
struct EntityRanges {
    place: usize,
    cuts: Vec<ScalarValue>,
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
