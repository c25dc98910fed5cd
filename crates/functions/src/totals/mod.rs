//! `sum` and `avg` as in PostgreSQL and DuckDB: sums of integers fail on overflow, and averages of decimals are
//! rounded. DataFusion 55.2 wraps around and truncates. Those of floats are exact until they are rounded once, where DataFusion's depend
//! on threads and files. Variances, deviations, covariances and
//! correlations are computed by batch, and their parts merged without rounding a
//! constant's mean.

pub(crate) mod average;
pub(crate) mod floats;
pub(crate) mod function;
pub(crate) mod group_sums;
pub(crate) mod moments;
pub(crate) mod moments_accumulators;
pub(crate) mod sum;
pub(crate) mod wide;

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;

pub use floats::row_states::float_row_states;
pub use wide::sum_overflow;

/// Replaces DataFusion's `sum`, `avg` and functions of moments, such as `stddev` and `corr`.
pub fn override_totals(builder: SessionStateBuilder) -> SessionStateBuilder {
    let mut builder = builder;
    let functions = [sum::sum(), average::average()].into_iter().chain(moments_accumulators::moments());
    builder.aggregate_functions().get_or_insert_with(Vec::new).extend(functions.map(Arc::new));
    builder
}
