//! Partial aggregation in the scan.
//!
//! DataFusion hashes each record to find its group. A scan hashes less: the records of a row share a key, and rows
//! share times (the days of all meters have the same 96). Groups are interned once a row, or once a class of times, and the
//! group numbers are spread over records. States come from DataFusion's accumulators, and its
//! final stage merges them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{filter, take_record_batch};
use arrow::datatypes::{Schema, TimestampMicrosecondType};
use datafusion::error::Result;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::{GroupOrdering, GroupOrderingFull};

use crate::aggregate::row_states::{RowArgument, RowState, RowStates};
use crate::aggregate::spec::{Aggregate, GroupOf, ScanAggregate};
use crate::grouping::runs::Runs;
use crate::grouping::timeline::Timeline;
use crate::scan::records::{Fields, ReadRequest, Records, WantedRows, verdict};

type Expr = Arc<dyn PhysicalExpr>;

/// Number of groups at which states are emitted. A group may be emitted several times; the final stage merges it.
const MAX_GROUPS: usize = 1 << 16;
/// The same in key order, where a group does not come again: no more than caches hold.
const MAX_ORDERED_GROUPS: usize = 1 << 13;

impl ScanAggregate {
    /// What must be read of records. `time`: the event-time column, if there is one.
    pub(crate) fn wanted<'a>(&'a self, time: &'a [usize]) -> ReadRequest<'a> {
        let by_kind = |kind: GroupOf| self.groups.iter().filter(move |(_, of)| *of == kind).map(|(expr, _)| expr);
        let aggregates =
            self.aggregates.iter().flat_map(|aggregate| aggregate.arguments.iter().chain(&aggregate.filter));
        let by_time = self.newest_only || by_kind(GroupOf::Time).next().is_some();

        ReadRequest {
            of_rows: by_kind(GroupOf::Row).collect(),
            of_records: aggregates.chain(by_kind(GroupOf::Time)).collect(),
            fields: if by_time { time } else { &[] },
            by_row: !self.groups.is_empty() || self.newest_only,
            // The times of a row are a class, and one of them is its newest.
            rows: if by_time { WantedRows::Apart } else { WantedRows::Joined },
        }
    }
}

/// An aggregation in progress: the states of the groups that were met since the last batch was sent.
pub(crate) struct RunningAggregate<'a> {
    plan: &'a ScanAggregate,
    /// Group expressions, bound to batches of rows or of records.
    groups: Vec<(Expr, GroupOf)>,
    arguments: Vec<(Vec<Expr>, Option<Expr>)>,
    /// Of each function what its states of runs are made by.
    states: Vec<Option<RowState>>,
    /// Index of the event time among the fields of records.
    time: Option<usize>,
    totals: Accumulators,
    timeline: Option<Timeline>,
}

enum Accumulators {
    /// One state for all records; `any` tells whether there was one since the last batch.
    All { accumulators: Vec<Box<dyn Accumulator>>, any: bool },
    /// A state for each group, under the number that `values` gives to it.
    Groups { values: Box<dyn GroupValues>, accumulators: Vec<Box<dyn GroupsAccumulator>> },
}

impl<'a> RunningAggregate<'a> {
    /// An aggregation as `plan` says, over batches with these fields of rows and of records.
    pub(crate) fn new(plan: &'a ScanAggregate, rows: &Fields, records: &Fields) -> Result<Self> {
        let functions = plan.aggregates.iter().map(|aggregate| &aggregate.function);
        let totals = if plan.groups.is_empty() {
            let accumulators = functions.map(|function| function.create_accumulator()).collect::<Result<_>>()?;
            Accumulators::All { accumulators, any: false }
        } else {
            let fields = plan.schema.fields().iter().take(plan.groups.len()).cloned().collect::<Vec<_>>();
            // Several columns keep the order in which groups are met only if it counts.
            let order = match plan.in_key_order {
                true => GroupOrdering::Full(GroupOrderingFull::new()),
                false => GroupOrdering::None,
            };
            let values = new_group_values(Arc::new(Schema::new(fields)), &order)?;
            let accumulators = functions.map(|function| function.create_groups_accumulator()).collect::<Result<_>>()?;
            Accumulators::Groups { values, accumulators }
        };

        let mut groups: Vec<(Expr, GroupOf)> = Vec::with_capacity(plan.groups.len());
        for (expr, of) in &plan.groups {
            let fields = if *of == GroupOf::Row { rows } else { records };
            groups.push((fields.bind(expr)?, *of));
        }

        let mut arguments = Vec::with_capacity(plan.aggregates.len());
        for aggregate in &plan.aggregates {
            let filter = aggregate.filter.as_ref().map(|filter| records.bind(filter)).transpose()?;
            arguments.push((records.bind_arguments(&aggregate.arguments)?, filter));
        }

        let time = plan.time.and_then(|time| records.place(time));
        let of_time = groups.iter().filter(|(_, of)| *of == GroupOf::Time).map(|(expr, _)| Arc::clone(expr)).collect();
        Ok(Self {
            plan,
            states: plan.aggregates.iter().map(Aggregate::row_state).collect(),
            groups,
            arguments,
            time,
            totals,
            timeline: Timeline::new(records.schema(), time, of_time)?,
        })
    }

    /// Adds the records of a block: to the groups of runs of records where these are long, else one by one.
    pub(crate) fn add(&mut self, mut records: Records) -> Result<()> {
        if self.plan.newest_only {
            self.keep_newest(&mut records)?;
        }

        let batch = &records.records;
        if let Accumulators::All { accumulators, any } = &mut self.totals {
            *any = true;
            let mut evaluated = Evaluated::of(batch);
            for (accumulator, (arguments, only)) in accumulators.iter_mut().zip(&self.arguments) {
                let mut values = evaluated.all(arguments)?;
                if let Some(only) = only {
                    let only = verdict(only, batch)?;
                    values = values.iter().map(|values| filter(values, &only)).collect::<Result<_, _>>()?;
                }
                accumulator.update_batch(&values)?;
            }
            return Ok(());
        }

        let Accumulators::Groups { values, accumulators } = &mut self.totals else { return Ok(()) };
        let batch = &records.records;
        let runs = Runs::of(&records, &self.groups, self.timeline.as_mut(), values.as_mut())?;
        let (groups, long) = (values.len(), runs.are_long());
        let (mut numbers, mut evaluated) = (None, Evaluated::of(batch));
        for ((accumulator, state), (arguments, only)) in accumulators.iter_mut().zip(&self.states).zip(&self.arguments)
        {
            if let Some(state) = state.as_ref().filter(|_| long) {
                let own = if state.looks_at_values() { evaluated.all(arguments)? } else { Vec::new() };
                let argument = own.first().map(|own| RowArgument::Values(own, &runs.ends));
                accumulator.merge_batch(&state.states(&runs.ends, argument.as_ref())?, &runs.groups, groups)?;
                continue;
            }
            let numbers = numbers.get_or_insert_with(|| runs.by_record());
            let only = only.as_ref().map(|only| verdict(only, batch)).transpose()?;
            accumulator.update_batch(&evaluated.all(arguments)?, numbers, only.as_ref(), groups)?;
        }
        Ok(())
    }

    /// Adds the states of rows, which were computed without their records.
    pub(crate) fn add_rows(&mut self, found: &RowStates) -> Result<()> {
        match &mut self.totals {
            Accumulators::All { accumulators, any } => {
                *any = true;
                let pairs = accumulators.iter_mut().zip(&found.states);
                pairs.into_iter().try_for_each(|(accumulator, states)| accumulator.merge_batch(states))
            }
            Accumulators::Groups { values, accumulators } => {
                let mut groups = Vec::with_capacity(found.rows.num_rows());
                let columns =
                    self.groups.iter().map(|(expr, _)| expr.evaluate(&found.rows)?.into_array(found.rows.num_rows()));
                values.intern(&columns.collect::<Result<Vec<_>>>()?, &mut groups)?;
                let mut pairs = accumulators.iter_mut().zip(&found.states);
                pairs.try_for_each(|(accumulator, states)| accumulator.merge_batch(states, &groups, values.len()))
            }
        }
    }

    /// Whether there are so many groups that they are sent before the next block.
    pub(crate) fn is_full(&self) -> bool {
        let most = if self.plan.in_key_order { MAX_ORDERED_GROUPS } else { MAX_GROUPS };
        matches!(&self.totals, Accumulators::Groups { values, .. } if values.len() >= most)
    }

    /// Emits the states, if there are any, and resets them.
    pub(crate) fn take(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(timeline) = &mut self.timeline {
            timeline.forget();
        }

        let schema = Arc::clone(&self.plan.schema);
        match &mut self.totals {
            Accumulators::All { any: false, .. } => Ok(None),
            Accumulators::All { accumulators, any } => {
                *any = false;
                let mut columns: Vec<ArrayRef> = Vec::new();
                for (accumulator, aggregate) in accumulators.iter_mut().zip(&self.plan.aggregates) {
                    for state in accumulator.state()? {
                        columns.push(state.to_array()?);
                    }
                    *accumulator = aggregate.function.create_accumulator()?;
                }
                let options = RecordBatchOptions::new().with_row_count(Some(1));
                Ok(Some(RecordBatch::try_new_with_options(schema, columns, &options)?))
            }
            Accumulators::Groups { values, .. } if values.is_empty() => Ok(None),
            Accumulators::Groups { values, accumulators } => {
                let mut columns = values.emit(EmitTo::All)?;
                // Groups of several columns still have their numbers by hash otherwise. As many come again.
                values.clear_shrink(columns.first().map_or(0, |column| column.len()));
                for accumulator in accumulators {
                    columns.extend(accumulator.state(EmitTo::All)?);
                }
                Ok(Some(RecordBatch::try_new(schema, columns)?))
            }
        }
    }

    /// Keeps only the newest record of each row; of equal times the last.
    fn keep_newest(&self, records: &mut Records) -> Result<()> {
        let times = self.time.and_then(|at| records.records.columns().get(at));
        let Some(times) = times.and_then(|times| times.as_primitive_opt::<TimestampMicrosecondType>()) else {
            return Ok(());
        };
        if times.null_count() > 0 {
            return Ok(());
        }

        let times = times.values();
        let mut start = 0;
        let mut newest = Vec::with_capacity(records.ends.len());
        for end in &mut records.ends {
            let last = *end as usize;
            let own = times.get(start..last).unwrap_or_default();
            if let Some(greatest) = own.iter().max() {
                let at = own.iter().rposition(|time| time == greatest).unwrap_or(0);
                newest.push((start + at) as u32);
            }
            start = last;
            *end = newest.len() as u32;
        }

        records.records = take_record_batch(&records.records, &UInt32Array::from(newest))?;
        Ok(())
    }
}

/// The values of expressions over a batch, each evaluated once: several functions may have one argument.
struct Evaluated<'b> {
    batch: &'b RecordBatch,
    known: Vec<(Expr, ArrayRef)>,
}

impl<'b> Evaluated<'b> {
    fn of(batch: &'b RecordBatch) -> Self {
        Self { batch, known: Vec::new() }
    }

    fn all(&mut self, exprs: &[Expr]) -> Result<Vec<ArrayRef>> {
        exprs.iter().map(|expr| self.one(expr)).collect()
    }

    fn one(&mut self, expr: &Expr) -> Result<ArrayRef> {
        if let Some((_, values)) = self.known.iter().find(|(known, _)| known == expr) {
            return Ok(Arc::clone(values));
        }
        let values = expr.evaluate(self.batch)?.into_array(self.batch.num_rows())?;
        self.known.push((Arc::clone(expr), Arc::clone(&values)));
        Ok(values)
    }
}

/// The columns of the results of `exprs` over a batch, in their order.
pub(crate) fn evaluate(exprs: &[Expr], batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
    exprs.iter().map(|expr| expr.evaluate(batch)?.into_array(batch.num_rows())).collect()
}
