//! Predicates over the records of a table: what they bound, and how many records they match.

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use tidetable_ingest::{Prepare, Prepared};
use tidetable_layout::Field;
use tidetable_layout::pushdown::FieldBound;

use crate::pushdown::filter::bounds;
use crate::pushdown::value_sets::field_bounds;
use crate::session::expressions::{ExpressionError, ExpressionPlanner, Preparation, schema_of};

/// Compiles predicates over the columns of one table.
#[derive(Clone)]
pub struct Predicates {
    planner: ExpressionPlanner,
}

impl Predicates {
    /// A compiler of predicates over `columns`.
    pub fn new(columns: &[Field]) -> Self {
        Self { planner: ExpressionPlanner::new(schema_of(columns)) }
    }

    /// Compiles a predicate.
    ///
    /// # Errors
    /// If it is not a valid predicate over the columns.
    pub fn compile(&self, predicate: &str) -> Result<Predicate, ExpressionError> {
        let expr = self.planner.logical(predicate)?;
        let bounds = bounds(&expr, self.planner.schema()).map(|bounds| field_bounds(&bounds)).unwrap_or_default();
        Ok(Predicate { bounds, filter: Preparation { derive: None, filter: Some(self.planner.filter(expr)?) } })
    }
}

impl std::fmt::Debug for Predicates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Predicates").field("columns", self.planner.schema()).finish_non_exhaustive()
    }
}

/// A compiled predicate, evaluated over batches of those columns.
#[derive(Debug, Clone)]
pub struct Predicate {
    bounds: Vec<FieldBound>,
    filter: Preparation,
}

impl Predicate {
    /// What every matching record satisfies: the bounds from which a scan of SQL takes its key ranges.
    pub fn bounds(&self) -> &[FieldBound] {
        &self.bounds
    }

    /// The matching records of a batch that has the columns, in their order.
    ///
    /// # Errors
    /// If the predicate cannot be evaluated.
    pub fn matching(&self, batch: RecordBatch) -> Result<RecordBatch, ArrowError> {
        let Prepared { batch, .. } = self.filter.prepare(batch)?;
        Ok(batch)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Bound;
    use std::sync::Arc;

    use arrow::array::{ArrayRef, UInt64Array};
    use tidetable_layout::FieldType;
    use tidetable_layout::pushdown::{Scalar, ValueSet};

    use super::*;

    #[test]
    fn a_predicate_bounds_and_matches() {
        let columns = [("meter", FieldType::UInt64), ("ts", FieldType::Timestamp)];
        let columns = columns.map(|(name, kind)| Field { name: name.to_owned(), kind });
        let day = "meter = 2 and ts >= TIMESTAMP '2018-01-31 00:00:00' \
                   and ts < TIMESTAMP '2018-01-31 00:00:00' + interval '1 day'";
        let predicate = Predicates::new(&columns).compile(day).unwrap();
        let of = |name: &str| predicate.bounds().iter().find(|bound| bound.field == name).map(|bound| &bound.set);
        assert_eq!(of("meter"), Some(&ValueSet::In(vec![Scalar::UInt64(2)])));
        let time = |seconds: i64| Scalar::Timestamp(seconds * 1_000_000);
        let (low, high) = (Bound::Included(time(1_517_356_800)), Bound::Excluded(time(1_517_443_200)));
        assert_eq!(of("ts"), Some(&ValueSet::Range { low, high }));
        for wrong in ["meter = ", "mter = 1", "meter", "meter = random()"] {
            assert!(Predicates::new(&columns).compile(wrong).is_err(), "{wrong}");
        }

        let predicate = Predicates::new(&columns[..1]).compile("meter > 1").unwrap();
        let meters: ArrayRef = Arc::new(UInt64Array::from(vec![Some(1), None, Some(2), Some(3)]));
        let batch = RecordBatch::try_from_iter([("meter", meters)]).unwrap();
        assert_eq!(predicate.matching(batch).unwrap().num_rows(), 2);
    }
}
