//! Functions of GoogleSQL for Bigtable that DataFusion lacks or defines differently, and those of sketches.

pub(crate) mod argument_types;
pub(crate) mod bytes;
pub(crate) mod checked;
pub(crate) mod conversion;
pub(crate) mod hll;
pub(crate) mod map_get;
pub(crate) mod maps;
pub(crate) mod overridden;
pub(crate) mod rounded;
pub(crate) mod times;
pub(crate) mod totals;
pub(crate) mod unpack;

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::ScalarUDF;

use bytes::BytesFunction;
pub(crate) use checked::checked_arithmetic;
pub(crate) use rounded::rounding_cast;
pub(crate) use times::time_counts::counting_times;
pub(crate) use times::zones::{TIMEZONE, local_to_instant, ticks_per_second};
pub(crate) use times::{as_nanos, parse_time, parse_time_casts};
pub(crate) use unpack::{TIMESTAMP, has_history, unpack};

/// Registers the functions, `map['key']` and the type names of GoogleSQL.
pub(crate) fn register(builder: SessionStateBuilder) -> SessionStateBuilder {
    let mut builder = builder;
    let planners = builder.expr_planners().get_or_insert_with(Vec::new);
    // Before DataFusion's planner, which does not coerce text to a key of bytes.
    planners.insert(0, Arc::new(map_get::MapAccess));
    planners.insert(0, Arc::new(times::date_part::Extract));
    let functions: [Arc<ScalarUDF>; 12] = [
        BytesFunction::ToInt64.function(),
        BytesFunction::ToFloat64.function(),
        BytesFunction::ToText.function(),
        maps::map_contains_key(),
        maps::map_empty(),
        unpack::function(),
        hll::function(),
        times::zones::at_time_zone(),
        times::date_bin::function(),
        times::date_part::function(),
        times::date_trunc::function(),
        times::to_char::function(),
    ];
    builder.scalar_functions().get_or_insert_with(Vec::new).extend(functions);
    builder
}
