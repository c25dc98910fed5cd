//! Stripe pruning: skips stripes whose stats rule a filter out.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::pruning::PruningStatistics;
use datafusion::common::{Column, ScalarValue};
use datafusion::physical_optimizer::pruning::{PruningPredicate, PruningPredicateBuilder};
use datafusion::physical_plan::PhysicalExpr;
use tidetable_layout::Layout;
use tidetable_store::{Scalar, StripeMeta, StripePruner};

/// Prunes stripes by a filter.
#[derive(Debug)]
pub(crate) struct FilterSkip {
    predicate: PruningPredicate,
    layout: Arc<Layout>,
    schema: SchemaRef,
}

impl FilterSkip {
    /// `filter` is an expression over the records of `layout`, which have this schema; `None` if it cannot prune.
    pub(crate) fn new(filter: Arc<dyn PhysicalExpr>, layout: &Arc<Layout>, schema: &SchemaRef) -> Option<Self> {
        let predicate = pruning(filter, schema)?;
        Some(Self { predicate, layout: Arc::clone(layout), schema: Arc::clone(schema) })
    }
}

impl StripePruner for FilterSkip {
    fn skip(&self, stripes: &[StripeMeta]) -> Vec<bool> {
        let known = Known { skip: self, stripes };
        // On an error the stripes are read.
        self.predicate.prune(&known).map(|kept| kept.into_iter().map(|kept| !kept).collect()).unwrap_or_default()
    }
}

/// Tests a filter against value ranges of one column.
#[derive(Debug)]
pub(crate) struct RangeSkip {
    predicate: PruningPredicate,
    kind: DataType,
}

impl RangeSkip {
    /// `filter` is an expression over a schema of the column alone; `None` if it cannot rule anything out.
    pub(crate) fn new(filter: Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<Self> {
        let predicate = pruning(filter, schema)?;
        Some(Self { predicate, kind: schema.fields().first()?.data_type().clone() })
    }

    /// Whether no value in `range` (inclusive) passes.
    pub(crate) fn rules_out(&self, range: (Scalar, Scalar)) -> bool {
        let known = KnownRange { kind: &self.kind, range };
        self.predicate.prune(&known).is_ok_and(|kept| kept == [false])
    }
}

fn pruning(filter: Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<PruningPredicate> {
    let predicate = PruningPredicateBuilder::new().with_file_schema(Arc::clone(schema)).try_build(filter).ok()?;
    (!predicate.always_true()).then_some(predicate)
}

/// A value range of one column, as pruning statistics.
struct KnownRange<'a> {
    kind: &'a DataType,
    range: (Scalar, Scalar),
}

impl PruningStatistics for KnownRange<'_> {
    fn min_values(&self, _: &Column) -> Option<ArrayRef> {
        value(self.range.0, self.kind)?.to_array().ok()
    }

    fn max_values(&self, _: &Column) -> Option<ArrayRef> {
        value(self.range.1, self.kind)?.to_array().ok()
    }

    fn num_containers(&self) -> usize {
        1
    }

    fn null_counts(&self, _: &Column) -> Option<ArrayRef> {
        None
    }

    fn row_counts(&self) -> Option<ArrayRef> {
        None
    }

    fn contained(&self, _: &Column, _: &HashSet<ScalarValue>) -> Option<BooleanArray> {
        None
    }
}

/// Stripe stats as pruning statistics.
struct Known<'a> {
    skip: &'a FilterSkip,
    stripes: &'a [StripeMeta],
}

impl fmt::Debug for Known<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").field("stripes", &self.stripes.len()).finish_non_exhaustive()
    }
}

impl Known<'_> {
    /// The least or greatest value of a column by stripe; null if unknown. Null also for a stripe without values: it is
    /// not pruned, although no comparison can hold there.
    fn ends(&self, column: &Column, end: impl Fn(&(Scalar, Scalar)) -> Scalar) -> Option<ArrayRef> {
        let FilterSkip { layout, schema, .. } = self.skip;
        let field = schema.index_of(column.name()).ok()?;
        let kind = schema.field(field).data_type();
        let of_stripe = |stripe: &StripeMeta| -> Option<ScalarValue> {
            if let Some((group, column)) = layout.value_column(field) {
                return value(end(&stripe.columns.get(group)?.get(column)?.range?), kind);
            }
            if layout.is_cell_time(field) {
                let (least, greatest) = stripe.timestamps?;
                return value(end(&(Scalar::Timestamp(least), Scalar::Timestamp(greatest))), kind);
            }
            None
        };
        let unknown = ScalarValue::try_from(kind).ok()?;
        let values = self.stripes.iter().map(|stripe| of_stripe(stripe).unwrap_or_else(|| unknown.clone()));
        ScalarValue::iter_to_array(values).ok()
    }
}

impl PruningStatistics for Known<'_> {
    fn min_values(&self, column: &Column) -> Option<ArrayRef> {
        self.ends(column, |(least, _)| *least)
    }

    fn max_values(&self, column: &Column) -> Option<ArrayRef> {
        self.ends(column, |(_, greatest)| *greatest)
    }

    fn num_containers(&self) -> usize {
        self.stripes.len()
    }

    fn null_counts(&self, _: &Column) -> Option<ArrayRef> {
        None
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
