//! `tidetable scheduler`, `tidetable executor`, and where the work of a run or a query goes.

use tidetable_runner::Project;

/// The scheduler that `--on` or the project names; `None` for this process.
pub fn scheduler_of(on: Option<&str>, project: &Project) -> Option<String> {
    let on = on.or(project.cluster.as_deref()).filter(|on| !on.is_empty() && *on != "local");
    on.map(str::to_owned)
}

#[cfg(feature = "cluster")]
mod built;
#[cfg(feature = "cluster")]
pub use built::{Queries, carrier, executor, scheduler};

#[cfg(not(feature = "cluster"))]
mod missing;
#[cfg(not(feature = "cluster"))]
pub use missing::{Queries, carrier, executor, scheduler};
