//! Functions that GoogleSQL for Bigtable has and the engine has not, or has otherwise; and that of sketches.

pub(crate) mod argument_types;
pub(crate) mod bytes;
pub(crate) mod checked;
pub(crate) mod conversion;
pub(crate) mod hll;
pub(crate) mod map_get;
pub(crate) mod maps;
pub(crate) mod mended;
pub(crate) mod rounded;
pub(crate) mod times;
pub(crate) mod totals;
pub(crate) mod unpack;

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::ScalarUDF;

pub(crate) use checked::checked;
pub(crate) use rounded::rounded;
pub(crate) use times::time_counts::counting_times;
pub(crate) use times::zones::{TIMEZONE, by_clocks};
pub(crate) use times::{as_nanos, read_text, time_of};
pub(crate) use unpack::{TIMESTAMP, has_history, unpack};

/// Adds the functions, `map['key']`, and the type names of GoogleSQL to what a session has.
pub(crate) fn register(builder: SessionStateBuilder) -> SessionStateBuilder {
    let mut builder = builder;
    let planners = builder.expr_planners().get_or_insert_with(Vec::new);
    // First, for the engine's own indexing takes no text for a key of bytes.
    planners.insert(0, Arc::new(map_get::MapAccess));
    let functions: [Arc<ScalarUDF>; 11] = [
        bytes::to_int64(),
        bytes::to_float64(),
        bytes::safe_convert_bytes_to_string(),
        maps::map_contains_key(),
        maps::map_empty(),
        unpack::function(),
        hll::function(),
        times::zones::at_time_zone(),
        times::date_bin::function(),
        times::date_trunc::function(),
        times::to_char::function(),
    ];
    builder.scalar_functions().get_or_insert_with(Vec::new).extend(functions);
    builder
}
