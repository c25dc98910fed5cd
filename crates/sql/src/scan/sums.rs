//! Sum reader: aggregates from row sums, for queries that need no single records.
//!
//! SSTs store row sums beside the values. Where they do not, and where rows of several SSTs are merged or partly
//! hidden, the values are read and added here.

use std::sync::Arc;

use arrow::array::BooleanArray;
use arrow::compute::and;
use arrow::datatypes::Schema;
use datafusion::error::Result;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::PhysicalExpr;
use tidetable_layout::decode::record_counts;
use tidetable_layout::{Block, ColumnRef, Projection};

use crate::aggregate::row_states::{RowArgument, RowState, RowStates, type_mismatch};
use crate::aggregate::spec::ScanAggregate;
use crate::pushdown::dependence::is_of_row;
use crate::scan::records::{Fields, passing, read_rows};
use crate::scan::spec::{ScanOutput, TableScan};

type Expr = Arc<dyn PhysicalExpr>;

/// Partial state of an aggregate, and the column whose row sums it is built from.
struct SummedState {
    state: RowState,
    /// `None` for a state that counts records and looks at no values.
    column: Option<ColumnRef>,
}

/// Reads rows and the sums stored beside their values, and builds the states of aggregates from them.
pub(crate) struct SumReader {
    scan: Arc<TableScan>,
    /// Name of the scan range, for messages.
    name: String,
    rows: Fields,
    row_filter: Vec<Expr>,
    /// Record columns that are arguments.
    records: Fields,
    /// For each function its state, and the group and column of its argument.
    states: Vec<SummedState>,
}

impl SumReader {
    /// For `aggregate` over the records that pass `filters`; `None` if either needs single records.
    pub(crate) fn new(
        scan: &Arc<TableScan>,
        name: &str,
        table: &Schema,
        filters: &[Expr],
        aggregate: &ScanAggregate,
    ) -> Result<Option<Self>> {
        let layout = scan.snapshot.layout();
        if !matches!(scan.output, ScanOutput::Records { within: None }) {
            return Ok(None);
        }

        let Some(states) = aggregate.row_states() else { return Ok(None) };
        if !states.iter().all(RowState::is_of_sums) || !filters.iter().all(|filter| is_of_row(layout, filter)) {
            return Ok(None);
        }

        let mut summed = Vec::with_capacity(states.len());
        for (state, aggregate) in states.into_iter().zip(&aggregate.aggregates) {
            let column = aggregate.arguments.first().and_then(|argument| argument.downcast_ref::<Column>());
            let stored = column.and_then(|column| layout.summed_column(column.index()));
            if state.looks_at_values() && stored.is_none() {
                return Ok(None);
            }
            let column = stored.filter(|_| state.looks_at_values());
            summed.push(SummedState { state, column });
        }

        let groups = aggregate.groups.iter().map(|(expr, _)| expr);
        let rows = Fields::of(table, filters.iter().chain(groups), &[])?;
        let arguments = aggregate.aggregates.iter().flat_map(|aggregate| &aggregate.arguments);
        Ok(Some(Self {
            scan: Arc::clone(scan),
            name: name.to_owned(),
            row_filter: rows.bind_all(filters)?,
            rows,
            records: Fields::of(table, arguments, &[])?,
            states: summed,
        }))
    }

    /// What a scan must read of blocks: the columns of the arguments, as sums where they are stored.
    pub(crate) fn projection(&self) -> Projection {
        let mut projection = self.scan.snapshot.layout().projection(self.records.at());

        for at in self.states.iter().filter_map(|summed| summed.column) {
            if let Some(Some(group)) = projection.groups.get_mut(at.group) {
                group.sums = true;
            }
        }

        projection
    }

    /// Fields of row batches, and of arguments.
    pub(crate) fn fields(&self) -> (&Fields, &Fields) {
        (&self.rows, &self.records)
    }

    /// States of the rows of a block that pass the filters and have records.
    pub(crate) fn read(&self, block: &Block) -> Result<RowStates> {
        let (rows, ends) = read_rows(&self.scan, &self.name, &self.rows, block)?;
        let mut kept: BooleanArray = record_counts(&ends).map(|count| Some(count > 0)).collect();
        if let Some(passing) = passing(&self.row_filter, &rows)? {
            kept = and(&kept, &passing)?;
        }

        let mut states = Vec::with_capacity(self.states.len());
        for SummedState { state, column } in &self.states {
            let argument = match column {
                Some(at) => Some(argument(block, *at).ok_or_else(type_mismatch)?),
                None => None,
            };
            states.push(state.states(&ends, argument.as_ref())?);
        }

        RowStates { rows, states }.filter(&kept)
    }
}

/// The row sums of a column if the block has them, else its values.
fn argument(block: &Block, at: ColumnRef) -> Option<RowArgument<'_>> {
    let group = block.groups.get(at.group)?.as_ref()?;

    match group.sums.get(at.column).and_then(Option::as_ref) {
        Some(sums) => Some(RowArgument::Sums(sums, &group.row_ends)),
        None => Some(RowArgument::Values(group.columns.get(at.column)?.as_ref()?, &group.row_ends)),
    }
}
