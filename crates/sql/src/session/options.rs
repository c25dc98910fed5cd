//! What every session has: functions, types and settings of the planner.

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionConfig;
use tidetable_functions::{add_series_functions, override_totals, register};

use crate::asof::planner::AsOfPlanner;
use crate::session::nodes::NodePlanner;
use crate::session::planning::StopsPlanning;
use crate::syntax::statement::BigtableTypes;
use crate::views::planner::{ViewPlanner, Views};
use crate::views::time_series::TimeSeriesPlanner;

/// Adds what every session has: DataFusion's default features, views with options, and GoogleSQL's functions and types.
pub(crate) fn with_sql_features(builder: SessionStateBuilder, views: Arc<dyn Views>) -> SessionStateBuilder {
    add_series_functions(override_totals(register(builder.with_default_features())))
        .with_type_planner(Arc::new(BigtableTypes))
        .with_query_planner(Arc::new(NodePlanner))
        .with_relation_planners(vec![
            Arc::new(StopsPlanning),
            Arc::new(AsOfPlanner),
            Arc::new(TimeSeriesPlanner),
            Arc::new(ViewPlanner(views)),
        ])
}

/// Configures the parser and the planner: identifiers are case-sensitive, `600.60` is a decimal and not a double, and errors carry
/// their position.
pub(crate) fn set_planning_options(config: &mut SessionConfig) {
    let parser = &mut config.options_mut().sql_parser;
    parser.enable_ident_normalization = false;
    parser.parse_float_as_decimal = true;
    parser.collect_spans = true;
    // Row "Nullable CASE" of `docs/datafusion-workarounds.md`.
    config.options_mut().execution.skip_physical_aggregate_schema_check = true;
    // Key ranges of an entity are partitions of its days, too, as DataFusion has it on machines of four cores and more.
    config.options_mut().optimizer.subset_repartition_threshold = 1;
}
