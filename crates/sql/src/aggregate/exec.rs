//! Partial aggregation in the scan.
//!
//! DataFusion hashes each record to find its group. A scan hashes less: the records of a row share a key, and rows
//! share timestamp lists (each meter's day has the same 96). Groups are interned once per row, or once per distinct
//! timestamp list, and the group numbers are spread over records. States come from DataFusion's accumulators, and its
//! final stage merges them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{filter, interleave, partition, take, take_record_batch};
use arrow::datatypes::{Schema, TimestampMicrosecondType};
use datafusion::error::Result;
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};
use datafusion::physical_plan::PhysicalExpr;
use datafusion::physical_plan::aggregates::group_values::{GroupValues, new_group_values};
use datafusion::physical_plan::aggregates::order::GroupOrdering;
use tidetable_layout::decode::{is_one_each, record_counts};

use crate::aggregate::row_patterns::RowPatterns;
use crate::aggregate::row_states::{RowArgument, RowState, RowStates};
use crate::aggregate::spec::{Aggregate, GroupOf, ScanAggregate};
use crate::scan::records::{Fields, ReadRequest, Records, verdict};

type Expr = Arc<dyn PhysicalExpr>;

/// Records of a run, on average, from which on work by run is less than work by record.
const SHORTEST_RUN: usize = 4;

/// Number of groups at which states are emitted. A group may be emitted several times; the final stage merges it.
const MAX_GROUPS: usize = 1 << 16;

impl ScanAggregate {
    /// What must be read of records. `time`: the event-time column, if there is one.
    pub(crate) fn wanted<'a>(&'a self, time: &'a [usize]) -> ReadRequest<'a> {
        let of = |kind: GroupOf| self.groups.iter().filter(move |(_, of)| *of == kind).map(|(expr, _)| expr);
        let aggregates =
            self.aggregates.iter().flat_map(|aggregate| aggregate.arguments.iter().chain(&aggregate.filter));
        let by_time = self.newest_only || of(GroupOf::Time).next().is_some();
        ReadRequest {
            of_rows: of(GroupOf::Row).collect(),
            of_records: aggregates.chain(of(GroupOf::Time)).collect(),
            fields: if by_time { time } else { &[] },
            by_row: !self.groups.is_empty() || self.newest_only,
        }
    }
}

/// An aggregation in progress.
pub(crate) struct RunningAggregate<'a> {
    plan: &'a ScanAggregate,
    /// Group expressions, bound to batches of rows or of records.
    groups: Vec<Expr>,
    arguments: Vec<(Vec<Expr>, Option<Expr>)>,
    /// See [`ScanAggregate::row_states`].
    row_states: Option<Vec<RowState>>,
    /// Index of the event time among the fields of records.
    time: Option<usize>,
    totals: Accumulators,
    patterns: RowPatterns,
    /// Group number of each record of a block.
    numbers: Vec<usize>,
}

enum Accumulators {
    /// One state for all records.
    All { accumulators: Vec<Box<dyn Accumulator>>, any: bool },
    /// A state for each group.
    Groups { values: Box<dyn GroupValues>, accumulators: Vec<Box<dyn GroupsAccumulator>> },
}

impl<'a> RunningAggregate<'a> {
    pub(crate) fn new(plan: &'a ScanAggregate, rows: &Fields, records: &Fields) -> Result<Self> {
        let functions = plan.aggregates.iter().map(|aggregate| &aggregate.function);
        let totals = if plan.groups.is_empty() {
            let accumulators = functions.map(|function| function.create_accumulator()).collect::<Result<_>>()?;
            Accumulators::All { accumulators, any: false }
        } else {
            let fields = plan.schema.fields().iter().take(plan.groups.len()).cloned().collect::<Vec<_>>();
            let values = new_group_values(Arc::new(Schema::new(fields)), &GroupOrdering::None)?;
            let accumulators = functions.map(|function| function.create_groups_accumulator()).collect::<Result<_>>()?;
            Accumulators::Groups { values, accumulators }
        };
        let group = |(expr, of): &(Expr, GroupOf)| match of {
            GroupOf::Row => rows.bind(expr),
            GroupOf::Time => records.bind(expr),
        };
        let argument = |aggregate: &Aggregate| -> Result<(Vec<Expr>, Option<Expr>)> {
            let arguments = records.bind_all(&aggregate.arguments)?;
            Ok((arguments, aggregate.filter.as_ref().map(|filter| records.bind(filter)).transpose()?))
        };
        let time = plan.time.and_then(|time| records.place(time));
        Ok(Self {
            plan,
            // Without groups, DataFusion's accumulators take a whole block at once.
            row_states: plan.row_states().filter(|_| !plan.groups.is_empty()),
            groups: plan.groups.iter().map(group).collect::<Result<_>>()?,
            arguments: plan.aggregates.iter().map(argument).collect::<Result<_>>()?,
            time,
            totals,
            patterns: RowPatterns::new(Arc::clone(records.schema()), time),
            numbers: Vec::new(),
        })
    }

    /// Adds the records of a block.
    pub(crate) fn add(&mut self, mut records: Records) -> Result<()> {
        if self.plan.newest_only {
            self.keep_newest(&mut records)?;
        }
        let batch = &records.records;
        if let Accumulators::All { accumulators, any } = &mut self.totals {
            *any = true;
            for (accumulator, (arguments, only)) in accumulators.iter_mut().zip(&self.arguments) {
                let mut values = evaluate(arguments, batch)?;
                if let Some(only) = only {
                    let only = verdict(only, batch)?;
                    values = values.iter().map(|values| filter(values, &only)).collect::<Result<_, _>>()?;
                }
                accumulator.update_batch(&values)?;
            }
            return Ok(());
        }
        // A state of each row pays if rows have several records.
        if let Some(states) = self.row_states.clone().filter(|_| has_wide_rows(&records)) {
            return self.add_by_row(&records, &states);
        }
        if is_one_each(&records.ends) {
            return self.add_by_run(&records);
        }
        self.number(&records)?;
        let batch = &records.records;
        let Accumulators::Groups { values, accumulators } = &mut self.totals else { return Ok(()) };
        let groups = values.len();
        for (accumulator, (arguments, only)) in accumulators.iter_mut().zip(&self.arguments) {
            let only = only.as_ref().map(|only| verdict(only, batch)).transpose()?;
            accumulator.update_batch(&evaluate(arguments, batch)?, &self.numbers, only.as_ref(), groups)?;
        }
        Ok(())
    }

    /// Adds records by row; each row has one group.
    fn add_by_row(&mut self, records: &Records, states: &[RowState]) -> Result<()> {
        let mut of_rows = Vec::with_capacity(states.len());
        for (state, (arguments, _)) in states.iter().zip(&self.arguments) {
            let values = if state.looks_at_values() { evaluate(arguments, &records.records)? } else { Vec::new() };
            let argument = values.first().map(|values| RowArgument::Values(values, &records.ends));
            of_rows.push(state.states(&records.ends, argument.as_ref())?);
        }
        let filled = record_counts(&records.ends).map(|count| Some(count > 0)).collect();
        self.add_rows(&RowStates { rows: records.rows.clone(), states: of_rows }.filter(&filled)?)
    }

    /// Adds the states of rows.
    pub(crate) fn add_rows(&mut self, found: &RowStates) -> Result<()> {
        match &mut self.totals {
            Accumulators::All { accumulators, any } => {
                *any = true;
                let pairs = accumulators.iter_mut().zip(&found.states);
                pairs.into_iter().try_for_each(|(accumulator, states)| accumulator.merge_batch(states))
            }
            Accumulators::Groups { values, accumulators } => {
                let mut groups = Vec::with_capacity(found.rows.num_rows());
                values.intern(&evaluate(&self.groups, &found.rows)?, &mut groups)?;
                let mut pairs = accumulators.iter_mut().zip(&found.states);
                pairs.try_for_each(|(accumulator, states)| accumulator.merge_batch(states, &groups, values.len()))
            }
        }
    }

    /// Whether there are enough groups to emit.
    pub(crate) fn is_full(&self) -> bool {
        matches!(&self.totals, Accumulators::Groups { values, .. } if values.len() >= MAX_GROUPS)
    }

    /// Emits the states, if there are any, and resets them.
    pub(crate) fn take(&mut self) -> Result<Option<RecordBatch>> {
        self.patterns.forget();
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
                // Groups of several columns still have their numbers by hash otherwise.
                values.clear_shrink(0);
                for accumulator in accumulators {
                    columns.extend(accumulator.state(EmitTo::All)?);
                }
                Ok(Some(RecordBatch::try_new(schema, columns)?))
            }
        }
    }

    /// Sets the group number of each record.
    fn number(&mut self, records: &Records) -> Result<()> {
        let of = |kind: GroupOf| self.plan.groups.iter().any(|(_, of)| *of == kind);
        let Accumulators::Groups { values, .. } = &mut self.totals else { return Ok(()) };
        self.numbers.clear();
        if !of(GroupOf::Time) {
            let rows = rows_with_records(records)?;
            let mut of_rows = Vec::with_capacity(rows.num_rows());
            values.intern(&evaluate(&self.groups, &rows)?, &mut of_rows)?;
            let counts = record_counts(&records.ends).filter(|count| *count > 0);
            counts.zip(of_rows).for_each(|(count, group)| self.numbers.extend(std::iter::repeat_n(group, count)));
            return Ok(());
        }
        let kinds: Vec<GroupOf> = self.plan.groups.iter().map(|(_, of)| *of).collect();
        let exprs: Vec<Expr> = self
            .groups
            .iter()
            .zip(&kinds)
            .filter(|(_, of)| **of == GroupOf::Time)
            .map(|(expr, _)| expr.clone())
            .collect();
        let patterns = has_wide_rows(records).then(|| self.patterns.of_rows(&records.records, &records.ends, &exprs));
        if let Some(rows) = patterns.transpose()?.flatten() {
            if !of(GroupOf::Row) {
                for pattern in rows.iter().flatten() {
                    self.numbers.extend_from_slice(self.patterns.groups(*pattern, values.as_mut())?);
                }
                return Ok(());
            }
            // Runs of consecutive records with one row and one time group: (row), (pattern, run), records.
            let (mut of_row, mut of_time, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
            for (row, pattern) in rows.iter().enumerate() {
                let Some(pattern) = pattern else { continue };
                for (run, length) in self.patterns.runs(*pattern).iter().enumerate() {
                    of_row.push(row as u32);
                    of_time.push((*pattern, run));
                    lengths.push(*length);
                }
            }
            let by_row = take_record_batch(&records.rows, &UInt32Array::from(of_row))?;
            let mut columns = Vec::with_capacity(kinds.len());
            let mut next_time = 0;
            for (expr, of) in self.groups.iter().zip(&kinds) {
                columns.push(match of {
                    GroupOf::Row => expr.evaluate(&by_row)?.into_array(by_row.num_rows())?,
                    GroupOf::Time => {
                        next_time += 1;
                        let arrays = self.patterns.values(next_time - 1);
                        let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
                        interleave(&arrays, &of_time)?
                    }
                });
            }
            let mut groups = Vec::with_capacity(lengths.len());
            values.intern(&columns, &mut groups)?;
            groups
                .iter()
                .zip(lengths)
                .for_each(|(group, length)| self.numbers.extend(std::iter::repeat_n(*group, length)));
            return Ok(());
        }
        // Timestamp lists do not repeat: groups are interned record by record.
        let counts = record_counts(&records.ends).enumerate();
        let row_of = counts.flat_map(|(row, count)| std::iter::repeat_n(row as u32, count));
        let row_of = UInt32Array::from_iter_values(row_of);
        let columns = group_columns(&self.groups, &kinds, records)?
            .into_iter()
            .zip(&kinds)
            .map(|(column, of)| if *of == GroupOf::Row { Ok(take(&column, &row_of, None)?) } else { Ok(column) })
            .collect::<Result<Vec<_>>>()?;
        values.intern(&columns, &mut self.numbers)
    }

    /// Adds records of which each is a row of its own. Neighbours often share a group (an hour has sixty minutes, an entity
    /// all its rows), so groups are interned by run, and states that do not depend on the order of values are made by run.
    fn add_by_run(&mut self, records: &Records) -> Result<()> {
        let kinds: Vec<GroupOf> = self.plan.groups.iter().map(|(_, of)| *of).collect();
        let Accumulators::Groups { values, accumulators } = &mut self.totals else { return Ok(()) };
        let columns = group_columns(&self.groups, &kinds, records)?;
        let count = records.records.num_rows();
        let runs = partition(&columns)?;
        self.numbers.clear();
        let long = runs.len() * SHORTEST_RUN <= count;
        let mut of_runs = Vec::with_capacity(runs.len());
        let ranges = runs.ranges();
        if long {
            let heads = UInt32Array::from_iter_values(ranges.iter().map(|run| run.start as u32));
            let heads = columns.iter().map(|column| take(column, &heads, None)).collect::<Result<Vec<_>, _>>()?;
            values.intern(&heads, &mut of_runs)?;
        } else {
            values.intern(&columns, &mut self.numbers)?;
        }
        let ends: Vec<u32> = ranges.iter().map(|run| run.end as u32).collect();
        let groups = values.len();
        let plans = self.plan.aggregates.iter().zip(&self.arguments);
        for (accumulator, (aggregate, (arguments, only))) in accumulators.iter_mut().zip(plans) {
            let state = RowState::of(&aggregate.function, &aggregate.arguments)
                .filter(|state| long && only.is_none() && state.is_exact());
            if let Some(state) = state {
                let own = if state.looks_at_values() { evaluate(arguments, &records.records)? } else { Vec::new() };
                let argument = own.first().map(|own| RowArgument::Values(own, &ends));
                accumulator.merge_batch(&state.states(&ends, argument.as_ref())?, &of_runs, groups)?;
                continue;
            }
            if self.numbers.is_empty() {
                for (run, group) in ranges.iter().zip(&of_runs) {
                    self.numbers.resize(run.end, *group);
                }
            }
            let only = only.as_ref().map(|only| verdict(only, &records.records)).transpose()?;
            accumulator.update_batch(&evaluate(arguments, &records.records)?, &self.numbers, only.as_ref(), groups)?;
        }
        Ok(())
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

/// The group columns: a value for each row, or for each record.
fn group_columns(groups: &[Expr], kinds: &[GroupOf], records: &Records) -> Result<Vec<ArrayRef>> {
    let column = |(expr, of): (&Expr, &GroupOf)| match of {
        GroupOf::Row => expr.evaluate(&records.rows)?.into_array(records.rows.num_rows()),
        GroupOf::Time => expr.evaluate(&records.records)?.into_array(records.records.num_rows()),
    };
    groups.iter().zip(kinds).map(column).collect()
}

/// Whether rows have several records on average, so that work by row is less than work by record.
fn has_wide_rows(records: &Records) -> bool {
    records.records.num_rows() >= 2 * records.ends.len()
}

/// The rows with at least one record.
fn rows_with_records(records: &Records) -> Result<RecordBatch> {
    let filled = record_counts(&records.ends).enumerate().filter(|(_, count)| *count > 0).map(|(row, _)| row as u32);
    let filled = UInt32Array::from_iter_values(filled);
    if filled.len() == records.ends.len() {
        return Ok(records.rows.clone());
    }
    Ok(take_record_batch(&records.rows, &filled)?)
}

/// Evaluates expressions over a batch.
pub(crate) fn evaluate(exprs: &[Expr], batch: &RecordBatch) -> Result<Vec<ArrayRef>> {
    exprs.iter().map(|expr| expr.evaluate(batch)?.into_array(batch.num_rows())).collect()
}
