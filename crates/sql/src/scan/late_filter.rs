//! Late materialisation: filters on one column, evaluated before the other columns are decoded.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::error::Result;
use datafusion::physical_expr::conjunction_opt;
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_plan::PhysicalExpr;
use tidetable_layout::Layout;
use tidetable_store::read::{RecordFilter, Scalar, ValueRange};

use crate::pushdown::dependence::is_of_row;
use crate::pushdown::pruning::RangePruner;
use crate::pushdown::value_range::value_range;
use crate::scan::records::passing;

type Expr = Arc<dyn PhysicalExpr>;

/// Record filter on one column.
#[derive(Debug)]
pub(crate) struct ColumnFilter {
    /// Group and column index.
    place: (usize, usize),
    /// Schema of that column alone.
    schema: SchemaRef,
    filters: Vec<Expr>,
    /// The values that pass, if they are a range.
    range: Option<ValueRange>,
    /// Rules out value ranges that cannot pass.
    outside: Option<RangePruner>,
}

impl ColumnFilter {
    /// Takes those of `filters` that use one column only; `None` if there are none, or if a null may pass, because
    /// records without a value are not all stored.
    pub(crate) fn new(filters: &[Expr], layout: &Layout, table: &Schema) -> Option<Self> {
        let columns = |filter: &Expr| -> HashSet<usize> {
            collect_columns(filter).into_iter().map(|column| column.index()).collect()
        };
        let of_values = || filters.iter().filter(|filter| !is_of_row(layout, filter));
        let (field, place) =
            of_values().find_map(|filter| match columns(filter).into_iter().collect::<Vec<_>>().as_slice() {
                [field] => Some((*field, layout.summed_column(*field)?)),
                _ => None,
            })?;
        let schema = Arc::new(table.project(&[field]).ok()?);
        let own = of_values().filter(|filter| columns(filter) == HashSet::from([field]));
        let own: Vec<Expr> =
            own.map(|filter| reassign_expr_columns(Arc::clone(filter), &schema)).collect::<Result<_>>().ok()?;
        let absent =
            RecordBatch::try_new(nullable(&schema), vec![new_null_array(schema.field(0).data_type(), 1)]).ok()?;
        let passes = passing(&own, &absent).ok().flatten()?;
        if passes.true_count() > 0 {
            return None;
        }
        let schema = nullable(&schema);
        let outside =
            conjunction_opt(own.iter().cloned()).and_then(|filter| RangePruner::new(filter, &schema, 0, true));
        let ranges: Option<Vec<ValueRange>> =
            own.iter().map(|filter| value_range(filter, &schema).map(|(_, range)| range)).collect();
        let range =
            ranges.and_then(|ranges| ranges.into_iter().map(Some).reduce(|all, one| all?.intersection(one?))?);
        Some(Self { place, schema, filters: own, range, outside })
    }

    fn verdict(&self, values: &ArrayRef) -> Option<BooleanArray> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), vec![Arc::clone(values)]).ok()?;
        passing(&self.filters, &batch).ok()?
    }
}

/// Stored columns may lack values, whatever the table's schema says.
fn nullable(schema: &Schema) -> SchemaRef {
    let fields: Vec<_> = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    Arc::new(Schema::new(fields))
}

impl RecordFilter for ColumnFilter {
    fn column(&self) -> (usize, usize) {
        self.place
    }

    fn range(&self) -> Option<ValueRange> {
        self.range
    }

    /// Keeps all on an error; the filter runs again later.
    fn keep(&self, values: &ArrayRef) -> BooleanBuffer {
        if let Some(mask) = self.range.and_then(|range| range.mask(values)) {
            return mask;
        }
        match self.verdict(values) {
            Some(verdict) => verdict.values().clone(),
            None => BooleanBuffer::new_set(values.len()),
        }
    }

    fn may_keep(&self, ends: (Scalar, Scalar)) -> bool {
        if let Some(range) = self.range {
            return range.overlaps(ends);
        }
        !self.outside.as_ref().is_some_and(|skip| skip.rules_out(ends))
    }
}
