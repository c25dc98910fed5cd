//! SQL functions: those of GoogleSQL for Bigtable that DataFusion lacks, those that it defines differently, those of time series, and
//! those of sketches.
//!
//! [`register`] adds the functions of one value, [`override_totals`] replaces `sum`, `avg` and functions of moments, such as
//! `stddev`, [`add_series_functions`] adds aggregates of time series. Operators and casts are no functions in DataFusion:
//! [`checked_arithmetic`], [`rounding_cast`], [`exact_float_cast`], [`parse_time_casts`] and [`local_to_instant`] rewrite their
//! expressions. [`ScanCast`] replaces casts in scans. [`bound_sizes`] keeps
//! functions such as `repeat` within a memory limit.

mod argument_types;
mod bytes;
mod casts;
mod chain;
mod checked;
mod conversion;
mod google;
mod hll;
mod map_get;
mod maps;
mod markers;
mod overridden;
mod passing;
mod series;
mod sized;
mod times;
mod totals;
mod unpack;

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::ScalarUDF;

pub use argument_types::is_text;
use bytes::BytesFunction;
pub use casts::decimal_floats::exact_float_cast;
pub use casts::rounded::rounding_cast;
pub use casts::scan_cast::ScanCast;
pub use chain::ChainBuilder;
pub use checked::checked_arithmetic;
pub use google::{BYTES_LIKE, INDEX, STARTS_WITH, as_written, google_name, over_bytes};
pub use markers::cast_label::{CAST_LABEL, without_cast_label};
pub use markers::comparable::{COMPARABLE_WITH, comparable_type};
pub use passing::one_row::one_row;
pub use passing::opaque::opaque;
pub use series::add_series_functions;
pub use sized::bound_sizes;
pub use sized::planning::{Abandoned, check_abandoned, is_planning_thread, mark_planning_thread};
pub use times::gapfill::{GAPFILL, INTERPOLATE, LOCF, TimeGrid};
pub use times::time_counts::counting_times;
pub use times::zones::{TIMEZONE, is_utc, local_to_instant, ticks_per_second};
pub use times::{as_nanos, parse_time, parse_time_casts};
pub use totals::{float_row_states, override_totals, sum_overflow};
pub use unpack::{TIMESTAMP, has_history, unpack};

/// Registers the functions, `map['key']` and the type names of GoogleSQL.
pub fn register(builder: SessionStateBuilder) -> SessionStateBuilder {
    let mut builder = builder;
    let planners = builder.expr_planners().get_or_insert_with(Vec::new);

    // Before DataFusion's planner, which does not coerce text to a key of bytes.
    planners.insert(0, Arc::new(map_get::MapAccess));
    planners.insert(0, Arc::new(times::date_part::Extract));
    planners.insert(0, Arc::new(times::interval_products::IntervalProducts));
    planners.insert(0, Arc::new(times::date_intervals::DateIntervals));

    let functions: [Arc<ScalarUDF>; 19] = [
        BytesFunction::ToInt64.function(),
        BytesFunction::ToFloat64.function(),
        BytesFunction::ToText.function(),
        maps::map_contains_key(),
        maps::map_empty(),
        markers::cast_label::function(),
        markers::comparable::function(),
        passing::nullif::function(),
        unpack::function(),
        hll::function(),
        times::zones::at_time_zone(),
        times::date_bin::function(),
        times::date_part::function(),
        times::date_trunc::function(),
        times::interval_products::divide(),
        times::interval_products::multiply(),
        times::to_char::function(),
        times::time_bucket::function(),
        series::width_bucket::function(),
    ];

    let all = builder.scalar_functions().get_or_insert_with(Vec::new);
    all.extend(functions);
    all.extend(times::gapfill::functions());
    all.extend(google::functions());
    builder
}
