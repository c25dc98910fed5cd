//! Late materialisation: filters on one column, evaluated before the other columns are decoded.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::physical_expr::utils::{collect_columns, reassign_expr_columns};
use datafusion::physical_plan::PhysicalExpr;
use tidetable_layout::{ColumnRef, Layout};
use tidetable_store::read::{RecordFilter, Scalar, ValueRange};

use crate::conjunction::conjunction;
use crate::pushdown::dependence::is_of_row;
use crate::pushdown::pruning::RangePruner;
use crate::pushdown::value_range::value_range;
use crate::scan::records::passing;

type Expr = Arc<dyn PhysicalExpr>;

/// The filters of a query that use one column alone, evaluated before the other columns of a stripe are decoded.
///
/// Late materialisation (Abadi et al. 2007, "Materialization Strategies in a Column-Oriented DBMS"). The filters run
/// again over the whole records later, so that keeping a record too many is safe.
#[derive(Debug)]
pub(crate) struct ColumnFilter {
    column: ColumnRef,
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
        let of_values: Vec<&Expr> = filters.iter().filter(|filter| !is_of_row(layout, filter)).collect();
        let fields: Vec<Option<usize>> = of_values.iter().map(|filter| single_field(filter)).collect();
        let (field, column) =
            fields.iter().flatten().find_map(|field| Some((*field, layout.summed_column(*field)?)))?;

        let table_schema = Arc::new(table.project(&[field]).ok()?);
        let mut filters = Vec::new();
        for (filter, of) in of_values.into_iter().zip(fields) {
            if of == Some(field) {
                filters.push(reassign_expr_columns(Arc::clone(filter), &table_schema).ok()?);
            }
        }

        let schema = nullable(&table_schema);
        let null = new_null_array(schema.field(0).data_type(), 1);
        let absent = RecordBatch::try_new(Arc::clone(&schema), vec![null]).ok()?;
        let passes = passing(&filters, &absent).ok().flatten()?;
        if passes.true_count() > 0 {
            return None;
        }

        let filter = conjunction(filters.iter().cloned());
        let outside = filter.and_then(|filter| RangePruner::new(filter, &schema, 0, true));
        let range = common_range(&filters, &schema);
        Some(Self { column, schema, filters, range, outside })
    }

    /// Which of `values` pass; `None` on an error.
    fn verdict(&self, values: &ArrayRef) -> Option<BooleanArray> {
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), vec![Arc::clone(values)]).ok()?;
        passing(&self.filters, &batch).ok()?
    }
}

/// The field that a filter uses, if it uses one only.
fn single_field(filter: &Expr) -> Option<usize> {
    let mut fields = collect_columns(filter).into_iter().map(|column| column.index());
    let field = fields.next()?;
    fields.all(|other| other == field).then_some(field)
}

/// The values that pass all of `filters`; `None` if one of them is not a range of values.
fn common_range(filters: &[Expr], schema: &SchemaRef) -> Option<ValueRange> {
    let mut common: Option<ValueRange> = None;
    for filter in filters {
        let (_, range) = value_range(filter, schema)?;
        common = Some(match common {
            Some(common) => common.intersection(range)?,
            None => range,
        });
    }
    common
}

/// Stored columns may lack values, whatever the table's schema says.
fn nullable(schema: &Schema) -> SchemaRef {
    let fields: Vec<_> = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
    Arc::new(Schema::new(fields))
}

impl RecordFilter for ColumnFilter {
    fn column(&self) -> ColumnRef {
        self.column
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
