//! `tidetable scheduler`, `tidetable executor`, and where the work of a run or a query goes.

use tidetable_runner::Project;

/// The scheduler that `--on` or the project names; `None` for this process.
pub fn scheduler_of(on: Option<&str>, project: &Project) -> Option<String> {
    elsewhere(on.or(project.cluster.as_deref())).map(str::to_owned)
}

/// The scheduler that `on` names; `None` for this process.
pub fn elsewhere(on: Option<&str>) -> Option<&str> {
    on.filter(|on| !on.is_empty() && *on != "local")
}

#[cfg(feature = "cluster")]
mod built;
#[cfg(feature = "cluster")]
pub use built::{Queries, carrier, executor, scheduler};

#[cfg(not(feature = "cluster"))]
mod missing;
#[cfg(not(feature = "cluster"))]
pub use missing::{Queries, carrier, executor, scheduler};
