//! Stripes that no record of a query can lie in, told from what their file says of their values.

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

/// Skips stripes by filters.
#[derive(Debug)]
pub(crate) struct FilterSkip {
    predicate: PruningPredicate,
    layout: Arc<Layout>,
    schema: SchemaRef,
}

impl FilterSkip {
    /// By `filter`, an expression over the records of `layout`, which have this schema; `None` if it can rule nothing out.
    pub(crate) fn new(filter: Arc<dyn PhysicalExpr>, layout: &Arc<Layout>, schema: &SchemaRef) -> Option<Self> {
        let predicate = pruning(filter, schema)?;
        Some(Self { predicate, layout: Arc::clone(layout), schema: Arc::clone(schema) })
    }
}

impl StripePruner for FilterSkip {
    fn skip(&self, stripes: &[StripeMeta]) -> Vec<bool> {
        let known = Known { skip: self, stripes };
        // What cannot be judged is read.
        self.predicate.prune(&known).map(|kept| kept.into_iter().map(|kept| !kept).collect()).unwrap_or_default()
    }
}

/// Rules out ranges of the values of one column.
#[derive(Debug)]
pub(crate) struct RangeSkip {
    predicate: PruningPredicate,
    kind: DataType,
}

impl RangeSkip {
    /// By `filter`, an expression over a schema of the column alone; `None` if it can rule nothing out.
    pub(crate) fn new(filter: Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<Self> {
        let predicate = pruning(filter, schema)?;
        Some(Self { predicate, kind: schema.fields().first()?.data_type().clone() })
    }

    /// Whether no value from the least to the greatest of `range` passes.
    pub(crate) fn rules_out(&self, range: (Scalar, Scalar)) -> bool {
        let known = KnownRange { kind: &self.kind, range };
        self.predicate.prune(&known).is_ok_and(|kept| kept == [false])
    }
}

fn pruning(filter: Arc<dyn PhysicalExpr>, schema: &SchemaRef) -> Option<PruningPredicate> {
    let predicate = PruningPredicateBuilder::new().with_file_schema(Arc::clone(schema)).try_build(filter).ok()?;
    (!predicate.always_true()).then_some(predicate)
}

/// A range of the values of one column.
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

/// What stripes say of their values.
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
    /// One end of the values of a column, for each stripe; null where it is not known. A stripe that has no value of it has
    /// no record that a comparison could hold for, but is not ruled out by that.
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

/// A stored value as one of a column of this type; `None` if it is of another.
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
