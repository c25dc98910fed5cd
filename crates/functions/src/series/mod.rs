//! Aggregates of time series: the value at the first or the last time, what happens most often, and how fast a value changes.
//!
//! None depends on the order in which rows arrive, or on how they are divided into partial states: rows of one time or key are
//! told apart by their values.

mod buckets;
mod changes;
mod extremes;
mod group_extremes;
mod pairs;
mod sample_functions;
mod samples;
mod value_counts;
pub(crate) mod width_bucket;

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::AggregateUDF;

/// Adds the aggregates of time series: `first`, `last`, `arg_min`, `arg_max`, `mode`, `histogram`, `increase`, `rate`, `delta` and
/// `derivative`.
pub fn add_series_functions(builder: SessionStateBuilder) -> SessionStateBuilder {
    let mut builder = builder;
    let mut functions: Vec<AggregateUDF> = extremes::functions();
    functions.extend(sample_functions::functions());
    functions.extend([value_counts::mode(), value_counts::histogram()]);
    builder.aggregate_functions().get_or_insert_with(Vec::new).extend(functions.into_iter().map(Arc::new));
    builder
}
