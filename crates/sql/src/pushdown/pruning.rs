//! Stripe pruning: skips stripes whose stats rule a filter out.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, UInt64Array};
use arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, ScalarValue};
use datafusion::physical_optimizer::pruning::{PruningPredicate, PruningPredicateBuilder};
use datafusion::physical_plan::PhysicalExpr;
use tidetable_layout::Layout;
use tidetable_store::read::{Scalar, StripeMeta, StripePruner};

use crate::schema::CELL_TIMESTAMP;

/// Rules out stripes in which no record passes a filter, by the stats in the index.
#[derive(Debug)]
pub(crate) struct FilterPruner {
    predicate: PruningPredicate,
    columns: StripeColumns,
    schema: SchemaRef,
}

/// How the columns of a filter map to the stats of stripes.
#[derive(Debug)]
enum StripeColumns {
    /// Fields of the records of a layout.
    Records(Arc<Layout>),
    /// Columns of cells, of which all have stored timestamps.
    Cells,
}

impl StripeColumns {
    /// The range of the values of a column in a stripe, if it is known.
    fn range(&self, stripe: &StripeMeta, field: usize) -> Option<(Scalar, Scalar)> {
        let is_time = match self {
            Self::Records(layout) => match layout.value_column(field) {
                Some(at) => return stripe.columns.get(at.group)?.get(at.column)?.range,
                None => layout.is_cell_time(field),
            },
            Self::Cells => field == CELL_TIMESTAMP,
        };
        let (least, greatest) = stripe.timestamps.filter(|_| is_time)?;
        Some((Scalar::Timestamp(least), Scalar::Timestamp(greatest)))
    }
}

impl FilterPruner {
    /// `filter` is an expression over the records of `layout`, which have this schema; `None` if it cannot prune.
    pub(crate) fn new(filter: Arc<dyn PhysicalExpr>, layout: &Arc<Layout>, schema: &SchemaRef) -> Option<Self> {
        let predicate = pruning(filter, schema)?;
        Some(Self { predicate, columns: StripeColumns::Records(Arc::clone(layout)), schema: Arc::clone(schema) })
    }

    /// `filter` is an expression over cells, which have this schema and all have stored timestamps; `None` if it cannot
    /// prune.
    pub(crate) fn of_cells(filter: Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<Self> {
        let predicate = pruning(filter, schema)?;
        Some(Self { predicate, columns: StripeColumns::Cells, schema: Arc::clone(schema) })
    }

    /// The least or greatest value of a column by stripe; null if unknown. Null also for a stripe without values: it is
    /// not pruned, although no comparison can hold there.
    fn ends(&self, stripes: &[StripeMeta], column: &Column, greatest: bool) -> Option<ArrayRef> {
        let field = self.schema.index_of(column.name()).ok()?;
        let kind = self.schema.field(field).data_type();
        let unknown = ScalarValue::try_from(kind).ok()?;

        let mut values = Vec::with_capacity(stripes.len());
        for stripe in stripes {
            let range = self.columns.range(stripe, field);
            let known = range.and_then(|range| value(end(range, greatest), kind));
            values.push(known.unwrap_or_else(|| unknown.clone()));
        }
        ScalarValue::iter_to_array(values).ok()
    }
}

impl StripePruner for FilterPruner {
    fn prunes(&self, stripes: &[StripeMeta]) -> Vec<bool> {
        let ends = |column: &Column, greatest| self.ends(stripes, column, greatest);
        let kept = self.predicate.prune(&ValueBounds { containers: stripes.len(), ends, without_nulls: None });
        // On an error the stripes are read.
        kept.map(|kept| kept.into_iter().map(|kept| !kept).collect()).unwrap_or_default()
    }
}

/// Tests a filter against value ranges of one column.
#[derive(Debug)]
pub(crate) struct RangePruner {
    predicate: PruningPredicate,
    column: FieldRef,
    may_be_null: bool,
}

impl RangePruner {
    /// `filter` is an expression over `schema`, of which the ranges of column `at` will be known; `None` if it cannot rule
    /// anything out. `may_be_null`: whether records within a range may lack a value.
    pub(crate) fn new(filter: Arc<dyn PhysicalExpr>, schema: &SchemaRef, at: usize, may_be_null: bool) -> Option<Self> {
        let predicate = pruning(filter, schema)?;
        Some(Self { predicate, column: Arc::clone(schema.fields().get(at)?), may_be_null })
    }

    /// Whether no record with a value in `range` (inclusive) passes.
    pub(crate) fn rules_out(&self, range: (Scalar, Scalar)) -> bool {
        let ends = |column: &Column, greatest| {
            let known = column.name() == self.column.name();
            value(end(range, greatest), self.column.data_type()).filter(|_| known)?.to_array().ok()
        };
        let without_nulls = (!self.may_be_null).then(|| self.column.name().as_str());
        self.predicate.prune(&ValueBounds { containers: 1, ends, without_nulls }).is_ok_and(|kept| kept == [false])
    }
}

fn pruning(filter: Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<PruningPredicate> {
    let predicate = PruningPredicateBuilder::new().with_file_schema(Arc::clone(schema)).try_build(filter).ok()?;
    (!predicate.always_true()).then_some(predicate)
}

fn end((least, greatest): (Scalar, Scalar), wants_greatest: bool) -> Scalar {
    if wants_greatest { greatest } else { least }
}

/// Least (`false`) and greatest (`true`) values of columns, for each of some containers; null where unknown.
struct ValueBounds<'a, F> {
    containers: usize,
    ends: F,
    /// Name of a column that is known to have no nulls in these containers.
    without_nulls: Option<&'a str>,
}

impl<F: Fn(&Column, bool) -> Option<ArrayRef>> PruningStatistics for ValueBounds<'_, F> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        (self.ends)(column, false)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        (self.ends)(column, true)
    }

    fn num_containers(&self) -> usize {
        self.containers
    }

    fn null_counts(&self, column: &Column) -> Option<ArrayRef> {
        let is_known = self.without_nulls == Some(column.name());
        is_known.then(|| Arc::new(UInt64Array::from(vec![0; self.containers])) as ArrayRef)
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        None
    }

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}

/// A stored value as a DataFusion scalar of this type; `None` if the types differ.
pub(crate) fn value(scalar: Scalar, kind: &DataType) -> Option<ScalarValue> {
    let value = match (scalar, kind) {
        (Scalar::UInt64(value), DataType::UInt64) => ScalarValue::UInt64(Some(value)),
        (Scalar::Int64(value), DataType::Int64) => ScalarValue::Int64(Some(value)),
        (Scalar::Float64(value), DataType::Float64) => ScalarValue::Float64(Some(value)),
        (Scalar::Decimal(value), DataType::Decimal128(precision, scale)) => {
            ScalarValue::Decimal128(Some(value), *precision, *scale)
        }
        (Scalar::Timestamp(value), DataType::Timestamp(_, zone)) => {
            ScalarValue::TimestampMicrosecond(Some(value), zone.clone())
        }
        (Scalar::Date(value), DataType::Date32) => ScalarValue::Date32(Some(value)),
        _ => return None,
    };
    Some(value)
}
