//! `sum` and `avg` as in PostgreSQL and DuckDB: sums of integers fail on overflow, and averages of decimals are
//! rounded. DataFusion 55.2 wraps around and truncates.

pub(crate) mod average;
pub(crate) mod function;
pub(crate) mod sum;

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;

pub use sum::sum_overflow;

/// Replaces DataFusion's `sum` and `avg`.
pub fn override_totals(builder: SessionStateBuilder) -> SessionStateBuilder {
    let mut builder = builder;
    let functions = [sum::sum(), average::average()];
    builder.aggregate_functions().get_or_insert_with(Vec::new).extend(functions.map(Arc::new));
    builder
}
