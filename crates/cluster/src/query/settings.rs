//! What queries need of both servers: functions, and settings of their jobs.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;
use tidetable_sql::with_functions;

use crate::query::roots::RootStores;

/// A session with the functions of plans, in which no files can be read.
pub(crate) fn function_state(config: Option<SessionConfig>) -> Result<SessionState> {
    let runtime = RuntimeEnvBuilder::new().with_object_store_registry(Arc::new(RootStores::unread())).build_arc()?;
    let builder = SessionStateBuilder::new().with_config(config.unwrap_or_default()).with_runtime_env(runtime);
    Ok(with_functions(builder).build())
}

/// Settings of the job of a query of the session `name`. None is a secret.
pub(crate) fn job_settings(name: &str) -> Vec<(String, String)> {
    let settings = [
        ("ballista.job.name", name),
        ("ballista.scheduler.max_partitions_per_task", "1"),
        ("ballista.planner.adaptive.enabled", "false"),
        ("datafusion.optimizer.enable_round_robin_repartition", "false"),
        ("datafusion.optimizer.enable_dynamic_filter_pushdown", "false"),
    ];
    settings.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec()
}
