//! `sum` and `avg` as PostgreSQL and DuckDB give them, in place of the engine's (DataFusion 55.2): sums of integers fail where
//! they do not fit, and averages of decimals are rounded. The engine's wrap around, and cut.

pub(crate) mod average;
pub(crate) mod function;
pub(crate) mod sum;

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;

pub(crate) use sum::too_great;

/// Puts them in the place of the engine's.
pub(crate) fn register(builder: SessionStateBuilder) -> SessionStateBuilder {
    let mut builder = builder;
    let functions = [sum::sum(), average::average()];
    builder.aggregate_functions().get_or_insert_with(Vec::new).extend(functions.map(Arc::new));
    builder
}
