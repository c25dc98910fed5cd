//! `tidetable scheduler`, `tidetable executor`, and where the work of a run or a query goes.

use tidetable_runner::Project;

/// The scheduler that `--on` or the project names; `None` for this process.
pub fn scheduler_of(on: Option<&str>, project: &Project) -> Option<Elsewhere> {
    elsewhere(on.or(project.cluster.url.as_deref()), project)
}

/// The scheduler that `on` names, with the project's settings of clusters; `None` for this process.
pub fn elsewhere(on: Option<&str>, project: &Project) -> Option<Elsewhere> {
    let address = on.filter(|on| !on.is_empty() && *on != "local")?;
    Some(Elsewhere::of(address, project))
}

#[cfg(feature = "cluster")]
mod built;
#[cfg(feature = "cluster")]
pub use built::{Elsewhere, Queries, carrier, executor, scheduler};

#[cfg(not(feature = "cluster"))]
mod missing;
#[cfg(not(feature = "cluster"))]
pub use missing::{Elsewhere, Queries, carrier, executor, scheduler};
